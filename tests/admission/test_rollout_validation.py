"""The validation of rollouts in batches: what the webhook answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kedge.admission.rollout_validation import validate_rollout
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.oam.rollout_rules import ENDED
from support.bad_plans import BAD_PLANS, GOOD_PLANS, BadPlan

Object = dict[str, Any]
SPECS: dict[str, Object] = {
    "RolloutTrait": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}},
    "Rollout": {"targetRevisionName": "web-v2", "componentName": "web"},
    "AppRollout": {"targetAppRevisionName": "web-v2"},
    "ApplicationDeployment": {"targetApplicationName": "web-v2"},
}


def answer(new: Object | None, old: Object | None = None, operation: str = "") -> AdmissionResponse:
    asked = operation or ("CREATE" if old is None else "UPDATE")
    return asyncio.run(_answer(AdmissionRequest(uid="u-1", operation=asked, object=new, old_object=old)))


async def _answer(request: AdmissionRequest) -> AdmissionResponse:
    return await validate_rollout(request)


def reason(new: Object | None, old: Object | None = None) -> str:
    found = answer(new, old)
    if found.allowed:
        return ""
    assert found.status is not None
    assert found.status.code == 422
    return found.status.message


def rollout(kind: str = "Rollout", *, plan: Object | None = None, status: Object | None = None, **spec: Any) -> Object:
    made = {"kind": kind, "metadata": {"name": "x", "namespace": "shop"}, "status": status or {}}
    return made | {"spec": SPECS[kind] | {"rolloutPlan": plan or {}} | spec}


@pytest.mark.parametrize("row", BAD_PLANS.values(), ids=list(BAD_PLANS))
def test_a_bad_plan_is_denied_with_its_path_and_reason(row: BadPlan) -> None:
    found = reason(rollout(plan=row.plan))
    assert found.startswith(f"{row.path}: ")
    if row.readable:
        assert row.message in found


@pytest.mark.parametrize("kind", list(SPECS))
@pytest.mark.parametrize("plan", GOOD_PLANS.values(), ids=list(GOOD_PLANS))
def test_a_good_plan_is_allowed(kind: str, plan: Object) -> None:
    assert answer(rollout(kind, plan=plan)) == AdmissionResponse(uid="u-1", allowed=True)


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("ApplicationDeployment", {"targetApplicationName": ""}, "target application name cannot be empty"),
        ("AppRollout", {"targetAppRevisionName": ""}, "target app revision name cannot be empty"),
        ("Rollout", {"targetRevisionName": ""}, "target revision name cannot be empty"),
        ("Rollout", {"componentName": ""}, "component name cannot be empty"),
        ("AppRollout", {"componentList": ["a", "b"]}, "only one component can be rolled out at a time"),
        ("ApplicationDeployment", {"componentList": ["a", "b"]}, "only one component can be rolled out at a time"),
        ("RolloutTrait", {"targetRef": {"apiVersion": "v1", "kind": "A"}}, "spec.targetRef.name: cannot be empty"),
        ("RolloutTrait", {"sourceRef": [{"name": "a", "kind": "A"}]}, "spec.sourceRef[0].apiVersion: cannot be empty"),
        (
            "RolloutTrait",
            {"targetRef": {"apiVersion": "v1", "kind": "A", "name": "a", "namespace": "other"}},
            "spec.targetRef.namespace: can only be the namespace of the rollout, shop",
        ),
        ("Rollout", {"componentName": 5}, "spec.componentName: Expected `str`, got `int`"),
        ("Rollout", {"componentName": None}, "spec: Object missing required field `componentName`"),
    ],
)
def test_a_bad_reference_is_denied(kind: str, spec: Object, expected: str) -> None:
    assert expected in reason(rollout(kind, **spec))


def test_an_unknown_kind_is_denied() -> None:
    assert reason({"kind": "Pod"}) == "'Pod' is not a kind of rollout"


def test_all_problems_are_told_at_once() -> None:
    found = reason(rollout(plan={"targetSize": -1, "numBatches": 0}))
    assert found == (
        "spec.rolloutPlan.targetSize: cannot be less than 0; spec.rolloutPlan.numBatches: can only be from 1 to 100"
    )


STATES = {"batchRollingState": "batchReady", "currentBatch": 0, "upgradedReplicas": 0, "upgradedReadyReplicas": 0}
UNDER_WAY = STATES | {"rollingState": "rollingInBatches"}
SUCCEEDED = STATES | {"rollingState": "rolloutSucceed"}
OTHER_TARGETS: dict[str, Object] = {
    "RolloutTrait": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v3"}},
    "Rollout": {"targetRevisionName": "web-v3"},
    "AppRollout": {"targetAppRevisionName": "web-v3"},
    "ApplicationDeployment": {"targetApplicationName": "web-v3"},
}
OTHER_SOURCES: dict[str, Object] = {
    "RolloutTrait": {"sourceRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}]},
    "Rollout": {"sourceRevisionName": "web-v1"},
    "AppRollout": {"sourceAppRevisionName": "web-v1"},
    "ApplicationDeployment": {"sourceApplicationName": "web-v1"},
}
every_kind = pytest.mark.parametrize("kind", list(SPECS))


@every_kind
def test_a_lowered_partition_is_denied_unless_the_target_changes(kind: str) -> None:
    old = rollout(kind, plan={"batchPartition": 1}, status=UNDER_WAY)
    lowered = {"batchPartition": 0}
    assert "can only increase unless the target ref has changed" in reason(rollout(kind, plan=lowered), old)
    assert answer(rollout(kind, plan=lowered, **OTHER_TARGETS[kind]), old).allowed


@every_kind
def test_another_source_is_denied_until_it_has_ended(kind: str) -> None:
    changed = rollout(kind, **OTHER_SOURCES[kind])
    assert "the source cannot be changed" in reason(changed, rollout(kind, status=UNDER_WAY))
    assert answer(changed | OTHER_TARGETS[kind], rollout(kind, status=SUCCEEDED)).allowed
    assert answer(changed, rollout(kind, status=SUCCEEDED)).allowed
    assert answer(rollout(kind, **OTHER_SOURCES[kind], **OTHER_TARGETS[kind]), rollout(kind, status=UNDER_WAY)).allowed


@every_kind
def test_one_that_ended_is_only_resized(kind: str) -> None:
    old = rollout(kind, plan={"targetSize": 3}, status=SUCCEEDED)
    assert ENDED in reason(rollout(kind, plan={"targetSize": 3, "paused": True}), old)
    assert answer(rollout(kind, plan={"targetSize": 4, "paused": True}), old).allowed


def test_batches_that_began_stay() -> None:
    batches = [{"replicas": 1}, {"replicas": 2}, {"replicas": 3}]
    old = rollout(plan={"batchPartition": 0, "rolloutBatches": batches}, status=UNDER_WAY | {"currentBatch": 1})
    changed = {"batchPartition": 0, "rolloutBatches": [batches[0], {"replicas": 1}, batches[2]]}
    assert "RolloutBatches can only change the part after" in reason(rollout(plan=changed), old)


def test_one_that_is_being_deleted_is_let_go() -> None:
    bad = rollout(plan={"numBatches": 0})
    bad["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert answer(bad).allowed
    assert answer(None, rollout(), "DELETE").allowed


def test_a_bad_one_that_is_there_can_still_get_a_finalizer_and_be_mended() -> None:
    bad = rollout(plan={"numBatches": 0})
    assert answer(bad | {"metadata": {"finalizers": ["a/b"]}}, bad).allowed
    assert answer(rollout(plan={"numBatches": 1}), bad).allowed
    assert answer(rollout(plan={"numBatches": 1}), rollout(plan={"numBatches": "many"})).allowed
    assert "numBatches" in reason(rollout(plan={"numBatches": -1}), bad)
