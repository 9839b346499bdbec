"""Bodies: what clients send, read as objects.

Promises an object of the kind asked for, with metadata of the right shape: known fields only, none of them null or
empty. What lies outside metadata is taken as it comes: there are no schemas yet. Takes JSON, not YAML; apply, whose
media type says YAML, takes the JSON that is YAML too.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.resource import Resource
from kedge.embedded.statuses import Refused, bad_request, unsupported_type
from kedge.embedded.store import Untyped
from kedge.kube.transport import JSON, Request


class _Owner(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Metadata(Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: list[Any] | None = None


class _Shape(Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: _Metadata | None = None


_FIELDS = _Metadata.__struct_encode_fields__


def posted(request: Request, resource: Resource) -> Untyped:
    """The object in a request; it may leave out what kind it is."""
    if request.content_type.partition(";")[0].strip() not in (JSON, ""):
        raise unsupported_type(JSON)
    return of_kind(_object(request.body, resource), resource)


def applied(request: Request, resource: Resource) -> Untyped:
    """The object in an apply; it must say what kind it is, and not who owns its fields."""
    obj = _object(request.body, resource)
    if not (obj.get("apiVersion") and obj.get("kind")):
        raise bad_request("invalid object type: an applied object says its apiVersion and kind")
    shaped = of_kind(obj, resource)
    if shaped["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return shaped


def merge_from(request: Request) -> Untyped:
    """The merge patch in a request."""
    patch = _decoded(request.body, "error decoding patch")
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    return patch


def operations_from(request: Request) -> list[Untyped]:
    """The JSON patch in a request."""
    patch = _decoded(request.body, "error decoding patch")
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    return patch


def of_kind(obj: Untyped, resource: Resource) -> Untyped:
    """The object with its kind filled in and its metadata in shape. Refuses one of another kind."""
    try:
        msgspec.convert(obj, _Shape)
    except msgspec.ValidationError as error:
        raise _misfit(obj, resource, str(error)) from None
    api_version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise _misfit(obj, resource, f"it says it is a {kind} of {api_version}")
    return {**obj, "apiVersion": api_version, "kind": kind, "metadata": in_shape(obj.get("metadata") or {})}


def in_shape(metadata: Untyped) -> Untyped:
    """Metadata without what is null, empty or unknown."""
    return {name: metadata[name] for name in _FIELDS if metadata.get(name) not in (None, "", {}, [])}


def _object(body: bytes, resource: Resource) -> Untyped:
    unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
    obj = _decoded(body, unrecognized)
    if not isinstance(obj, dict):
        raise bad_request(f"{unrecognized}: it is no JSON object")
    return obj


def _decoded(body: bytes, otherwise: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:  # not only DecodeError: text that is no UTF-8, nesting without end
        raise bad_request(f"{otherwise}: {error}") from None


def _misfit(obj: Untyped, resource: Resource, why: str) -> Refused:
    kind = obj.get("kind") or resource.kind
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')
