"""Review: the AdmissionReview that a webhook is sent, and the verdict in the one it sends back.

The words about an answer that cannot be used are those of kube-apiserver.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.admission import ADMISSION, KindName, ResourceName
from kedge.embedded.admission.attributes import Attributes
from kedge.embedded.admission.webhook import Webhook
from kedge.embedded.statuses import Refused
from kedge.kube.codec import Untyped

_VERSIONS = ("v1", "v1beta1")
_DENIED = 'admission webhook "{}" denied the request'


class InvalidResponse(Exception):
    """An answer that is no proper verdict."""


class _Status(Struct):
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None
    code: int = 0


class Verdict(Struct, frozen=True):
    """What a webhook answered. `patch` is a JSON patch."""

    allowed: bool
    status: _Status | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: tuple[str, ...] = ()


class _Response(Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: _Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: tuple[str, ...] | None = None


class _Review(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


def request_of(asked: Attributes, uid: str, resource: ResourceName, kind: KindName) -> Untyped:
    """The `request` of a review; `resource` and `kind` are those that the webhook asked for."""
    about: Untyped = {"uid": uid, "kind": _kind(kind), "resource": _resource(resource)}
    where = {"name": asked.name, "namespace": asked.namespace}
    return {
        **about,
        **({"subResource": asked.subresource} if asked.subresource else {}),
        "requestKind": _kind(asked.kind),
        "requestResource": _resource(asked.resource),
        **({"requestSubResource": asked.subresource} if asked.subresource else {}),
        **{key: value for key, value in where.items() if value},
        "operation": asked.operation,
        "userInfo": {"username": asked.caller.user, "groups": list(asked.caller.groups)},
        "object": asked.obj,
        "oldObject": asked.old,
        "dryRun": asked.dry_run,
        "options": asked.options,
    }


def review_of(hook: Webhook, request: Untyped) -> bytes:
    """The review, in the first version that the webhook and the server know."""
    version = next((one for one in hook.admission_review_versions if one in _VERSIONS), _VERSIONS[0])
    review = {"kind": "AdmissionReview", "apiVersion": f"{ADMISSION}/{version}", "request": request}
    return msgspec.json.encode(review)


def verdict_in(body: bytes, asked: bytes, uid: str, *, mutating: bool) -> Verdict:
    """The verdict in an answer. Raises `InvalidResponse`."""
    review = msgspec.json.decode(body, type=_Review)
    wanted = msgspec.json.decode(asked, type=_Review).api_version
    response = review.response
    if response is None:
        raise InvalidResponse("webhook response was absent")
    patch = _patch(response)
    if wanted == f"{ADMISSION}/v1":  # v1beta1 was less strict
        _check_identity(review, response, uid)
        _check_patch(response, patch, mutating=mutating)
    kind = response.patch_type or ("JSONPatch" if patch else "")
    return Verdict(response.allowed, response.status, patch, kind, response.warnings or ())


def denial(hook: Webhook, verdict: Verdict) -> Refused:
    """The refusal of a write, in the webhook's words."""
    status = verdict.status or _Status()
    by = _DENIED.format(hook.name)
    said = status.message or status.reason
    text = f"{by}: {said}" if said else f"{by} without explanation"
    return Refused(max(status.code, 400), status.reason, text, details=status.details)


def _check_identity(review: _Review, response: _Response, uid: str) -> None:
    if response.uid != uid:
        raise InvalidResponse(f'expected response.uid="{uid}", got "{response.uid}"')
    kind = f"{review.api_version or '/'}, Kind={review.kind}"
    if kind != f"{ADMISSION}/v1, Kind=AdmissionReview":
        raise InvalidResponse(f"expected webhook response of {ADMISSION}/v1, Kind=AdmissionReview, got {kind}")


def _patch(response: _Response) -> bytes:
    try:
        return base64.b64decode(response.patch or "", validate=True)
    except binascii.Error as error:
        raise InvalidResponse(f"response.patch is no base64: {error}") from None


def _check_patch(response: _Response, patch: bytes, *, mutating: bool) -> None:
    if not mutating and patch:
        raise InvalidResponse("validating webhook may not return response.patch")
    if not mutating and response.patch_type is not None:
        raise InvalidResponse("validating webhook may not return response.patchType")
    if patch and response.patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and response.patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")


def _kind(kind: KindName) -> Untyped:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: ResourceName) -> Untyped:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}
