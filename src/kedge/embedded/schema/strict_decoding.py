"""Strict decoding: an object that was sent, without unknown fields, and what to say about them.

    decoded = decode_sent(schema, resource, obj, raw, "Warn")
    decoded.obj, decoded.warnings

For built-in and custom kinds. Unknown and duplicate fields are dropped; by `fieldValidation` they are an error, a
warning, or ignored. Values of the wrong type are refused as kube-apiserver does: a sent object with 400, the result of
a patch with 422.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.causes import invalid_value, unsupported_value
from kedge.embedded.go_text import go_print
from kedge.embedded.schema import builtin_decoding, pruning, unknown_fields
from kedge.embedded.schema.type_errors import TypeMismatch
from kedge.embedded.statuses import Refused, bad_request, invalid, invalid_options
from kedge.kube.codec import Untyped

Json: TypeAlias = Any
FieldValidation: TypeAlias = Literal["Strict", "Warn", "Ignore"]

_NO_RESOURCE = Resource("", "", "", "")  # a refused patch names no resource


class DecodedObject(Struct, frozen=True):
    """A decoded object, and what to warn of."""

    obj: Untyped
    warnings: tuple[str, ...] = ()


def field_validation(query: Mapping[str, str], options: str) -> FieldValidation:
    """What to do about unknown fields; `options` is the type of the request's options (`CreateOptions`)."""
    asked = query.get("fieldValidation", "")
    if asked not in ("", "Ignore", "Strict", "Warn"):
        raise invalid_options(options, unsupported_value("fieldValidation", asked, ("", "Ignore", "Strict", "Warn")))
    return cast("FieldValidation", asked or "Warn")


def decode_sent(
    schema: Schema, resource: Resource, obj: Untyped, raw: bytes, validation: FieldValidation, *, custom: bool = False
) -> DecodedObject:
    """An object that was sent whole; `raw` is the JSON text it was decoded from, if it was."""
    handled = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    try:
        found = pruning.pruned(schema, obj) if custom else builtin_decoding.decode_struct(schema, obj)
    except TypeMismatch as mismatch:
        raise bad_request(f"{handled}: {mismatch}") from None
    if validation == "Ignore" or not (found.has_unknown or (raw and unknown_fields.has_duplicates(raw, obj))):
        return DecodedObject(found.obj)
    words = (
        unknown_fields.in_custom(schema, obj, found.obj, raw) if custom else unknown_fields.in_builtin(schema, obj, raw)
    )
    if validation == "Strict" and words:
        raise bad_request(f"{handled}: strict decoding error: {', '.join(words)}")
    return DecodedObject(found.obj, words)


def decode_patched(
    schema: Schema,
    obj: Untyped,
    validation: FieldValidation,
    *,
    known: Untyped | None = None,
    strategic: Untyped | None = None,
    twice: tuple[str, ...] = (),
    custom: bool = False,
) -> DecodedObject:
    """An object that a patch made.

    `known` is the object before, whose untouched members need no second look; `strategic` the patch, if it was a
    strategic merge; `twice` what `duplicates_in_patch` found.
    """
    try:
        found = pruning.pruned(schema, obj, known) if custom else builtin_decoding.decode_struct(schema, obj, known)
    except TypeMismatch as mismatch:
        why = str(mismatch) if strategic is None else mismatch.after_merging
        raise _bad_patch(obj, strategic, why) from None
    if validation == "Ignore" or not (found.has_unknown or twice):
        return DecodedObject(found.obj)
    # A patched object is told of in the order of its names.
    words = (
        unknown_fields.in_custom(schema, obj, found.obj)
        if custom
        else unknown_fields.in_builtin(schema, unknown_fields.sorted_members(obj))
    )
    if validation == "Strict":
        raise _bad_patch(obj, strategic, f"strict decoding error: {', '.join((*twice, *words))}")
    return DecodedObject(found.obj, (*twice, *words))


def duplicates_in_patch(raw: bytes, decoded: Json, validation: FieldValidation) -> tuple[str, ...]:
    """What the text of a patch says twice, in words; nothing if nobody wants to know."""
    if validation == "Ignore" or not unknown_fields.has_duplicates(raw, decoded):
        return ()
    start = "json patch duplicate field" if isinstance(decoded, list) else "duplicate field"
    return tuple(f'{start} "{path}"' for path in unknown_fields.duplicates(raw))


def _bad_patch(obj: Untyped, strategic: Untyped | None, why: str) -> Refused:
    text = go_print(strategic) if strategic is not None else msgspec.json.encode(obj, order="sorted").decode()
    return invalid(_NO_RESOURCE, "", [invalid_value("patch", text, why)])
