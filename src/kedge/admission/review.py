"""Review: an AdmissionReview from bytes, and the answer to it.

Versions v1 and v1beta1 have the same fields; the answer is in the version of the question. What is no such question is
refused with `BadReview`, whose text goes to the caller. `allow` and `deny` make answers, and `deny_unreadable` one to a
question whose objects are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from kedge.api import wire
from kedge.api.admission import ADMISSION, AdmissionRequest, AdmissionResponse, AdmissionReview, AdmissionStatus

JSON: Final = "application/json"
REVIEW: Final = "AdmissionReview"
VERSIONS: Final = (f"{ADMISSION}/v1", f"{ADMISSION}/v1beta1")
BAD_REQUEST: Final = 400
_NO_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class BadReview(Exception):
    """This is no question a webhook can answer; the text says why."""


class Question(Struct, frozen=True):
    """What is asked, and in which version."""

    version: str
    request: AdmissionRequest


class _TypeOnly(Struct, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


def decode(content_type: str, body: bytes) -> Question:
    """The question in a request. Raises `BadReview`."""
    if content_type != JSON:
        raise BadReview("wrong content type")
    version = _version(body)
    try:
        review = wire.read(body, AdmissionReview)
    except _NO_JSON as error:
        raise _undecodable(error) from error
    if review.request is None:
        raise _undecodable("the AdmissionReview has no request")
    return Question(version, review.request)


def _version(body: bytes) -> str:
    """The version of an AdmissionReview; what is of another kind is refused."""
    try:
        found = msgspec.json.decode(body, type=_TypeOnly)
    except _NO_JSON as error:
        raise _undecodable(error) from error
    version, kind = found.api_version or "", found.kind or ""
    if not kind:
        raise _undecodable("Object 'Kind' is missing")
    if kind != REVIEW or version not in VERSIONS:
        group, slash, number = version.rpartition("/")
        raise BadReview(f"Unsupported group version kind: {group if slash else ''}/{number}, Kind={kind}")
    return version


def _undecodable(why: object) -> BadReview:
    return BadReview(f"Request could not be decoded: {why}")


def encode(question: Question, response: AdmissionResponse) -> bytes:
    """The answer as bytes."""
    return msgspec.json.encode(AdmissionReview(api_version=question.version, kind=REVIEW, response=response))


def allow(request: AdmissionRequest, *, warnings: Iterable[str] = (), message: str = "") -> AdmissionResponse:
    """Let it happen. Users see the warnings; the message is for the audit log."""
    status = AdmissionStatus(message=message) if message else None
    return AdmissionResponse(uid=request.uid, allowed=True, status=status, warnings=tuple(warnings))


def deny(request: AdmissionRequest, message: str, *, code: int = 0, warnings: Iterable[str] = ()) -> AdmissionResponse:
    """Refuse it. The user sees the message and the warnings; without a code the API server answers 400."""
    status = AdmissionStatus(message=message, code=code)
    return AdmissionResponse(uid=request.uid, allowed=False, status=status, warnings=tuple(warnings))


def deny_unreadable(request: AdmissionRequest) -> AdmissionResponse | None:
    """The denial of a request with something else in the place of an object; None if there is no such thing."""
    for name, found in (("object", request.object), ("oldObject", request.old_object)):
        if not isinstance(found, Mapping | None):
            return deny(request, f"{name} is not a JSON object", code=BAD_REQUEST)
    return None
