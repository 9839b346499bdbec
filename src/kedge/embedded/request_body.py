"""Request body: what clients send, decoded as objects, patches or options.

Reads JSON, and YAML or protobuf where the content type says so. Promises an object of the requested kind; its content
is checked by its schema. An object of a kind without a schema is accepted as it is, except for its metadata: known
fields only, none null or empty.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml
from msgspec import Struct

from kedge.api.openapi.builtin import schema_of
from kedge.api.resource import Resource
from kedge.embedded.protobuf import object_decoding
from kedge.embedded.protobuf.object_decoding import Malformed
from kedge.embedded.schema import builtin_decoding
from kedge.embedded.schema.type_errors import TypeMismatch
from kedge.embedded.statuses import Refused, bad_request, unsupported_type
from kedge.kube.codec import Untyped
from kedge.kube.transport import JSON, Request

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_SHOWN = 30  # bytes of an unreadable body
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


class _ObjectHead(Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: _Metadata | None = None


_METADATA_FIELDS = _Metadata.__struct_encode_fields__


def object_in(request: Request, resource: Resource, *, custom: bool = False) -> Untyped:
    """The object in a request; it may omit apiVersion and kind, unless its kind is a custom one."""
    media = media_type(request)
    if media == PROTOBUF:
        return _from_protobuf(request.body, resource)
    obj = _object(request.body, resource, yaml_too=media == YAML)
    if custom:
        _refuse_untold_kind(obj, request.body, resource)
    return with_kind(obj, resource)


def media_type(request: Request) -> str:
    """The media type of a body, JSON by default. Refuses unknown ones."""
    media = request.content_type.partition(";")[0].strip() or JSON
    if media not in (JSON, YAML, PROTOBUF):
        raise unsupported_type(JSON, YAML, PROTOBUF)
    return media


def json_text_of(request: Request) -> bytes:
    """The body, if it is JSON, which may have duplicate members; otherwise nothing."""
    return request.body if request.body.lstrip()[:1] == b"{" else b""


def delete_options_in(request: Request) -> Any:
    """The DeleteOptions in a request that is not JSON."""
    if media_type(request) == YAML:
        return _from_yaml(request.body, "the body is no DeleteOptions")
    try:
        return object_decoding.decode_delete_options(request.body)
    except Malformed as error:
        raise bad_request(str(error)) from None


def applied_object_in(request: Request, resource: Resource) -> Untyped:
    """The object in an apply; it must have apiVersion and kind, and no managedFields."""
    obj = _object(request.body, resource, yaml_too=True)
    if not (obj.get("apiVersion") and obj.get("kind")):
        raise bad_request("invalid object type: an applied object says its apiVersion and kind")
    if (obj["apiVersion"], obj["kind"]) != (resource.api_version, resource.kind):
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={obj['kind']}")
    sent = with_kind(obj, resource)
    if isinstance(obj.get("metadata"), dict) and obj["metadata"].get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return sent


def merge_patch_in(request: Request) -> Untyped:
    """The merge patch in a request."""
    patch = _decoded(request.body, "error decoding patch")
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    return patch


def json_patch_in(request: Request) -> list[Untyped]:
    """The JSON patch in a request."""
    patch = _decoded(request.body, "error decoding patch")
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    return patch


def with_kind(obj: Untyped, resource: Resource) -> Untyped:
    """The object with its kind filled in. Refuses one of another kind."""
    api_version, kind = obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise _wrong_object(obj, resource, f"it says it is a {kind} of {api_version}")
    return {**obj, "apiVersion": api_version, "kind": kind}


def checked_without_schema(obj: Untyped, resource: Resource) -> Untyped:
    """An object of a kind without schema, with its kind and clean metadata."""
    try:
        msgspec.convert(obj, _ObjectHead)
    except msgspec.ValidationError as error:
        raise _wrong_object(obj, resource, str(error)) from None
    return with_clean_metadata(with_kind(obj, resource))


def with_clean_metadata(obj: Untyped, sent: Untyped | None = None) -> Untyped:
    """The object with clean metadata: without null, empty or unknown fields.

    `sent` is the object before it was decoded, which may have dropped an empty `managedFields`.
    """
    metadata = obj.get("metadata") or {}
    kept = {name: metadata[name] for name in _METADATA_FIELDS if metadata.get(name) not in (None, "", {}, [])}
    owners = ((sent or obj).get("metadata") or {}).get("managedFields")
    if isinstance(owners, list):  # an empty list resets all owners
        kept["managedFields"] = owners
    return {**obj, "metadata": kept}


def _refuse_untold_kind(obj: Untyped, body: bytes, resource: Resource) -> None:
    """No Go type stands behind a custom kind, so an object says itself what it is."""
    if not obj.get("kind"):
        text = body.decode(errors="replace")
        short = text if len(body) <= _SHOWN else f"{body[:_SHOWN].decode(errors='replace')} ..."
        why = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise bad_request(f"{why}: Object 'Kind' is missing in '{text}' ({short})")
    if (said := obj.get("apiVersion") or "") != resource.api_version:
        why = f"does not match the expected API version ({resource.api_version})"
        raise bad_request(f"the API version in the data ({said}) {why}")


def _object(body: bytes, resource: Resource, *, yaml_too: bool) -> Untyped:
    unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
    read = _from_yaml if yaml_too and body.lstrip()[:1] != b"{" else _decoded
    obj = read(body, unrecognized)
    if not isinstance(obj, dict):
        raise bad_request(f"{unrecognized}: it is no JSON object")
    return obj


def _from_protobuf(body: bytes, resource: Resource) -> Untyped:
    """The object in a body, as if sent as JSON: without the empty members that protobuf writes."""
    try:
        envelope = object_decoding.open_envelope(body).or_else(resource.api_version, resource.kind)
    except Malformed as error:
        unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise bad_request(f"{unrecognized}: {error} ({_shown(body)})") from None
    said = with_kind({"apiVersion": envelope.api_version, "kind": envelope.kind}, resource)
    try:
        obj = object_decoding.decode_content(envelope)
        return builtin_decoding.decode_struct(schema_of(resource.group, resource.version, resource.kind), obj).obj
    except (Malformed, TypeMismatch) as error:
        raise _wrong_object(said, resource, str(error)) from None


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


def _wrong_object(obj: Untyped, resource: Resource, why: str) -> Refused:
    kind = obj.get("kind") or resource.kind
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')
