"""Representation: how objects are sent: as they are, their metadata alone (`PartialObjectMetadata`), or as a `Table`.

Works on encoded bytes where it can: metadata is cut out of an object, not decoded; lists and watch events are
concatenated. Only tables decode objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from kedge.embedded import tables
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import RequestInfo
from kedge.embedded.statuses import bad_request, not_acceptable
from kedge.embedded.store import Version, encode
from kedge.kube.codec import Untyped

Form: TypeAlias = Literal["whole", "metadata", "table"]

_ACCEPTED = ("application/json", "application/*", "*/*", "")
_METADATA_API = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
_TABLE_API = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Metadata(Struct):
    metadata: Raw


_cut = msgspec.json.Decoder(_Metadata).decode
_split = msgspec.json.Decoder(dict[str, Raw]).decode


class Representation(Struct, frozen=True):
    """Objects of one kind in one form, for one client. Equal representations have equal keys."""

    kind: Kind
    form: Form
    now: Callable[[], datetime]
    owners: bool  # with managedFields
    beside: str = "Metadata"  # what a table's row has beside its cells: Metadata, Object or None

    @property
    def key(self) -> str:
        return f"{self.kind.resource.version} {self.form} {self.beside} {self.owners}"

    def encode_object(self, version: Version) -> bytes:
        """Encode one object."""
        if self.form == "table":
            return self._table([version], {"resourceVersion": str(version.number)})
        return self._object(version)

    def encode_list(self, metadata: Untyped, versions: Iterable[Version]) -> bytes:
        """Encode a list."""
        if self.form == "table":
            return self._table(versions, metadata)
        resource = self.kind.resource
        kind, version = resource.kind, resource.api_version
        if self.form == "metadata":
            kind, version = _METADATA_API["kind"], _METADATA_API["apiVersion"]
        head = {"kind": f"{kind}List", "apiVersion": version, "metadata": metadata}
        items = b",".join(self._object(one) for one in versions)
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def encode_event(self, change: str, version: Version, *, first: bool = False) -> bytes:
        """Encode a watch event. Of tables only the first has column definitions."""
        if self.form == "table":
            metadata = {"resourceVersion": str(version.number)}
            return watch_event(change, self._table([version], metadata, columns=first))
        return watch_event(change, self._object(version))

    def encode_bookmark(self, number: int, *, initial_events_end: bool = False) -> bytes:
        """Encode the object of a bookmark."""
        metadata: Untyped = {"resourceVersion": str(number)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self.form == "table":
            cells = [""] * len(tables.columns(self.kind))
            row = {"cells": cells, "object": {**_METADATA_API, "metadata": metadata}}
            marked = {"metadata": {"resourceVersion": str(number)}, "columnDefinitions": None, "rows": [row]}
            return encode({**_TABLE_API, **marked})
        resource = self.kind.resource
        whole = {"kind": resource.kind, "apiVersion": resource.api_version}
        return encode({**(whole if self.form == "whole" else _METADATA_API), "metadata": metadata})

    def _object(self, version: Version) -> bytes:
        body = self._whole(version)
        return body if self.form == "whole" else _HEAD + bytes(_cut(body).metadata) + b"}"

    def _whole(self, version: Version) -> bytes:
        body = self.kind.custom.encoded_as_served(version.body, version.number) if self.kind.custom else version.body
        return _with_owners(version, body) if self.owners else body

    def _table(self, versions: Iterable[Version], metadata: Untyped, *, columns: bool = True) -> bytes:
        now = self.now()
        rows = [self._row(version, now) for version in versions]
        definitions = tables.columns(self.kind) if columns else None
        return msgspec.json.encode({**_TABLE_API, "metadata": metadata, "columnDefinitions": definitions, "rows": rows})

    def _row(self, version: Version, now: datetime) -> Mapping[str, object]:
        obj = msgspec.json.decode(self._whole(version))
        beside = {"Metadata": {**_METADATA_API, "metadata": obj["metadata"]}, "Object": obj}.get(self.beside)
        return {"cells": tables.cells(self.kind, obj, now), "object": beside, **tables.row_conditions(self.kind, obj)}


def requested_representation(
    info: RequestInfo, now: Callable[[], datetime], *, listing: bool = False
) -> Representation:
    """The representation that a request asks for."""
    form = accepted_form(info.request.accept, listing=listing)
    beside = dict(info.request.query).get("includeObject") or "Metadata"
    if form == "table" and beside not in ("Metadata", "Object", "None"):
        why = f"includeObject: Invalid value: \"{beside}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {why}")
    return Representation(info.kind, form, now, info.caller.sees_owners_of(info.kind.resource), beside)


def _with_owners(version: Version, body: bytes) -> bytes:
    """An object's body with `managedFields`, if there are any."""
    found = version.owners.encoded()
    if found == b"[]":
        return body
    whole = _split(body)
    metadata = _split(whole["metadata"]) | {"managedFields": Raw(found)}
    return encode(whole | {"metadata": metadata})


def watch_event(change: str, obj: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + change.encode() + b'","object":' + obj + b"}"


@lru_cache(maxsize=64)  # clients send the same few with every request
def accepted_form(accept: str, *, listing: bool = False) -> Form:
    """The first form in an Accept header that can be served."""
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        wanted = dict(parameter.partition("=")[::2] for parameter in parameters)
        if media in _ACCEPTED and (form := _form(wanted, listing=listing)):
            return form
    raise not_acceptable("application/json")


def _form(wanted: Mapping[str, str], *, listing: bool) -> Form | None:
    match wanted.get("as", ""):
        case "":
            return "whole"
        case "Table" if wanted.get("v", "v1") == "v1":
            return "table"
        case "PartialObjectMetadataList" if listing:
            return "metadata"
        case "PartialObjectMetadata" if not listing:
            return "metadata"
    return None
