"""Forms: how objects go out: whole, or their metadata alone (`PartialObjectMetadata`).

Works on encoded bytes: metadata is cut out of an object, not decoded; lists and watch events are put together.
Tables are not served yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from kedge.api.resource import Resource
from kedge.embedded.statuses import not_acceptable
from kedge.embedded.store import Untyped, encode

Form: TypeAlias = Literal["whole", "metadata"]

_ACCEPTED = ("application/json", "application/*", "*/*", "")
_METADATA_API = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Metadata(Struct):
    metadata: Raw


_cut = msgspec.json.Decoder(_Metadata).decode


@lru_cache(maxsize=64)  # clients send a handful of these, with every request
def chosen(accept: str, *, listing: bool = False) -> Form:
    """The first form in an Accept header that can be served."""
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        wanted = dict(parameter.partition("=")[::2] for parameter in parameters).get("as", "")
        if media not in _ACCEPTED:
            continue
        if not wanted:
            return "whole"
        if wanted == ("PartialObjectMetadataList" if listing else "PartialObjectMetadata"):
            return "metadata"
    raise not_acceptable("application/json")


def one(body: bytes, form: Form) -> bytes:
    """An object in this form."""
    return body if form == "whole" else _HEAD + bytes(_cut(body).metadata) + b"}"


def many(resource: Resource, form: Form, metadata: Untyped, bodies: Iterable[bytes]) -> bytes:
    """A list in this form."""
    kind, version = resource.kind, resource.api_version
    if form == "metadata":
        kind, version = _METADATA_API["kind"], _METADATA_API["apiVersion"]
    head = {"kind": f"{kind}List", "apiVersion": version, "metadata": metadata}
    items = b",".join(one(body, form) for body in bodies)
    return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"


def bookmark(resource: Resource, form: Form, number: int, *, initial_events_end: bool = False) -> bytes:
    """An object that says nothing but how far the server has got."""
    metadata: Untyped = {"resourceVersion": str(number)}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    kind = {"kind": resource.kind, "apiVersion": resource.api_version} if form == "whole" else _METADATA_API
    return encode({**kind, "metadata": metadata})


def event(kind: str, obj: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}"
