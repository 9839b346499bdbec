"""The validation of budgets: what the webhook answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.admission.budget_validation import validate_budget
from kedge.api.admission import AdmissionRequest, AdmissionResponse, AdmissionStatus

KIND = "ZoneAwarePodDisruptionBudget"


def answer(found: Any, operation: str = "CREATE") -> AdmissionResponse:
    request = AdmissionRequest(uid="u-1", operation=operation, object=found)
    return asyncio.run(_answer(request))


async def _answer(request: AdmissionRequest) -> AdmissionResponse:
    return await validate_budget(request)


def budget(**spec: Any) -> dict[str, Any]:
    return {"kind": KIND, "spec": {"selector": {"matchLabels": {"a": "b"}}} | spec}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_valid_budget_is_allowed(operation: str) -> None:
    assert answer(budget(maxUnavailable=1), operation) == AdmissionResponse(uid="u-1", allowed=True)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "no spec found in unstructured object"),
        ({}, "no spec found in unstructured object"),
        ({"kind": "Pod", "spec": {}}, f"unexpected object kind - expecting {KIND}"),
        (budget(maxUnavailable=-1), "invalid value: max unavailable must be 0 <= val, got -1"),
        (budget(selector={}), "invalid value: selector is not found"),
    ],
)
def test_an_invalid_one_is_denied_with_400(found: dict[str, Any] | None, message: str) -> None:
    status = AdmissionStatus(message=message, code=400)
    assert answer(found) == AdmissionResponse(uid="u-1", allowed=False, status=status)


def test_something_else_than_an_object_is_denied_with_400() -> None:
    status = AdmissionStatus(message="object is not a JSON object", code=400)
    assert answer("x") == AdmissionResponse(uid="u-1", allowed=False, status=status)


def test_further_problems_are_warnings() -> None:
    found = answer(budget(maxUnavailable=-1, selector={}))
    assert found.warnings == ("invalid value: selector is not found",)


def test_deleting_one_is_always_allowed() -> None:
    assert answer(None, "DELETE").allowed
