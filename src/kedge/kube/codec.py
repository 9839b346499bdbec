"""Codec: how the objects of one kind are read from bytes.

`codec(ConfigMap)` reads typed objects, `untyped(resource)` dicts, `metadata_of(resource)` metadata alone (and asks the
server for no more). One object that does not fit its type never spoils a list or a watch: it comes back as
`Unreadable`, with the reason, beside the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from kedge.api.meta import Object, ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.kube.errors import Status
from kedge.kube.transport import JSON

T = TypeVar("T")
Untyped: TypeAlias = dict[str, Any]

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError)
"""Raised for bytes that are no such object."""

_PATHS = 1024
_METADATA_ONLY = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


class Unreadable(Struct, frozen=True):
    """An object that does not fit its type: who it is, and what is wrong with it."""

    metadata: ObjectMeta
    problem: str


class Page(Struct, Generic[T], frozen=True):
    """One page of a list, or the whole of it. The server promises `resource_version` for the whole."""

    items: tuple[T, ...]
    unreadable: tuple[Unreadable, ...]
    resource_version: str
    more: str = ""


class Event(Struct, Generic[T], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: T


class Bookmark(Struct, frozen=True):
    """How far the server has got; `initial_events_end` marks the end of a streamed list."""

    resource_version: str
    initial_events_end: bool = False


class PartialObject(Value, frozen=True, gc=False):
    """An object of any kind, metadata alone."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class _ListMeta(Struct, frozen=True, rename={"resource_version": "resourceVersion", "more": "continue"}):
    resource_version: str = ""
    more: str = ""


class _List(Struct, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[T, ...] | None = None


class _Bare(Struct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class _MarkMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Mark(Struct, frozen=True):
    metadata: _MarkMeta = _MarkMeta()


class Codec(Generic[T]):
    """Reads one kind in one form."""

    def __init__(self, resource: Resource, form: Any, meta: Callable[[T], ObjectMeta], accept: str = JSON) -> None:
        self.resource = resource
        self.path = lru_cache(_PATHS)(resource.path)
        """As `Resource.path`; the same objects are asked for again and again."""
        self.accept = accept
        self.accept_list = accept.replace("PartialObjectMetadata", "PartialObjectMetadataList")
        self.meta = meta
        self._one = msgspec.json.Decoder(form)
        self._list = msgspec.json.Decoder(_List[form])
        self._event = msgspec.json.Decoder(Event[form])

    def one(self, body: bytes) -> T:
        """One object. Raises `msgspec.ValidationError` if it does not fit."""
        result: T = self._one.decode(body)
        return result

    def page(self, body: bytes) -> Page[T]:
        """One page of a list."""
        try:
            found = self._list.decode(body)
        except msgspec.ValidationError:
            return self._careful_page(body)
        return Page(found.items or (), (), found.metadata.resource_version, found.metadata.more)

    def event(self, line: bytes) -> Event[T] | Event[Unreadable] | Bookmark | Status:
        """One line of a watch: a change, a mark, or the reason for its end."""
        # kube-apiserver writes the type first; what does not start so is read the careful way.
        if line.startswith((b'{"type":"A', b'{"type":"M', b'{"type":"D')):
            try:
                result: Event[T] = self._event.decode(line)
            except msgspec.ValidationError:
                return self._careful_event(line)
            return result
        if line.startswith(b'{"type":"B'):
            return _bookmark(_MARK.decode(line).object.metadata)
        return self._careful_event(line)

    def _careful_page(self, body: bytes) -> Page[T]:
        found = _RAW_LIST.decode(body)
        read = [self._read(raw) for raw in found.items or ()]
        return Page(
            tuple(item for item in read if not isinstance(item, Unreadable)),
            tuple(item for item in read if isinstance(item, Unreadable)),
            found.metadata.resource_version,
            found.metadata.more,
        )

    def _careful_event(self, line: bytes) -> Event[T] | Event[Unreadable] | Bookmark | Status:
        event = _RAW_EVENT.decode(line)
        if event.type == BOOKMARK:
            return _bookmark(msgspec.json.decode(event.object, type=_Mark).metadata)
        if event.type == ERROR:
            return msgspec.json.decode(event.object, type=Status)
        read = self._read(event.object)
        if isinstance(read, Unreadable):
            return Event(event.type, read)
        return Event(event.type, read)

    def _read(self, raw: Raw) -> T | Unreadable:
        try:
            return self.one(bytes(raw))
        except msgspec.ValidationError as error:
            return Unreadable(_BARE.decode(raw).metadata, str(error))


_RAW_LIST = msgspec.json.Decoder(_List[Raw])
_RAW_EVENT = msgspec.json.Decoder(Event[Raw])
_BARE = msgspec.json.Decoder(_Bare)
_MARK = msgspec.json.Decoder(Event[_Mark])


def _bookmark(meta: _MarkMeta) -> Bookmark:
    noted = meta.annotations is not None and meta.annotations.get("k8s.io/initial-events-end") == "true"
    return Bookmark(meta.resource_version, noted)


def _untyped_meta(obj: Untyped) -> ObjectMeta:
    return msgspec.convert(obj.get("metadata") or {}, ObjectMeta)


def _typed_meta(obj: Any) -> ObjectMeta:
    meta: ObjectMeta = obj.metadata
    return meta


@cache
def _typed(kind: type[Object]) -> Codec[Any]:
    return Codec(kind.resource, kind, _typed_meta)


@cache
def untyped(resource: Resource) -> Codec[Untyped]:
    """Objects of this kind as dicts, whole."""
    return Codec(resource, Untyped, _untyped_meta)


@cache
def metadata_of(resource: Resource) -> Codec[PartialObject]:
    """Metadata alone of any kind: the server sends no more than that."""
    return Codec(resource, PartialObject, _typed_meta, _METADATA_ONLY.format(""))


def codec(kind: type[T] | Codec[T]) -> Codec[T]:
    """How objects of this kind are read: a typed kind's own codec, or the one given."""
    if isinstance(kind, Codec):
        return kind
    return _typed(kind)  # type: ignore[arg-type]  # a type without `resource` fails there, by name
