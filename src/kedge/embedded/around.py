"""Around: what the rules of a kind may see of the rest of the server. Satisfies `rules.Surroundings`."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.stamps import Stamps
from kedge.embedded.store import Store, Untyped, key_of


class Around:
    """A server's objects, names and time."""

    def __init__(self, store: Store, stamps: Stamps) -> None:
        self._store = store
        self._stamps = stamps

    def find(self, resource: Resource, namespace: str, name: str) -> Untyped | None:
        found = self._store.all(Kind(resource)).get(key_of(namespace, name))
        return found.decode() if found else None

    def each(self, resource: Resource, namespace: str = "") -> Iterator[Untyped]:
        snapshot = self._store.all(Kind(resource)).at(self._store.number)
        return (version.decode() for version in snapshot.within(f"{namespace}/" if namespace else ""))

    def name(self, start: str) -> str:
        return self._stamps.name(start)

    def now(self) -> str:
        return self._stamps.now()
