"""What is reported of one manifest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.api import reasons
from kedge.api.resource import Resource
from kedge.api.work import WorkResourceIdentifier
from kedge.plan.applying.manifests import DesiredObject, InvalidManifest
from kedge.plan.applying.observed import observe
from kedge.plan.applying.outcomes import applied, back_reported, misread, not_applied
from kedge.plan.applying.ownership import Refusal
from kedge.plan.availability import Verdict

NOW = datetime(2030, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
WHICH = WorkResourceIdentifier(ordinal=3, version="v1", kind="ConfigMap", name="settings", namespace="shop")
PLACED = DesiredObject(WHICH, Resource("", "v1", "ConfigMap", "configmaps"), {}, "digest")
UP = Verdict(available=True, trackable=True, message="up")
OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop", "uid": "7", "generation": 4, "labels": {"a": "b"}},
}


def test_what_is_applied_says_where_it_is_at() -> None:
    found = applied(PLACED, "7", 4, UP)
    assert (found.identifier, found.applied, found.reason) == (WHICH, True, reasons.MANIFEST_APPLIED)
    assert (found.uid, found.generation, found.verdict, found.retry_after) == ("7", 4, UP, None)
    assert found.message == "it is as the hub wants it"


@pytest.mark.parametrize("until", [0.0, 5.0])
def test_what_somebody_keeps_changing_is_looked_at_again(until: float) -> None:
    found = applied(PLACED, "7", 4, UP, disputed_until=until)
    assert found.retry_after == until
    assert "keeps changing it" in found.message


def test_what_is_refused_says_why_and_what_there_is_instead() -> None:
    why = Refusal(reasons.MANIFEST_APPLY_FAILED, "no", unsure=True)
    found = not_applied(PLACED, why)
    assert (found.applied, found.reason, found.message, found.unsure) == (False, why.reason, "no", True)
    assert (found.uid, found.generation, found.retry) == ("", None, True)
    found = not_applied(PLACED, why, observe(OBJECT), retry=False)
    assert (found.uid, found.generation, found.retry) == ("7", 4, False)


@pytest.mark.parametrize("unknown", [True, False])
def test_a_manifest_that_cannot_be_read_is_tried_again_if_its_kind_may_come(unknown: bool) -> None:
    found = misread(InvalidManifest(WHICH, reasons.DECODING_ERRED, "what is this", kind_not_served=unknown))
    assert (found.applied, found.reason, found.message) == (False, reasons.DECODING_ERRED, "what is this")
    assert found.retry is unknown


@pytest.mark.parametrize("status", [None, {}])
def test_what_has_no_status_reports_none(status: dict[str, Any] | None) -> None:
    assert back_reported({**OBJECT, "status": status}, NOW) is None


def test_a_status_goes_back_with_no_more_than_its_name() -> None:
    found = back_reported({**OBJECT, "status": {"ready": True}}, NOW)
    assert found is not None
    assert found.observation_time == NOW.replace(microsecond=0)
    assert found.observed_status == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop", "generation": 4},
        "status": {"ready": True},
    }


def test_a_status_of_what_lives_in_no_namespace_goes_back_too() -> None:
    found = back_reported({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"up": True}}, NOW)
    assert found is not None
    assert found.observed_status is not None
    assert found.observed_status["metadata"] == {"name": "n"}
