"""Statuses: the `Status` objects of errors and successes.

`Refused` is raised anywhere below the server; the client gets Kubernetes' own `Status`, with the code, reason, details
and words of kube-apiserver. Messages that quote Go's parsers there are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.causes import invalid_value
from kedge.kube.errors import Cause
from kedge.kube.transport import JSON, Response

MODIFIED_MEANWHILE = "the object has been modified; please apply your changes to the latest version and try again"
PAGES_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)
_JSON: Mapping[str, str] = {"content-type": JSON}
_MEDIA_TYPES = "the body of the request was in an unknown format - accepted media types include: "


class Refused(Exception):
    """The request is refused, for a reason the client is told."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        more: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self._reason = reason
        self._details = details
        self._more = more  # a continue token that may be used instead
        self.warnings: tuple[str, ...] = ()  # of what was wrong beside

    def body(self) -> bytes:
        """The Status, encoded."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self._more} if self._more else {},
            "status": "Failure",
            "message": str(self),
        }
        if self._reason:
            status["reason"] = self._reason
        if self._details is not None:
            status["details"] = self._details
        return msgspec.json.encode(status | {"code": self.code})

    def response(self) -> Response:
        return Response(self.code, self.body(), json_headers(self.warnings))


@contextmanager
def with_warnings(warnings: tuple[str, ...]) -> Iterator[None]:
    """Whoever is refused in here is told of this too."""
    try:
        yield
    except Refused as refused:
        refused.warnings = warnings
        raise


def json_headers(warnings: Sequence[str] = ()) -> Mapping[str, str]:
    """The headers of a JSON answer, with what its reader should know (`Warning: 299 - "..."`)."""
    if not warnings:
        return _JSON
    texts = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return {**_JSON, "warning": ", ".join(f'299 - "{text}"' for text in texts)}


def with_warning_headers(response: Response, *, first: Sequence[str] = (), last: Sequence[str] = ()) -> Response:
    """The response with more warnings, before and after its own."""
    before, after = (json_headers(texts).get("warning", "") for texts in (first, last))
    told = ", ".join(filter(None, (before, response.headers.get("warning", ""), after)))
    return Response(response.status, response.body, {**response.headers, "warning": told})


def deleted(resource: Resource, name: str, uid: str) -> bytes:
    """The Status of success: the object was there, and is gone."""
    details = {**_about(resource, name, resource.plural), "uid": uid}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return msgspec.json.encode(status)


def no_such_resource() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource", details={})


def unauthorized() -> Refused:
    return Refused(401, "Unauthorized", "Unauthorized")


def too_large(limit: int) -> Refused:
    return Refused(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def not_found(resource: Resource, name: str) -> Refused:
    return _refused(404, "NotFound", resource, name, f'{resource} "{name}" not found')


def already_exists(resource: Resource, name: str, *, being_deleted: bool = False) -> Refused:
    why = "object is being deleted: " if being_deleted else ""
    return _refused(409, "AlreadyExists", resource, name, f'{why}{resource} "{name}" already exists')


def conflict(resource: Resource, name: str, why: str = MODIFIED_MEANWHILE) -> Refused:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return _refused(409, "Conflict", resource, name, message)


def precondition_failed(resource: Resource, name: str, why: str) -> Refused:
    """A conflict with the preconditions of a delete, where Kubernetes names the kind and not the resource."""
    kind = _dotted(resource.kind, resource.group)
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return Refused(409, "Conflict", message, details=_about(resource, name, resource.kind))


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> Refused:
    """The object breaks rules: each cause names the field and what is wrong with it."""
    return _invalid(resource.kind, resource.group, name, causes)


def invalid_options(kind: str, *causes: Cause) -> Refused:
    """The options of the request (`ListOptions`, ...) break rules."""
    return _invalid(kind, "meta.k8s.io", "", causes)


def version_required(resource: Resource, name: str) -> Refused:
    """A PUT of a kind that may only be replaced as read."""
    cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
    message = f'{resource} "{name}" is invalid: {cause.field}: {cause.message}'
    details = {**_about(resource, name, resource.plural), "causes": _encoded([cause])}
    return Refused(422, "Invalid", message, details=details)


def bad_patch() -> Refused:
    """A JSON patch that cannot be carried out; Kubernetes does not say which operation failed."""
    return Refused(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str, *causes: Cause) -> Refused:
    details = _about(resource, name, resource.plural)
    if causes:
        details["causes"] = _encoded(causes)
    return Refused(403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details=details)


def expired(message: str, *, more: str = "") -> Refused:
    return Refused(410, "Expired", message, more=more)


def too_large_resource_version(wanted: int, current: int) -> Refused:
    """A resourceVersion from the future."""
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return Refused(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})


def too_many(why: str) -> Refused:
    """An eviction that a disruption budget does not allow now."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return Refused(429, "TooManyRequests", message, details=details)


def succeeded(code: int) -> bytes:
    """The Status of something that was done and has no object to show."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return msgspec.json.encode(status)


def not_allowed() -> Refused:
    message = "the server does not allow this method on the requested resource"
    return Refused(405, "MethodNotAllowed", message, details={})


def unsupported_type(*accepted: str) -> Refused:
    return Refused(415, "UnsupportedMediaType", _MEDIA_TYPES + ", ".join(accepted))


def not_acceptable(available: str) -> Refused:
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return Refused(406, "NotAcceptable", message, details={})


def internal_error(message: str) -> Refused:
    """What kube-apiserver answers with 500 and no reason, though the client is to blame."""
    return Refused(500, "", message)


def server_failure(why: str) -> Refused:
    """Something that the server needs failed: a webhook."""
    details = {"causes": [{"message": why}]}
    return Refused(500, "InternalError", f"Internal error occurred: {why}", details=details)


def _refused(code: int, reason: str, resource: Resource, name: str, message: str) -> Refused:
    return Refused(code, reason, message, details=_about(resource, name, resource.plural))


def _invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Refused:
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    what = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    about = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in about.items() if value} | {"causes": _encoded(causes)}
    return Refused(422, "Invalid", f'{_dotted(kind, group)} "{name}" is invalid: {what}', details=details)


def _about(resource: Resource, name: str, kind: str) -> dict[str, Any]:
    about = {"name": name, "group": resource.group, "kind": kind}
    return {key: value for key, value in about.items() if value}


def _dotted(kind: str, group: str) -> str:
    return f"{kind}.{group}" if group else kind


def _encoded(causes: Sequence[Cause]) -> list[dict[str, str]]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
