"""Bodies: what is written to an API server, as bytes.

A body is a mapping, or a typed object; either says what it is only when it is encoded. Preconditions go where the
server looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from kedge.api.meta import Value
from kedge.api.resource import Resource

Body: TypeAlias = Mapping[str, Any] | Value


def encode(resource: Resource, body: Body) -> bytes:
    """The bytes of an object, saying what it is."""
    if isinstance(body, Mapping):
        return msgspec.json.encode({"apiVersion": resource.api_version, "kind": resource.kind, **body})
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}"'.encode()
    rest = msgspec.json.encode(body)
    return head + (b"," if len(rest) > 2 else b"") + rest[1:]


def meta_in(body: Body, name: str) -> str | None:
    """One text of a body's metadata."""
    if isinstance(body, Mapping):
        value: str | None = (body.get("metadata") or {}).get(name)
        return value
    return getattr(getattr(body, "metadata", None), name, None)


def name_in(body: Body) -> str:
    """The name a body must have."""
    name = meta_in(body, "name")
    if not name:
        raise ValueError("the object has no metadata.name")
    return name


def for_one(body: Body, uid: str | None, resource_version: str | None) -> Body:
    """The same body, for the object with this uid and resourceVersion only."""
    if isinstance(body, Mapping):
        return with_preconditions(body, uid, resource_version)
    if uid or resource_version:
        raise TypeError("a typed object carries its preconditions itself: set them in its metadata")
    return body


def with_preconditions(body: Mapping[str, Any], uid: str | None, resource_version: str | None) -> Mapping[str, Any]:
    """The same mapping, for the object with this uid and resourceVersion only."""
    meta = preconditions(uid, resource_version)
    return {**body, "metadata": {**(body.get("metadata") or {}), **meta}} if meta else body


def delete_options(
    uid: str | None, resource_version: str | None, propagation: str | None, grace_seconds: int | None, dry_run: bool
) -> bytes:
    """The body of a DELETE."""
    options = {
        "preconditions": preconditions(uid, resource_version) or None,
        "propagationPolicy": propagation,
        "gracePeriodSeconds": grace_seconds,
        "dryRun": ["All"] if dry_run else None,  # not in the query: a server that finds a body does not look there
    }
    given = {key: value for key, value in options.items() if value is not None}
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **given})


def preconditions(uid: str | None, resource_version: str | None) -> dict[str, str]:
    """Those that are given, under their names on the wire."""
    wanted = {"uid": uid, "resourceVersion": resource_version}
    return {key: value for key, value in wanted.items() if value}
