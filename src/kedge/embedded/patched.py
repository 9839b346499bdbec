"""Patched: an object and the patch in a request give an object of its kind, or a refusal.

The ways of patching are `patching`'s and `schema.strategic`'s; here is which one a request asks for, and that what
comes out of it is still an object of its kind.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from kedge.embedded import bodies, statuses
from kedge.embedded.kind import Kind
from kedge.embedded.patching import json_patch, merge_patch
from kedge.embedded.schema import strict_decoding
from kedge.embedded.schema.strategic_merge import strategic_merge
from kedge.embedded.schema.strict_decoding import DecodedObject, FieldValidation
from kedge.embedded.store import Untyped, encode
from kedge.kube import patches
from kedge.kube.patches import JsonPatch, MergePatch
from kedge.kube.transport import Request

Json: TypeAlias = Any
STRATEGIC = "application/strategic-merge-patch+json"


class Patch(Struct, frozen=True):
    """A patch, in one of the ways there are."""

    media: str
    body: Json
    validation: FieldValidation
    twice: tuple[str, ...]  # what its text says twice
    is_about_owners: bool = False

    def applied_to(self, kind: Kind, old: Untyped) -> Json:
        """What it makes of an object."""
        match self.media:
            case MergePatch.content_type:
                return merge_patch(old, self.body)
            case JsonPatch.content_type:
                return json_patch(old, self.body)
        assert kind.schema is not None, "a strategic merge patch is refused for kinds without a schema"
        return strategic_merge(kind.schema, old, self.body)

    def made_of(self, kind: Kind, old: Untyped) -> DecodedObject:
        """The same, read as an object of its kind."""
        new = _still(kind, self.applied_to(kind, old))
        if kind.schema is None:
            return DecodedObject(bodies.of_kind(new, kind.resource))
        found = strict_decoding.decode_patched(
            kind.schema,
            new,
            self.validation,
            known=old,
            strategic=self.body if self.media == STRATEGIC else None,
            twice=self.twice,
            custom=kind.custom is not None,
        )
        return DecodedObject(bodies.shaped(found.obj, new), found.warnings)


def asked_for(request: Request, kind: Kind, validation: FieldValidation) -> Patch:
    """The patch in a request."""
    media = request.content_type.partition(";")[0].strip()
    mergeable = kind.schema is not None and kind.custom is None
    known = (JsonPatch.content_type, MergePatch.content_type, *((STRATEGIC,) if mergeable else ()))
    if media not in known:
        raise statuses.unsupported_type(*known, patches.APPLY)
    body = bodies.operations_from(request) if media == JsonPatch.content_type else bodies.merge_from(request)
    twice = strict_decoding.duplicates_in_patch(request.body, body, validation)
    return Patch(media, body, validation, twice, is_about_owners=b"managedFields" in request.body)


def _still(kind: Kind, patched: Json) -> Untyped:
    """What a patch made of an object, unless it made it something else."""
    resource = kind.resource
    if not isinstance(patched, dict) or (patched.get("apiVersion"), patched.get("kind")) != (
        resource.api_version,
        resource.kind,
    ):
        cause = statuses.wrong("patch", encode(patched).decode(), f"it made the object no {resource.kind} any more")
        raise statuses.invalid(resource, "", [cause])
    return patched
