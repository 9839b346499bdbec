"""Intake: what a server takes in of what it is sent, and what it says about the rest.

    intake = of_sent(schema, resource, obj, raw, "Warn")
    intake.obj, intake.warnings

One door for built-in kinds and custom ones: what a kind does not know is dropped, and by `fieldValidation` that is a
refusal, a warning, or nobody's business. Refuses, as kube-apiserver does, values of the wrong type: a sent object with
400, an object that a patch made so with 422.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.schema import pruning, reading, strays
from kedge.embedded.schema.gotext import go_text
from kedge.embedded.schema.misfits import Misfit
from kedge.embedded.statuses import Refused, bad_request, invalid, invalid_options, unsupported, wrong

Json: TypeAlias = Any
Untyped: TypeAlias = dict[str, Any]
FieldValidation: TypeAlias = Literal["Strict", "Warn", "Ignore"]

_NOBODY = Resource("", "", "", "")  # whom a patch's refusal is about


class Intake(Struct, frozen=True):
    """An object as it was taken in, and what to warn of."""

    obj: Untyped
    warnings: tuple[str, ...] = ()


def field_validation(query: Mapping[str, str], options: str) -> FieldValidation:
    """What to do about strays; `options` is what Kubernetes calls the options of the request (`CreateOptions`)."""
    asked = query.get("fieldValidation", "")
    if asked not in ("", "Ignore", "Strict", "Warn"):
        raise invalid_options(options, unsupported("fieldValidation", f'"{asked}"', "", "Ignore", "Strict", "Warn"))
    return cast("FieldValidation", asked or "Warn")


def of_sent(
    schema: Schema, resource: Resource, obj: Untyped, raw: bytes, validation: FieldValidation, *, custom: bool = False
) -> Intake:
    """An object that was sent whole; `raw` is the JSON text it was decoded from, if it was."""
    handled = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    try:
        found = pruning.pruned(schema, obj) if custom else reading.read(schema, obj)
    except Misfit as misfit:
        raise bad_request(f"{handled}: {misfit}") from None
    if validation == "Ignore" or not (found.has_unknown or (raw and strays.has_duplicates(raw, obj))):
        return Intake(found.obj)
    words = strays.of_custom(schema, obj, found.obj, raw) if custom else strays.of_builtin(schema, obj, raw)
    if validation == "Strict" and words:
        raise bad_request(f"{handled}: strict decoding error: {', '.join(words)}")
    return Intake(found.obj, words)


def of_patched(
    schema: Schema,
    obj: Untyped,
    validation: FieldValidation,
    *,
    known: Untyped | None = None,
    strategic: Untyped | None = None,
    twice: tuple[str, ...] = (),
    custom: bool = False,
) -> Intake:
    """An object that a patch made.

    `known` is the object before, whose untouched members need no second look; `strategic` the patch, if it was a
    strategic merge; `twice` what `twice_in_patch` found.
    """
    try:
        found = pruning.pruned(schema, obj, known) if custom else reading.read(schema, obj, known)
    except Misfit as misfit:
        why = str(misfit) if strategic is None else misfit.after_merging
        raise _bad_patch(obj, strategic, why) from None
    if validation == "Ignore" or not (found.has_unknown or twice):
        return Intake(found.obj)
    # A patched object is told of in the order of its names.
    words = strays.of_custom(schema, obj, found.obj) if custom else strays.of_builtin(schema, strays.in_order(obj))
    if validation == "Strict":
        raise _bad_patch(obj, strategic, f"strict decoding error: {', '.join((*twice, *words))}")
    return Intake(found.obj, (*twice, *words))


def twice_in_patch(raw: bytes, decoded: Json, validation: FieldValidation) -> tuple[str, ...]:
    """What the text of a patch says twice, in words; nothing if nobody wants to know."""
    if validation == "Ignore" or not strays.has_duplicates(raw, decoded):
        return ()
    start = "json patch duplicate field" if isinstance(decoded, list) else "duplicate field"
    return tuple(f'{start} "{path}"' for path in strays.duplicates(raw))


def _bad_patch(obj: Untyped, strategic: Untyped | None, why: str) -> Refused:
    text = go_text(strategic) if strategic is not None else msgspec.json.encode(obj, order="sorted").decode()
    return invalid(_NOBODY, "", [wrong("patch", msgspec.json.encode(text).decode(), why)])
