"""Step builder: looks at the clusters of a run, and collects what its next step is to do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE, is_true
from kedge.api.placement_kinds import Approval, Binding
from kedge.api.reasons import (
    CLUSTER_STARTED,
    ROLLOUT_STARTED,
    SUCCEEDED,
    UPDATING_FAILED,
    UPDATING_SKIPPED,
    UPDATING_SUCCEEDED,
)
from kedge.api.stage import Missing
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageStatus
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.rolling.readiness import BindingFacts, FleetFacts, judge, one_binding_per_cluster
from kedge.plan.rolling.wait_text import failure_of
from kedge.plan.staging.approvals import NewApprovalRequest
from kedge.plan.staging.conditions import Stamp, find, has_condition, is_moving, settled, started
from kedge.plan.staging.run_input import RunInput, StageMeasurement
from kedge.plan.staging.wait_text import RunCode
from kedge.plan.text import moment

STUCK_AFTER: Final = timedelta(minutes=5)
TOLD_AFTER: Final = timedelta(seconds=30)
"""That a cluster takes a moment is nothing to tell."""


class RunFailure(Exception):
    """The run cannot go on, ever; says why. `stage` and `status` are as far as it got."""

    def __init__(self, problem: str, stage: StageStatus | None = None) -> None:
        super().__init__(problem)
        self.stage = stage
        self.status: RunStatus | None = None


class StepBuilder:
    """What one look at a run finds to do."""

    def __init__(self, seen: RunInput, at: Stamp, *, is_stopped: bool = False) -> None:
        self._seen = seen
        self._is_stopped = is_stopped
        self._at = at
        self.moves: list[str] = []  # clusters that are on their way
        self.stuck: list[Wait] = []
        self.waits: list[Wait] = []
        self.timers: list[datetime] = []
        self.point: list[Binding] = []
        self.remove: list[Binding] = []
        self.request: list[NewApprovalRequest] = []
        self.accept: list[Approval] = []
        self.withdraw: list[Approval] = []
        self.measure: list[StageMeasurement] = []
        fleet = FleetFacts(at.now, seen.period, seen.unreachable, seen.gone, seen.parting)
        live = (one for one in seen.bindings if one.metadata.deletion_timestamp is None)
        wanted = (judge(one, fleet) for one in live if one.spec.state != BindingState.unscheduled)
        self._units = one_binding_per_cluster(sorted(wanted, key=lambda unit: unit.name))

    # A cluster of a stage

    def unit(self, cluster: str) -> BindingFacts | None:
        """What is known of a cluster; None if it is not picked."""
        return self._units.get(cluster)

    def started(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        """A cluster whose turn it is; done at once if it has all it is to have."""
        return self.followed(started(cluster, "", self._at))

    def followed(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        """A cluster that has begun: done if it is proven to be. What it was not given before a stop, it is not now."""
        unit = self._units.get(cluster.cluster_name)
        if self.is_done(cluster.cluster_name):
            return settled(started(cluster, "", self._at), UPDATING_SUCCEEDED, "", self._at, TRUE)
        points = unit is not None and self.points_there(unit.binding)
        if self._is_stopped and not points:
            return cluster
        if unit is not None and not self.has_arrived(unit.binding):
            self.point.append(unit.binding)
        self.moves.append(cluster.cluster_name)
        return self._with_progress(cluster, unit)

    def is_done(self, name: str) -> bool:
        """Whether a cluster is proven to have what the run brings."""
        unit = self._units.get(name)
        return unit is not None and self.has_arrived(unit.binding) and unit.is_available

    def _with_progress(self, cluster: ClusterUpdateStatus, unit: BindingFacts | None) -> ClusterUpdateStatus:
        """With what it waits for, if it does so for long."""
        since = self.since(cluster)
        due = [since + after for after in (TOLD_AFTER, STUCK_AFTER)]
        self.timers += [at for at in due if at > self._at.now][:1]
        if unit is not None and unit.proven_at is not None:
            self.timers.append(unit.proven_at)
        if self._at.now < since + TOLD_AFTER:
            return cluster
        cause = self.cause(cluster.cluster_name)
        if self._at.now >= since + STUCK_AFTER and (unit is None or unit.proof is not Proof.untracked):
            blocker = Blocker(cluster.cluster_name, None if unit is None else unit.proof, since, reported=cause)
            self.stuck.append(Wait(cluster.cluster_name, RunCode.cluster_stuck, {}, (blocker,)))
        return started(cluster, cause, self._at)

    def forget_stuck(self, cluster: str) -> None:
        """Of a cluster that has failed it is not said as well that it takes long."""
        self.stuck = [one for one in self.stuck if (one.code, one.unit) != (RunCode.cluster_stuck, cluster)]

    def since(self, cluster: ClusterUpdateStatus) -> datetime:
        """When a cluster began."""
        found = find(cluster, CLUSTER_STARTED)
        return found.last_transition_time if found is not None else self._at.now

    def is_stuck(self, cluster: ClusterUpdateStatus) -> bool:
        """Whether a cluster that has begun takes longer than anything should."""
        unit = self._units.get(cluster.cluster_name)
        is_proving = unit is not None and unit.proof is Proof.untracked
        return is_moving(cluster) and not is_proving and self._at.now >= self.since(cluster) + STUCK_AFTER

    def cause(self, name: str) -> str:
        """Why a cluster is not done."""
        unit = self._units.get(name)
        if unit is None:
            return "its binding is being made anew"
        if unit.cluster in self._seen.unreachable:
            return self._seen.unreachable[unit.cluster] or "it is not heard of"
        if not self.has_arrived(unit.binding):
            return f"it is being given {self._seen.resources}"
        if unit.proof is Proof.failed:
            return failure_of(unit.binding)
        if unit.proven_at is not None:
            return f"it cannot be seen whether its resources work, so it is given until {moment(unit.proven_at)}"
        return _CAUSES.get(unit.proof, "its resources are being applied")

    # Its binding

    def points_there(self, binding: Binding) -> bool:
        """Whether a binding has what the run brings."""
        spec = binding.spec
        return (
            spec.state == BindingState.bound
            and spec.resource_snapshot_name == self._seen.resources
            and spec.apply_strategy == self._seen.apply_strategy
        )

    def has_arrived(self, binding: Binding) -> bool:
        """Whether a binding has what the run brings, and the fleet was told so."""
        return self.points_there(binding) and self._has_started_condition(binding)

    def _has_started_condition(self, binding: Binding) -> bool:
        return is_true(binding.status.conditions, ROLLOUT_STARTED, generation=binding.metadata.generation)

    def restore_started_condition(self, cluster: ClusterUpdateStatus) -> None:
        """A cluster that is done, and whose binding was written since: that it has its resources is said anew."""
        unit = self._units.get(cluster.cluster_name)
        if unit is None or not has_condition(cluster, SUCCEEDED):
            return
        if self.points_there(unit.binding) and not self._has_started_condition(unit.binding):
            self.point.append(unit.binding)

    # What becomes of clusters that cannot be reached, or are no longer there

    def left(self, stage: StageStatus, cluster: ClusterUpdateStatus, policy: Missing) -> ClusterUpdateStatus:
        """A cluster that is not done: skipped if it is no longer picked, or unreachable and that is the policy."""
        name, seen = cluster.cluster_name, self._seen
        if seen.picked is not None and name not in seen.picked:
            return settled(cluster, UPDATING_SKIPPED, f"{name} is no longer picked, or has left the fleet", self._at)
        if name not in seen.unreachable or policy is Missing.wait:
            return cluster
        if policy is Missing.skip:
            return settled(cluster, UPDATING_SKIPPED, f"{name} was skipped: {seen.unreachable[name]}", self._at)
        failed = settled(cluster, UPDATING_FAILED, seen.unreachable[name], self._at)
        clusters = tuple(failed if one.cluster_name == name else one for one in stage.clusters)
        raise RunFailure(f"{name} cannot be reached: {seen.unreachable[name]}", replace(stage, clusters=clusters))


_CAUSES: Final = {
    Proof.gone: "it is no member of the fleet any more",
    Proof.leaving: "it is leaving the fleet",
    Proof.nothing: "it has not been given its resources yet",
}
