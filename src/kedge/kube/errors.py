"""Errors: what was asked, and what the server answered.

`KubeError` is everything a request can end in. `Unreachable` means there was no answer; every other one is an
`ApiError`, an answer. Catch the narrow ones (`NotFound`, `Conflict`, ...) where they mean something; let the rest rise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kedge.kube.transport import Request, Response


class Cause(Struct, frozen=True):
    """One thing wrong with an object, and where."""

    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Struct, frozen=True, rename="camel"):
    """What a Status says beyond its message."""

    name: str = ""
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int = 0


class Status(Struct, frozen=True):
    """Kubernetes' answer when it has no object to show."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class KubeError(Exception):
    """A request that did not end well: `request` is what was asked, `answer` what came of it."""

    def __init__(self, request: Request, answer: str) -> None:
        super().__init__(f"{request}: {answer}")
        self.request = request
        self.answer = answer


class Unreachable(KubeError):
    """There was no answer. `maybe_done` tells whether the server may have carried the request out all the same."""

    def __init__(self, request: Request, message: str, *, maybe_done: bool) -> None:
        super().__init__(request, f"no answer: {message}")
        self.maybe_done = maybe_done


class NotUnderstood(KubeError):
    """The server answered something that is not what the API promises."""


class ApiError(KubeError):
    """The server answered no."""

    def __init__(self, request: Request, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(request, f"{status.code} {status.reason}: {status.message}")
        self.status = status
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.causes = (status.details.causes if status.details else None) or ()
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400: the request itself makes no sense."""


class Unauthorized(ApiError):
    """401: the server does not know who asks."""


class Forbidden(ApiError):
    """403: the server knows who asks, and refuses."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class AlreadyExists(ApiError):
    """409: an object of that name is there."""


class Conflict(ApiError):
    """409: the object is not what the request took it for, or a field belongs to another manager."""


class Vanished(Conflict, NotFound):
    """404 of an object that was seen before: it has been deleted in the meantime."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is older than what the server remembers."""


class Invalid(ApiError):
    """422: the object breaks a rule of its kind; `causes` say which, and where."""


class TooManyRequests(ApiError):
    """429: not now."""


class RequestTooLarge(ApiError):
    """413, or the storage behind the server refuses the object for its size: it will do so again."""


class ServerError(ApiError):
    """5xx: the server's own trouble."""


_BY_REASON: Mapping[str, type[ApiError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone}
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: RequestTooLarge,
    422: Invalid,
    429: TooManyRequests,
}
_ETCD_TOO_LARGE = "etcdserver: request is too large"
"""What kube-apiserver answers, as 500 and without a reason of its own, for an object that etcd does not take."""


def api_error(request: Request, status: Status, retry_after: float | None = None) -> ApiError:
    """The error that says this status."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if kind is None and status.code >= 500:
        kind = RequestTooLarge if _ETCD_TOO_LARGE in status.message else ServerError
    kind = kind or ApiError
    if retry_after is None and status.details and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    return kind(request, status, retry_after=retry_after)


def as_conflict(error: ApiError) -> Conflict:
    """The answer as a Conflict: somebody else was faster, and reading again shows the new state."""
    return Conflict(error.request, Status(409, "Conflict", error.message))


def namespace_terminates(error: ApiError) -> bool:
    """Whether nothing can be created any more because the namespace is terminating."""
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def refusal(request: Request, response: Response) -> ApiError:
    """The error for an answer that is not 2xx, also when a proxy in between gave it."""
    return api_error(request, read_status(response), _retry_after(response.headers))


def read_status(response: Response) -> Status:
    """The Status in an answer, or one made up from what came instead."""
    try:
        status = msgspec.json.decode(response.body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = response.body[:200].decode("utf-8", "replace").strip()
        return Status(code=response.status, reason="NotKubernetes", message=text or "empty answer")
    return status if status.code else msgspec.structs.replace(status, code=response.status)


def _retry_after(headers: Mapping[str, Any]) -> float | None:
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
