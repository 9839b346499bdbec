"""What configurations and Applications say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.condition import Condition, find_condition
from kedge.api.oam.applications import Application, ApplicationStatus, Phase
from kedge.api.oam.components import ApplicationConfiguration, EmittedWorkload
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollouts import AppRollout
from kedge.plan.oam.application_status import application_status
from kedge.plan.oam.configuration_status import ComponentResult, configuration_status
from kedge.plan.oam.revisions import Revision
from plan.oam.objects import application, configured

NOW = datetime(2030, 1, 1, tzinfo=UTC)
WEB = EmittedWorkload(component_name="web", workload_ref=ObjectReference(name="web"), available=True)
DB = EmittedWorkload(component_name="db", message="later")
V2 = Revision(2, "shop-v2", "h")


def said(conditions: tuple[Condition, ...], type: str) -> tuple[str, str, str, int | None]:  # noqa: A002
    found = find_condition(conditions, type)
    assert found is not None
    return found.status, found.reason, found.message, found.observed_generation


def generation(number: int) -> ApplicationConfiguration:
    found = configured({"componentName": "web"})
    return replace(found, metadata=replace(found.metadata, generation=number))


def synced(*results: ComponentResult, number: int = 3) -> ApplicationConfiguration:
    given = generation(number)
    return replace(given, status=configuration_status(given, results, now=NOW))


@pytest.mark.parametrize(
    ("results", "wanted"),
    [
        ([ComponentResult(WEB)], ("True", "ReconcileSuccess", "", 3)),
        ([ComponentResult(WEB), ComponentResult(DB, wait="soon")], ("False", "Waiting", "soon", 3)),
        ([ComponentResult(WEB, problem="bad"), ComponentResult(DB, wait="soon")], ("False", "Refused", "bad", 3)),
        ([ComponentResult(WEB, problem="bad"), ComponentResult(DB, problem="x")], ("False", "Refused", "bad; x", 3)),
    ],
)
def test_a_configuration_says_what_is_wrong_before_what_it_waits_for(results: Any, wanted: Any) -> None:
    found = synced(*results).status
    assert said(found.conditions, "Synced") == wanted
    assert found.workloads == tuple(one.emitted for one in results)
    assert found.observed_generation == 3


def app() -> Application:
    found = application()
    return replace(found, metadata=replace(found.metadata, generation=7))


def rollout(state: str | None) -> AppRollout:
    status = {} if state is None else {"rollingState": state, "batchRollingState": "batchReady"}
    spec = {"targetAppRevisionName": "shop-v2", "rolloutPlan": {}}
    return msgspec.convert({"spec": spec, "status": status}, AppRollout)


def test_an_application_that_was_refused_keeps_what_it_said_of_its_last_revision() -> None:
    before = application_status(app(), V2, synced(ComponentResult(WEB)), rollout("rolloutSucceed"), now=NOW)
    found = application_status(replace(app(), status=before), "no such type", None, None, now=NOW)
    assert said(found.conditions, "Parsed") == ("False", "Refused", "no such type", 7)
    assert found.status is Phase.rendering
    assert (found.services, found.latest_revision, found.rollout) == (
        before.services,
        before.latest_revision,
        before.rollout,
    )
    assert (len(found.services), found.observed_generation, found.rollout is None) == (1, 7, False)


@pytest.mark.parametrize(
    ("configuration", "state", "phase", "applied"),
    [
        (None, "none", Phase.applying, ("False", "Applying", "the ApplicationConfiguration is not applied yet", 7)),
        (
            generation(3),
            "none",
            Phase.applying,
            ("False", "Applying", "the ApplicationConfiguration is not applied yet", 7),
        ),
        (synced(ComponentResult(WEB)), "none", Phase.running, ("True", "ReconcileSuccess", "", 7)),
        (synced(ComponentResult(WEB, problem="bad")), "none", Phase.applying, ("False", "Refused", "bad", 7)),
        (synced(ComponentResult(WEB)), None, Phase.rolling_out, ("True", "ReconcileSuccess", "", 7)),
        (synced(ComponentResult(WEB)), "rollingInBatches", Phase.rolling_out, ("True", "ReconcileSuccess", "", 7)),
        (synced(ComponentResult(WEB)), "rolloutSucceed", Phase.running, ("True", "ReconcileSuccess", "", 7)),
        (synced(ComponentResult(WEB)), "rolloutFailed", Phase.running, ("True", "ReconcileSuccess", "", 7)),
    ],
)
def test_where_an_application_is(configuration: Any, state: Any, phase: Phase, applied: Any) -> None:
    found = application_status(app(), V2, configuration, None if state == "none" else rollout(state), now=NOW)
    assert found.status is phase
    assert said(found.conditions, "Applied") == applied
    assert said(found.conditions, "Parsed") == ("True", "ReconcileSuccess", "", 7)
    assert found.latest_revision == V2.latest
    assert found.observed_generation == 7


def test_a_configuration_that_spoke_of_another_generation_is_not_applied() -> None:
    old = synced(ComponentResult(WEB), number=2)
    newer = replace(old, metadata=replace(old.metadata, generation=3))
    assert application_status(app(), V2, newer, None, now=NOW).status is Phase.applying


def test_the_services_are_the_components() -> None:
    found = application_status(app(), V2, synced(ComponentResult(WEB), ComponentResult(DB)), None, now=NOW)
    assert [(one.name, one.healthy, one.message) for one in found.services] == [
        ("web", True, ""),
        ("db", False, "later"),
    ]
    assert found.services[0].workload_ref == ObjectReference(name="web")


def test_only_a_rollout_that_has_begun_is_copied() -> None:
    assert application_status(app(), V2, None, rollout(None), now=NOW).rollout is None
    moving = rollout("rollingInBatches")
    assert application_status(app(), V2, None, moving, now=NOW).rollout == moving.status
    assert ApplicationStatus().rollout is None
