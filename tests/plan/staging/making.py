"""Runs, strategies and approvals by hand, in a line each; and a world in which a run takes its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.binding import BindingState, BindingStatus
from kedge.api.condition import TRUE, Condition, find_condition, set_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import (
    IS_LATEST,
    PARENT_PLACEMENT,
    PLACEMENT_GENERATION,
    POLICY_INDEX,
    RESOURCE_HASH,
    RESOURCE_INDEX,
)
from kedge.api.meta import ObjectMeta, SignedMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.placement_kinds import Approval, Binding
from kedge.api.rollout import ApplyStrategy, RollingUpdate, RolloutStrategy, RolloutStrategyType
from kedge.api.selector import LabelSelector
from kedge.api.snapshot import (
    ClusterDecision,
    ClusterSchedulingPolicySnapshot,
    PolicySnapshotSpec,
    PolicySnapshotStatus,
)
from kedge.api.stage import Stage, StageTask, StageTaskType, StrategySpec
from kedge.api.staged import (
    ApprovalCondition,
    ApprovalSpec,
    ApprovalStatus,
    ClusterApprovalRequest,
    ClusterStagedUpdateRun,
    ClusterStagedUpdateStrategy,
    RunSpec,
    RunState,
)
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageStatus
from kedge.plan.staging.conditions import is_moving
from kedge.plan.staging.initializing import InitializationInput, Newest, initialize
from kedge.plan.staging.run_input import RunInput, RunStep
from kedge.plan.staging.step import step
from plan.rolling.making import AVAILABLE, NOTHING, NOW, Said, binding, scheduled

TARGET = "crp-1-snapshot"
APPROVAL = StageTask(type=StageTaskType.approval)


def timed(wait: str) -> StageTask:
    return StageTask(type=StageTaskType.timed_wait, wait_time=wait)


def stage(name: str, **how: Any) -> Stage:
    """A stage of the clusters whose label `stage` is its name."""
    return Stage(name=name, **{"label_selector": LabelSelector(match_labels={"stage": name}), **how})


def strategy(*stages: Stage, **how: Any) -> ClusterStagedUpdateStrategy:
    return ClusterStagedUpdateStrategy(
        metadata=ObjectMeta(name="strategy", uid="s", generation=1), spec=StrategySpec(stages=stages, **how)
    )


def run(state: RunState | None = RunState.run, *, index: str | None = "1", **how: Any) -> ClusterStagedUpdateRun:
    spec = RunSpec(
        placement_name="crp", staged_rollout_strategy_name="strategy", resource_snapshot_index=index, state=state
    )
    meta = {"name": "run", "uid": "r", "generation": 1, "resource_version": "1", "creation_timestamp": NOW}
    return ClusterStagedUpdateRun(metadata=ObjectMeta(**{**meta, **how}), spec=spec)


def placement(*, external: bool = True, generation: int = 1, **how: Any) -> ClusterResourcePlacement:
    kind = RolloutStrategyType.external if external else RolloutStrategyType.rolling_update
    return ClusterResourcePlacement(
        metadata=ObjectMeta(name="crp", uid="p", generation=generation, **how),
        spec=PlacementSpec(
            resource_selectors=(),
            strategy=RolloutStrategy(type=kind, rolling_update=RollingUpdate(unavailable_period_seconds=60)),
        ),
    )


def policy(*picked: str, status: str = TRUE, generation: int = 1, told: bool = True) -> ClusterSchedulingPolicySnapshot:
    said = Condition(
        type=reasons.SCHEDULED,
        status=status,
        reason="Reason",
        message="found 1 cluster(s) instead",
        last_transition_time=NOW,
        observed_generation=1,
    )
    decisions = tuple(ClusterDecision(cluster_name=name, selected=True, reason="picked") for name in picked)
    return ClusterSchedulingPolicySnapshot(
        metadata=ObjectMeta(
            name="crp-0",
            generation=1,
            labels={PARENT_PLACEMENT: "crp", POLICY_INDEX: "0", IS_LATEST: "true"},
            annotations={PLACEMENT_GENERATION: str(generation)},
        ),
        spec=PolicySnapshotSpec(policy_hash="eA=="),
        status=PolicySnapshotStatus(observed_crp_generation=generation, conditions=(said,), target_clusters=decisions)
        if told
        else None,
    )


def snapshot(index: int) -> ObjectMeta:
    labels = {PARENT_PLACEMENT: "crp", RESOURCE_INDEX: str(index)}
    return ObjectMeta(name=f"crp-{index}-snapshot", labels=labels, annotations={RESOURCE_HASH: "x"})


def beginning(stages: Mapping[str, str], *wanted: Stage, **how: Any) -> InitializationInput:
    """A run about to begin; `stages` are the clusters' labels `stage`."""
    given: dict[str, Any] = {
        "run": run(),
        "placement": placement(),
        "strategy": strategy(*wanted),
        "policies": [policy(*stages)],
        "snapshots": [snapshot(0), snapshot(1)],
        "bindings": [scheduled(name) for name in stages],
        "labels": {name: {"stage": value} for name, value in stages.items()},
        "newest": Newest(1),
    }
    return InitializationInput(**{**given, **how})


