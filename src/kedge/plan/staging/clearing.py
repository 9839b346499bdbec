"""Clearing: the last stage of a run, in which clusters that are no longer picked lose what was placed on them.

All at once, as nothing is gained by leaving one longer; but not before the tasks that guard it, and never a cluster
that is leaving the fleet: what was placed there is to stay.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import (
    PROGRESSING,
    STAGE_STARTED,
    STAGE_SUCCEEDED,
    STAGE_WAITING,
    SUCCEEDED,
    UPDATING_SKIPPED,
    UPDATING_SUCCEEDED,
)
from kedge.api.stage import StageTaskType, StrategySpec
from kedge.api.staged_status import DELETE_STAGE, ClusterUpdateStatus, StageStatus, StageTaskStatus
from kedge.plan.moving.gate import Closed, Gate, Open
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.staging.approvals import When, new_approval_request
from kedge.plan.staging.conditions import (
    Stamp,
    is_moving,
    is_settled,
    is_started,
    settled,
    started,
    unstarted,
    with_condition,
)
from kedge.plan.staging.gates import Gates
from kedge.plan.staging.rollbacks import is_rollback
from kedge.plan.staging.run_input import RunInput
from kedge.plan.staging.step_builder import STUCK_AFTER, StepBuilder
from kedge.plan.staging.wait_text import RunCode, wait_texts


class Clearing:
    """The last stage of one run, at one look."""

    def __init__(
        self, seen: RunInput, builder: StepBuilder, strategy: StrategySpec, at: Stamp, since: datetime | None = None
    ) -> None:
        """`since` is when all that comes before it was done."""
        self._seen = seen
        self._since = since
        self._builder = builder
        self._strategy = strategy
        self._at = at

    def advance(self, stage: StageStatus | None) -> StageStatus:
        """The stage as far as it gets now."""
        stage = stage or StageStatus(stage_name=DELETE_STAGE, clusters=())
        if not any(map(is_started, stage.clusters)):
            stage = self._listed(stage)
            stage, gate = self._opened(stage)
            if isinstance(gate, Closed):
                self._builder.waits += gate.waits
                text = wait_texts(gate.waits, self._seen.run.metadata.name)
                return with_condition(stage, PROGRESSING, FALSE, STAGE_WAITING, text, self._at)
        stage = replace(stage, clusters=tuple(map(self._cleared, stage.clusters)))
        stage = replace(stage, start_time=stage.start_time or self._now())
        if not all(map(is_settled, stage.clusters)):
            return with_condition(stage, PROGRESSING, TRUE, STAGE_STARTED, "", self._at)
        stage = with_condition(stage, PROGRESSING, FALSE, STAGE_SUCCEEDED, "", self._at)
        return replace(with_condition(stage, SUCCEEDED, TRUE, STAGE_SUCCEEDED, "", self._at), end_time=self._now())

    def _now(self) -> datetime:
        return self._at.now.replace(microsecond=0)

    def rested(self, stage: StageStatus) -> StageStatus:
        """The stage of a run that is stopped: what is on its way goes on, nothing else is begun."""
        clusters = tuple(self._cleared(one) if is_moving(one) else one for one in stage.clusters)
        self._builder.remove.clear()
        going = {one.spec.target_cluster for one in self._seen.bindings if one.metadata.deletion_timestamp is not None}
        self._builder.moves = [one for one in self._builder.moves if one in going]
        return replace(stage, clusters=clusters)

    # Its gate

    def _listed(self, stage: StageStatus) -> StageStatus:
        """With those that are to be cleared now: since the run began, clusters may have gone or been picked again."""
        leaving = {one.spec.target_cluster for one in self._seen.bindings if self._is_leaving(one)}
        if is_rollback(self._seen.run):
            leaving = set()  # it brings back, and takes nothing away
        return replace(stage, clusters=unstarted(sorted(leaving)))

    def _is_leaving(self, binding: Binding) -> bool:
        return binding.spec.state == BindingState.unscheduled

    def _opened(self, stage: StageStatus) -> tuple[StageStatus, Gate]:
        wanted = self._strategy.delete_stage_tasks
        if not stage.clusters or not wanted:
            return stage, Open()
        tasks = stage.before_stage_task_status or tuple(map(self._task, [task.type for task in wanted]))
        gates = Gates(self._seen, self._builder, self._at)
        tasks, gate = gates.passed(DELETE_STAGE, tasks, wanted, When.before, self._since)
        return replace(stage, before_stage_task_status=tasks), gate

    def _task(self, kind: StageTaskType) -> StageTaskStatus:
        asked = new_approval_request(self._seen.run.metadata.name, DELETE_STAGE, When.before, self._seen.dialect)
        return StageTaskStatus(type=kind, approval_request_name=asked.name if kind is StageTaskType.approval else None)

    # Its clusters

    def _cleared(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        if is_settled(cluster):
            return cluster
        name = cluster.cluster_name
        left = [one for one in self._seen.bindings if one.spec.target_cluster == name and self._is_leaving(one)]
        cluster = cluster if is_moving(cluster) else started(cluster, "", self._at)
        if not left and any(one.spec.target_cluster == name for one in self._seen.bindings):
            return settled(cluster, UPDATING_SKIPPED, f"{name} is picked again", self._at)
        if not left:
            return settled(cluster, UPDATING_SUCCEEDED, "", self._at, TRUE)
        self._builder.moves.append(name)
        if name not in self._seen.parting:
            self._builder.remove += [one for one in left if one.metadata.deletion_timestamp is None]
        return self._with_progress(cluster)

    def _with_progress(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        name, since = cluster.cluster_name, self._builder.since(cluster)
        if self._at.now < since + STUCK_AFTER:
            self._builder.timers.append(since + STUCK_AFTER)
            return cluster
        cause = self._seen.unreachable.get(name) or "what was placed there is not gone yet"
        blocker = Blocker(name, Proof.leaving, since, reported=cause)
        self._builder.stuck.append(Wait(name, RunCode.cluster_not_cleared, {}, (blocker,)))
        return started(cluster, cause, self._at)
