"""The annotation of an Application that a rollout brings in: it goes, and does not come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.admission.application_annotation import validate_application
from kedge.api.admission import AdmissionRequest, AdmissionResponse

KEY = "app.oam.dev/rollout-template"
NOT_BACK = f"metadata.annotations[{KEY}]: cannot be added back: only an Application that is created may carry it"


def application(value: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {"a": "b"} | ({KEY: value} if value is not None else {})}}


def answer(request: AdmissionRequest) -> AdmissionResponse:
    async def ask() -> AdmissionResponse:
        return await validate_application(request)

    return asyncio.run(ask())


def refusal(operation: str, new: Any, old: Any = None) -> str:
    request = AdmissionRequest(uid="u", operation=operation, object=application(new), old_object=application(old))
    found = answer(request)
    if found.allowed:
        return ""
    assert found.status is not None
    assert found.status.code == 422
    return found.status.message


@pytest.mark.parametrize(
    ("operation", "new", "old"),
    [
        ("CREATE", None, None),
        ("CREATE", "true", None),
        ("UPDATE", None, None),
        ("UPDATE", "true", "true"),
        ("UPDATE", None, "true"),
        ("UPDATE", "yes", "yes"),  # it was there before this webhook, and whoever writes something else is not stopped
        ("UPDATE", "true", "yes"),
        ("DELETE", "yes", None),
    ],
)
def test_allowed(operation: str, new: Any, old: Any) -> None:
    assert refusal(operation, new, old) == ""


@pytest.mark.parametrize(
    ("operation", "new", "old", "expected"),
    [
        ("UPDATE", "true", None, NOT_BACK),
        ("CREATE", "false", None, f"metadata.annotations[{KEY}]: can only be 'true', not 'false'"),
        ("CREATE", "", None, f"metadata.annotations[{KEY}]: can only be 'true', not ''"),
        ("CREATE", "True", None, f"metadata.annotations[{KEY}]: can only be 'true', not 'True'"),
        ("UPDATE", "false", "true", f"metadata.annotations[{KEY}]: can only be 'true', not 'false'"),
        ("UPDATE", "1", None, f"metadata.annotations[{KEY}]: can only be 'true', not '1'"),
    ],
)
def test_refused(operation: str, new: Any, old: Any, expected: str) -> None:
    assert refusal(operation, new, old) == expected


@pytest.mark.parametrize("found", [None, {}, {"metadata": None}, {"metadata": {"annotations": None}}])
def test_objects_without_annotations_are_allowed(found: Any) -> None:
    assert answer(AdmissionRequest(uid="u", operation="UPDATE", object=found, old_object=found)).allowed
