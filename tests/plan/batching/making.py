"""Makes Deployments of revisions, plans and statuses of rollouts in batches, and what a step of one depends on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import json

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.rollout_plan import (
    ObjectReference,
    RolloutBatch,
    RolloutPlan,
    RolloutStrategy,
    Traffic,
    TrafficProvider,
)
from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus, SourceRecord
from kedge.plan.batching.batches import batch_at, planned
from kedge.plan.batching.moves import DONE, Batch, Step, Workload, WorkloadRef, Workloads, Write
from kedge.plan.batching.rollout_waits import sentence
from kedge.plan.batching.steps import Act, BatchRolloutInput, RolloutIdentity
from kedge.plan.batching.waits import MoveCode
from kedge.plan.moving.wait import Wait
from plan.batching.in_place_worlds import CLAIM, template
from plan.traffic.manifests import HTTP_ROUTE, route

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OTHER = "Rollout/other/uid-2"
INCREASE, DECREASE = RolloutStrategy.increase_first, RolloutStrategy.decrease_first
R: tuple[IntOrPercent, ...] = ("20%", 2, 2, "50%")
"""KubeVela's own example of batches."""


def ref(name: str) -> WorkloadRef:
    return WorkloadRef("apps/v1", "Deployment", "shop", name)


def deployment(
    name: str,
    asked: int,
    *,
    pods: int | None = None,
    available: int | None = None,
    claim: str = CLAIM,
    observed: int = 2,
    **spec: Any,
) -> Workload:
    """A Deployment; it has as many pods as it asks for, and all are available, unless said."""
    there = asked if pods is None else pods
    well = there if available is None else available
    notes = {"annotations": {CLAIM_KEY: claim}} if claim else {}
    obj = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5", "generation": 2, **notes},
        "spec": {"replicas": asked, "template": template(f"app:{name}"), **spec},
        "status": {
            "observedGeneration": observed,
            "replicas": there,
            "readyReplicas": there,
            "availableReplicas": well,
        },
    }
    return Workload(ref(name), obj)


def workloads(target: Workload, *sources: Workload, **more: Any) -> Workloads:
    return Workloads(target, sources, claim=CLAIM, **more)


def plan_of(*sizes: IntOrPercent, strategy: RolloutStrategy | None = None, **more: Any) -> RolloutPlan:
    """A plan with batches of these sizes; `max_unavailable` is of each of them."""
    tolerated = more.pop("max_unavailable", None)
    batches = tuple(RolloutBatch(replicas=size, max_unavailable=tolerated) for size in sizes)
    return RolloutPlan(rollout_batches=batches or None, rollout_strategy=strategy, **more)


def sized(plan: RolloutPlan, total: int, original: int = 0, *, is_scale: bool = False, **more: Any) -> RolloutStatus:
    """The status of a rollout with this plan once its size is known."""
    found = planned(plan, original, total, is_scale=is_scale)
    given: dict[str, Any] = {"rollout_original_size": original, "rollout_target_size": total, "batches": found}
    return RolloutStatus(**given | more)


def batch_of(plan: RolloutPlan, total: int, index: int) -> Batch:
    return batch_at(plan, sized(plan, total), index, is_scale=False)


def sizes_in(step: Step) -> dict[str, int]:
    """The replicas that are written, by workload."""
    assert not step.failure
    assert step.wait is None
    return {write.ref.name: (write.patch or {})["spec"]["replicas"] for write in step.writes}


def wait_in(step: object) -> Wait:
    assert isinstance(step, Step)
    assert step.wait is not None, step
    assert not step.writes
    assert sentence(step.wait)
    return step.wait


class Answers:
    """The moves of a workload that answers as it is told, and remembers which batches it was asked for."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self.asked: list[tuple[str, Any]] = []

    def _answer(self, name: str, asked: Any = None) -> Any:
        self.asked.append((name, asked))
        return self._answers.get(name, DONE)

    def verify(self, seen: Workloads, plan: RolloutPlan, status: RolloutStatus) -> Any:
        return self._answer("verify")

    def initialize(self, seen: Workloads, status: RolloutStatus, claim: str) -> Any:
        return self._answer("initialize", claim)

    def roll(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Any:
        return self._answer("roll", batch)

    def check(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Any:
        return self._answer("check", batch)

    def finalize(self, seen: Workloads, status: RolloutStatus, *, succeeded: bool) -> Any:
        return self._answer("finalize", succeeded)

    def revert(self, seen: Workloads, status: RolloutStatus, batch: Batch) -> Any:
        return self._answer("revert", batch)

    def ready_pods(self, seen: Workloads) -> int:
        return 0


V1 = SourceRecord(api_version="apps/v1", kind="Deployment", name="v1", replicas=4)
"""What is recorded of v1."""
WHO = RolloutIdentity("Rollout", "shop", "web", "uid-1", 3)
PLAN = plan_of(1, 2, "100%")
"""Batches of 1, 2 and 1 of 4 pods."""


def observed(
    state: RollingState | None,
    batch: BatchState | None = None,
    *,
    plan: RolloutPlan = PLAN,
    status: dict[str, Any] | None = None,
    **more: Any,
) -> BatchRolloutInput:
    """A rollout of 4 pods from v1 to v2 in this state."""
    states = {"rolling_state": state, "batch_rolling_state": batch}
    sources = () if state in (None, RollingState.locating) else (V1,)
    named = ObjectReference(api_version="apps/v1", kind="Deployment", name="v2") if sources else None
    found = sized(plan, 4, **{"sources": sources, "target_workload": named, **states, **(status or {})})
    given: dict[str, Any] = {
        "workloads": workloads(deployment("v2", 1), deployment("v1", 3)),
        "moves": Answers(),
        "wanted": "v2",
        "moving": "v2",
        **more,
    }
    return BatchRolloutInput(WHO, plan, found, **given)


def rolling(batch: BatchState, **more: Any) -> BatchRolloutInput:
    return observed(RollingState.rolling, batch, **more)


WRITE = Step((Write(ref("v1"), {"spec": {"replicas": 2}}, takes_away=True),))
WAIT = Step(wait=Wait("Deployment shop/v2", MoveCode.not_available, {"available": 0, "goal": 1, "tolerated": 0}))


def asked_of(found: object) -> tuple[str, int | None]:
    """The phase and the batch that a webhook is asked about."""
    assert isinstance(found, Act), found
    assert found.call is not None
    body = json.decode(found.call.body)
    return body["phase"], body.get("batch")


TRAFFIC = Traffic(
    provider=TrafficProvider.gateway_api,
    route_ref=ObjectReference(name="web", namespace="shop"),
    source_service="web-v1",
    target_service="web-v2",
)
ROUTE = route(HTTP_ROUTE)


def weights_in(patch: Any) -> list[int]:
    """The weights of source and target that a patch of a route writes."""
    return [one["weight"] for one in patch["spec"]["rules"][0]["backendRefs"]]
