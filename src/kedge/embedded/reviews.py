"""Reviews: questions about who somebody is and what they may do, asked by creating them. Nothing is kept.

Whoever is known may do everything, so that is the answer to every question about the caller; of others the server
knows nothing, and what it does not know is not allowed.
"""

from __future__ import annotations

from kedge.embedded import bodies, statuses
from kedge.embedded.callers import Caller
from kedge.embedded.kind import Kind
from kedge.embedded.store import Untyped, part
from kedge.kube.transport import Request

_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def answered(kind: Kind, request: Request, caller: Caller, now: str) -> Untyped:
    """The question, with the answer in its status."""
    asked = bodies.shaped(bodies.posted(request, kind.resource))
    match kind.resource.kind:
        case "SelfSubjectReview":
            who = {"username": caller.user, "groups": list(caller.groups)}
            return {**asked, "metadata": {"creationTimestamp": now}, "status": {"userInfo": who}}
        case "SelfSubjectRulesReview":
            return {**asked, "spec": {}, "status": _EVERYTHING}
        case "TokenReview":
            return {**asked, "status": {"user": {}, "error": "invalid bearer token"}}
    _refuse_vague(kind, part(asked, "spec"))
    return {**asked, "status": {"allowed": kind.resource.kind == "SelfSubjectAccessReview"}}


def _refuse_vague(kind: Kind, spec: Untyped) -> None:
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = statuses.wrong("spec.resourceAttributes", "null", why)
        raise statuses.invalid(kind.resource, "", [cause])
