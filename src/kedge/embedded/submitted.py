"""Submitted: the object that a client sent, decoded as one of its kind.

Of a patch or an apply it is what they make of the stored object, decoded as if it had been sent.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.embedded import request_body, statuses, validation
from kedge.embedded.kind import Kind
from kedge.embedded.options import WriteOptions
from kedge.embedded.ownership.field_owners import FieldOwners
from kedge.embedded.request_info import RequestInfo
from kedge.embedded.schema import strict_decoding
from kedge.kube.codec import Untyped

_LENIENT = WriteOptions(validation="Ignore")


class SubmittedObject(Struct, frozen=True):
    """The object that a client sent, warnings about it, and its field owners after an apply."""

    obj: Untyped
    warnings: tuple[str, ...] = ()
    owners: FieldOwners | None = None


def submitted(info: RequestInfo, asked: WriteOptions) -> SubmittedObject:
    """The object in the request."""
    return _decoded(
        info.kind,
        request_body.object_in(info.request, info.kind.resource, custom=info.kind.custom is not None),
        request_body.json_text_of(info.request),
        asked,
    )


def applied(kind: Kind, obj: Untyped, owners: FieldOwners, asked: WriteOptions) -> SubmittedObject:
    """The result of an apply, decoded as if it had been sent."""
    if kind.custom:
        validation.refuse_nulls(kind, obj)
    sent = _decoded(kind, obj, b"", asked)
    return SubmittedObject(sent.obj, sent.warnings, owners)


def changed_by_webhook(kind: Kind, obj: Untyped) -> Untyped:
    """What a webhook made of an object, decoded as if it had been sent. Who owns its fields is not the webhook's."""
    found = _decoded(kind, request_body.with_kind(obj, kind.resource), b"", _LENIENT).obj
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "managedFields"}}


def creatable(kind: Kind, applied: Untyped) -> Untyped:
    """The applied object as a new one."""
    metadata = dict(applied["metadata"])
    metadata.pop("resourceVersion", None)
    if uid := metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise statuses.conflict(kind.resource, metadata["name"], why)
    return {**applied, "metadata": metadata}


def without_version(obj: Untyped) -> Untyped:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def _decoded(kind: Kind, obj: Untyped, text: bytes, asked: WriteOptions) -> SubmittedObject:
    schema, custom = kind.schema, kind.custom is not None
    if schema is None:
        return SubmittedObject(request_body.checked_without_schema(obj, kind.resource))
    found = strict_decoding.decode_sent(schema, kind.resource, obj, text, asked.validation, custom=custom)
    return SubmittedObject(request_body.with_clean_metadata(found.obj, obj), found.warnings)
