"""Answers: what a rule says to an API server."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.admission import AdmissionRequest, AdmissionResponse, AdmissionStatus


def allow(request: AdmissionRequest, *, warnings: Iterable[str] = ()) -> AdmissionResponse:
    """Let it happen. Users see the warnings."""
    return AdmissionResponse(uid=request.uid, allowed=True, warnings=tuple(warnings))


def deny(request: AdmissionRequest, message: str, *, code: int = 0, warnings: Iterable[str] = ()) -> AdmissionResponse:
    """Refuse it. The user sees the message; without a code the API server answers 403."""
    status = AdmissionStatus(message=message, code=code)
    return AdmissionResponse(uid=request.uid, allowed=False, status=status, warnings=tuple(warnings))
