"""Reviews: TokenReview, SubjectAccessReview and the like, which are answered and not stored.

Whoever is known may do everything, so that is the answer to every question about the caller. Of others the server knows
nothing, and what it does not know is not allowed.
"""

from __future__ import annotations

from kedge.embedded import request_body, statuses
from kedge.embedded.causes import invalid_value
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.store import part
from kedge.kube.codec import Untyped
from kedge.kube.transport import Request

_ALL_RULES = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review_response(kind: Kind, request: Request, caller: Caller, now: str) -> Untyped:
    """The question, with the answer in its status."""
    asked = request_body.with_clean_metadata(request_body.object_in(request, kind.resource))
    match kind.resource.kind:
        case "SelfSubjectReview":
            return {**asked, "metadata": {"creationTimestamp": now}, "status": {"userInfo": _user(caller)}}
        case "SelfSubjectRulesReview":
            return {**asked, "spec": {}, "status": _ALL_RULES}
        case "TokenReview":
            return {**asked, "status": _token_status(part(asked, "spec"), caller)}
    _refuse_vague(kind, part(asked, "spec"))
    return {**asked, "status": {"allowed": kind.resource.kind == "SelfSubjectAccessReview"}}


def _token_status(spec: Untyped, caller: Caller) -> Untyped:
    """Whose a token is. Only the caller's own is known here."""
    if not caller.token or spec.get("token") != caller.token:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user(caller)}


def _user(caller: Caller) -> Untyped:
    return {"username": caller.user, "groups": list(caller.groups)}


def _refuse_vague(kind: Kind, spec: Untyped) -> None:
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = invalid_value("spec.resourceAttributes", None, why)
        raise statuses.invalid(kind.resource, "", [cause])
