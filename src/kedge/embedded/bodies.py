"""Bodies: what clients send, read as objects.

Takes JSON, and YAML or protobuf where a client says so. Promises an object of the kind asked for; what is in it is for
its schema to say. A kind without a schema is taken as it comes, but for its metadata: known fields only, none null or
empty.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml
from msgspec import Struct

from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded.protobuf import objects
from kedge.embedded.protobuf.objects import Malformed
from kedge.embedded.schema import builtin_decoding
from kedge.embedded.schema.type_errors import TypeMismatch
from kedge.embedded.statuses import Refused, bad_request, unsupported_type
from kedge.embedded.store import Untyped
from kedge.kube.transport import JSON, Request

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_SHOWN = 30  # bytes of a body that nobody can read
_YamlLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
    media = media_type(request)
    if media == PROTOBUF:
        return _from_protobuf(request.body, resource)
    return claimed(_object(request.body, resource, yaml_too=media == YAML), resource)


def media_type(request: Request) -> str:
    """What a body is written in: JSON unless it says otherwise. Refuses what nobody can read."""
    media = request.content_type.partition(";")[0].strip() or JSON
    if media not in (JSON, YAML, PROTOBUF):
        raise unsupported_type(JSON, YAML, PROTOBUF)
    return media


def json_text(request: Request) -> bytes:
    """The body, if it is JSON, which can have a member twice; otherwise nothing."""
    return request.body if request.body.lstrip()[:1] == b"{" else b""


def delete_options(request: Request) -> Any:
    """The DeleteOptions in a request that writes them in other than JSON."""
    if media_type(request) == YAML:
        return _from_yaml(request.body, "the body is no DeleteOptions")
    try:
        return objects.decode_delete_options(request.body)
    except Malformed as error:
        raise bad_request(str(error)) from None


def applied(request: Request, resource: Resource) -> Untyped:
    """The object in an apply; it must say what kind it is, and not who owns its fields."""
    obj = _object(request.body, resource, yaml_too=True)
    if not (obj.get("apiVersion") and obj.get("kind")):
        raise bad_request("invalid object type: an applied object says its apiVersion and kind")
    if (obj["apiVersion"], obj["kind"]) != (resource.api_version, resource.kind):
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={obj['kind']}")
    sent = claimed(obj, resource)
    if isinstance(obj.get("metadata"), dict) and obj["metadata"].get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return sent


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


def claimed(obj: Untyped, resource: Resource) -> Untyped:
    """The object with its kind filled in. Refuses one of another kind."""
    api_version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise _misfit(obj, resource, f"it says it is a {kind} of {api_version}")
    return {**obj, "apiVersion": api_version, "kind": kind}


def of_kind(obj: Untyped, resource: Resource) -> Untyped:
    """An object of a kind without schema, with its kind filled in and its metadata in shape."""
    try:
        msgspec.convert(obj, _Shape)
    except msgspec.ValidationError as error:
        raise _misfit(obj, resource, str(error)) from None
    return shaped(claimed(obj, resource))


def shaped(obj: Untyped, sent: Untyped | None = None) -> Untyped:
    """The object with its metadata in shape: without what is null, empty or unknown.

    `sent` is the object before it was read, if that may have cost it an empty `managedFields`.
    """
    metadata = obj.get("metadata") or {}
    kept = {name: metadata[name] for name in _FIELDS if metadata.get(name) not in (None, "", {}, [])}
    owners = ((sent or obj).get("metadata") or {}).get("managedFields")
    if isinstance(owners, list):  # an empty one says that nobody owns anything
        kept["managedFields"] = owners
    return {**obj, "metadata": kept}


def _object(body: bytes, resource: Resource, *, yaml_too: bool) -> Untyped:
    unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
    read = _from_yaml if yaml_too and body.lstrip()[:1] != b"{" else _decoded
    obj = read(body, unrecognized)
    if not isinstance(obj, dict):
        raise bad_request(f"{unrecognized}: it is no JSON object")
    return obj


def _from_protobuf(body: bytes, resource: Resource) -> Untyped:
    """The object in a body, as if it had come as JSON: without the nothings that protobuf writes."""
    try:
        envelope = objects.open_envelope(body).or_else(resource.api_version, resource.kind)
    except Malformed as error:
        unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise bad_request(f"{unrecognized}: {error} ({_shown(body)})") from None
    said = claimed({"apiVersion": envelope.api_version, "kind": envelope.kind}, resource)
    try:
        obj = objects.decode_content(envelope)
        return builtin_decoding.decode_struct(schema_of(resource.group, resource.version, resource.kind), obj).obj
    except (Malformed, TypeMismatch) as error:
        raise _misfit(said, resource, str(error)) from None


def _shown(body: bytes) -> str:
    more = " ..." if len(body) > _SHOWN else ""
    return body[:_SHOWN].hex() + more if body else "<empty>"


def _from_yaml(body: bytes, otherwise: str) -> Any:
    try:
        return yaml.load(body, Loader=_YamlLoader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise bad_request(f"{otherwise}: {error}") from None


def _decoded(body: bytes, otherwise: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:  # not only DecodeError: text that is no UTF-8, nesting without end
        raise bad_request(f"{otherwise}: {error}") from None


def _misfit(obj: Untyped, resource: Resource, why: str) -> Refused:
    kind = obj.get("kind") or resource.kind
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')
