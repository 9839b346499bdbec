"""Store: the objects of one kind, by key and by index.

Objects are frozen values, so they are handed out as they are. A store does no I/O and knows no server: the cache keeps
it equal to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from kedge.api.meta import ObjectMeta

T = TypeVar("T")
Key: TypeAlias = tuple[str, str]
Index: TypeAlias = Callable[[T], Iterable[str]]


class Change(Struct, Generic[T], frozen=True, gc=False):
    """What happened to one object: created (no old), changed, or deleted (no new).

    `initial` marks objects that existed when the cache was first filled, and `relisted` a difference that a later list
    showed: nobody knows what happened in between. Of a deleted object, `old` is its last known state.
    """

    old: T | None
    new: T | None
    initial: bool = False
    relisted: bool = False

    @property
    def object(self) -> T:
        """The object as it is, or as it was last."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


def key_of(meta: ObjectMeta) -> Key:
    """Namespace (empty for cluster-scoped kinds) and name."""
    return meta.namespace or "", meta.name


class Store(Generic[T]):
    """Objects by key, and by whatever each index says of them."""

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes = dict(indexes or {})
        self._found: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexes}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def keys(self) -> tuple[Key, ...]:
        return tuple(self._objects)

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """The objects of which the index says this value."""
        return tuple(self._objects[key] for key in self._found[index].get(value, ()))

    def values(self, index: str) -> tuple[str, ...]:
        """Every value the index says of some object."""
        return tuple(self._found[index])

    def put(self, key: Key, new: T) -> T | None:
        """Keep this object, and give back the one it replaces."""
        old = self._objects.get(key)
        if self._indexes:
            self._reindex(key, old, new)
        self._objects[key] = new
        return old

    def remove(self, key: Key) -> T | None:
        """Forget this object, and give it back."""
        old = self._objects.pop(key, None)
        if self._indexes and old is not None:
            self._reindex(key, old, None)
        return old

    def _reindex(self, key: Key, old: T | None, new: T | None) -> None:
        for name, index in self._indexes.items():
            found = self._found[name]
            # Not sets, whose order differs from process to process.
            before = dict.fromkeys(index(old)) if old is not None else {}
            after = dict.fromkeys(index(new)) if new is not None else {}
            for value in before:
                if value not in after:
                    found[value].pop(key)
                    if not found[value]:
                        del found[value]
            for value in after:
                if value not in before:
                    found.setdefault(value, {})[key] = None
