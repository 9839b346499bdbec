"""Patch request: the patch in a request, and the object that it makes.

`json_patch` and `schema.strategic_merge` do the patching; here is which of them a request asks for, and the check that
the result is still an object of its kind.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Raw, Struct

from kedge.embedded import request_body, statuses
from kedge.embedded.causes import invalid_value
from kedge.embedded.json_patch import json_patch, merge_patch
from kedge.embedded.kind import Kind
from kedge.embedded.schema import strict_decoding
from kedge.embedded.schema.strategic_merge import strategic_merge
from kedge.embedded.schema.strict_decoding import DecodedObject, FieldValidation
from kedge.embedded.store import encode
from kedge.kube import patches
from kedge.kube.codec import Untyped
from kedge.kube.patches import JsonPatch, MergePatch
from kedge.kube.transport import Request

Json: TypeAlias = Any
STRATEGIC = "application/strategic-merge-patch+json"


class PatchRequest(Struct, frozen=True):
    """A JSON patch, merge patch or strategic merge patch."""

    media: str
    body: Json
    validation: FieldValidation
    twice: tuple[str, ...]  # duplicate members in its text
    is_about_owners: bool = False

    def applied_to(self, kind: Kind, old: Untyped) -> Json:
        """The patched object, unchecked."""
        match self.media:
            case MergePatch.content_type:
                return merge_patch(old, self.body)
            case JsonPatch.content_type:
                return json_patch(old, self.body)
        assert kind.schema is not None, "a strategic merge patch is refused for kinds without a schema"
        return strategic_merge(kind.schema, old, self.body)

    def made_of(self, kind: Kind, old: Untyped) -> DecodedObject:
        """The patched object, decoded as one of its kind."""
        new = _checked_kind(kind, self.applied_to(kind, old))
        if kind.schema is None:
            return DecodedObject(request_body.checked_without_schema(new, kind.resource))
        found = strict_decoding.decode_patched(
            kind.schema,
            new,
            self.validation,
            known=old,
            strategic=self.body if self.media == STRATEGIC else None,
            twice=self.twice,
            custom=kind.custom is not None,
        )
        return DecodedObject(request_body.with_clean_metadata(found.obj, new), found.warnings)


def patch_in(request: Request, kind: Kind, validation: FieldValidation) -> PatchRequest:
    """The patch in a request."""
    media = request.content_type.partition(";")[0].strip()
    mergeable = kind.schema is not None and kind.custom is None
    known = (JsonPatch.content_type, MergePatch.content_type, *((STRATEGIC,) if mergeable else ()))
    if media not in known:
        raise statuses.unsupported_type(*known, patches.APPLY)
    body = (
        request_body.json_patch_in(request) if media == JsonPatch.content_type else request_body.merge_patch_in(request)
    )
    twice = strict_decoding.duplicates_in_patch(request.body, body, validation)
    return PatchRequest(media, body, validation, twice, is_about_owners=b"managedFields" in request.body)


def _checked_kind(kind: Kind, patched: Json) -> Untyped:
    """The patched object. Refused if its apiVersion or kind changed."""
    resource = kind.resource
    if not isinstance(patched, dict) or (patched.get("apiVersion"), patched.get("kind")) != (
        resource.api_version,
        resource.kind,
    ):
        cause = invalid_value("patch", Raw(encode(patched)), f"it made the object no {resource.kind} any more")
        raise statuses.invalid(resource, "", [cause])
    return patched