def approval(name: str, stage: str, *, run: str = "run", **how: Any) -> ClusterApprovalRequest:
    meta = SignedMeta(name=name, uid=f"a-{name}", generation=1, resource_version="1", **how)
    return ClusterApprovalRequest(metadata=meta, spec=ApprovalSpec(parent_stage_rollout=run, target_stage=stage))


def approved(
    request: Approval, *, status: str = TRUE, generation: int | None = 1, kind: str = reasons.APPROVED
) -> Approval:
    said = ApprovalCondition(
        type=kind,
        status=status,
        reason="tested as OK",
        message="lgtm",
        last_transition_time=NOW,
        observed_generation=generation,
    )
    return replace(request, status=ApprovalStatus(conditions=set_condition(request.status.conditions, said)))


class World:
    """A run, its clusters, and who approves: everybody does only what a test has them do."""

    def __init__(self, stages: Mapping[str, str], *wanted: Stage, **how: Any) -> None:
        self.now = NOW
        self.dialect: Dialect = how.pop("dialect", Dialect.seed)
        self.stages = dict(stages)
        self.labels: dict[str, Mapping[str, str]] = {name: {"stage": value} for name, value in stages.items()}
        self.bindings: dict[str, Binding] = {name: scheduled(name) for name in stages}
        self.approvals: dict[str, Approval] = {}
        self.picked: set[str] | None = set(stages)
        self.unreachable: dict[str, str] = {}
        self.around: dict[str, Any] = {}
        begun = beginning(stages, *wanted, dialect=self.dialect, **how)
        self.placement: ClusterResourcePlacement | None = placement()
        self.run = replace(run(), status=initialize(begun, self.now))
        assert find_condition(self.run.status.conditions, reasons.INITIALIZED).status == TRUE, self.run.status  # type: ignore[union-attr]  # it says so or fails

    # Looking

    @property
    def seen(self) -> RunInput:
        return RunInput(
            run=self.run,
            placement=self.placement,
            bindings=tuple(self.bindings.values()),
            approvals=self.approvals,
            resources=TARGET,
            picked=None if self.picked is None else frozenset(self.picked),
            labels=self.labels,
            unreachable=self.unreachable,
            dialect=self.dialect,
            **self.around,
        )

    @property
    def status(self) -> RunStatus:
        return self.run.status

    def stage(self, name: str) -> StageStatus:
        return next(one for one in self.status.stages_status if one.stage_name == name)

    def cluster(self, name: str) -> ClusterUpdateStatus:
        return next(one for stage in self.status.stages_status for one in stage.clusters if one.cluster_name == name)

    def says(self, kind: str = reasons.PROGRESSING) -> str:
        """What the run says, as `status/reason`."""
        found = find_condition(self.status.conditions, kind)
        return f"{found.status}/{found.reason}" if found else ""

    def message(self, kind: str = reasons.PROGRESSING) -> str:
        found = find_condition(self.status.conditions, kind)
        return found.message if found else ""

    def stage_says(self, name: str, kind: str = reasons.PROGRESSING) -> str:
        found = find_condition(self.stage(name).conditions, kind)
        return f"{found.status}/{found.reason}" if found else ""

    def given(self) -> list[str]:
        """The clusters that have the run's resources."""
        return sorted(name for name, one in self.bindings.items() if one.spec.resource_snapshot_name == TARGET)

    def moving(self, stage: str) -> list[str]:
        return [one.cluster_name for one in self.stage(stage).clusters if is_moving(one)]

    # Acting

    def look(self, *, lose: bool = False) -> RunStep:
        """Take a step; `lose` is a crash after the run's own write."""
        planned = step(self.seen, self.now)
        self.run = replace(self.run, status=planned.status)
        if lose:
            return planned
        for one in planned.point:
            self.point(one)
        for one in planned.remove:
            self.bindings = {
                name: found for name, found in self.bindings.items() if found.metadata.uid != one.metadata.uid
            }
        for asked in planned.request:
            self.approvals[asked.name] = approval(asked.name, str(asked.body["spec"]["targetStage"]))
        for request in planned.accept:
            self.approvals[request.metadata.name] = approved(request, kind=reasons.APPROVAL_ACCEPTED)
        return planned

    def settle(self) -> None:
        """Look until nothing changes."""
        for _ in range(100):
            before = (self.run, dict(self.bindings), dict(self.approvals))
            self.look()
            if before == (self.run, dict(self.bindings), dict(self.approvals)):
                return
        raise AssertionError("it does not come to rest")

    def point(self, one: Binding) -> None:
        spec = replace(
            one.spec, state=BindingState.bound, resource_snapshot_name=TARGET, apply_strategy=ApplyStrategy()
        )
        generation = one.metadata.generation + (spec != one.spec)
        said = Condition(
            type=reasons.ROLLOUT_STARTED,
            status=TRUE,
            reason=reasons.STARTED,
            message="",
            last_transition_time=self.now,
            observed_generation=generation,
        )
        status = BindingStatus(conditions=set_condition(one.status.conditions, said))
        meta = replace(one.metadata, generation=generation)
        self.bindings[one.spec.target_cluster] = replace(one, metadata=meta, spec=spec, status=status)

    def say(self, said: Said, *clusters: str) -> None:
        """Members report this of their bindings as they are now."""
        for name in clusters:
            one = self.bindings[name]
            conditions = one.status.conditions
            for found in binding(name, said, generation=one.metadata.generation).status.conditions:
                conditions = set_condition(conditions, replace(found, last_transition_time=self.now))
            failed = binding(name, said).status.failed_placements
            self.bindings[name] = replace(one, status=BindingStatus(conditions=conditions, failed_placements=failed))

    def arrive(self, *clusters: str) -> None:
        """Members become available, and the run takes note."""
        self.say(AVAILABLE, *clusters)
        self.settle()

    def arrive_all(self) -> None:
        """As many rounds as it takes for every cluster that may move."""
        for _ in range(len(self.bindings) + 1):
            self.arrive(*self.given())

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.settle()

    def set_state(self, state: RunState) -> None:
        spec = replace(self.run.spec, state=state)
        meta = replace(self.run.metadata, generation=self.run.metadata.generation + (spec != self.run.spec))
        self.run = replace(self.run, spec=spec, metadata=meta)

    def approve(self, name: str, **how: Any) -> None:
        self.approvals[name] = approved(self.approvals[name], **how)

    def unpick(self, name: str, *, leave_binding: bool = True) -> None:
        if self.picked is not None:
            self.picked.discard(name)
        one = self.bindings[name]
        self.bindings[name] = replace(one, spec=replace(one.spec, state=BindingState.unscheduled))
        if not leave_binding:
            del self.bindings[name]

    def join(self, name: str, stage: str) -> None:
        self.labels[name] = {"stage": stage}
        self.bindings[name] = scheduled(name)
        assert self.picked is not None
        self.picked.add(name)


def times(found: Sequence[datetime | None]) -> list[float]:
    """As seconds since the beginning."""
    return [(one - NOW).total_seconds() for one in found if one is not None]


__all__ = ["AVAILABLE", "NOTHING", "NOW"]
