"""Stages: one stage of a run after the other: its gate, its clusters in their order, its gate."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE
from kedge.api.dialect import Dialect
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.reasons import (
    CLUSTER_STARTED,
    PROGRESSING,
    STAGE_EMPTY,
    STAGE_STARTED,
    STAGE_SUCCEEDED,
    STAGE_WAITING,
    SUCCEEDED,
    UPDATING_FAILED,
)
from kedge.api.stage import Stage, StrategySpec
from kedge.api.staged_status import ClusterUpdateStatus, StageStatus
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.gate import Closed, Gate, Open, combined
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.staging.approvals import When
from kedge.plan.staging.conditions import (
    Stamp,
    find,
    is_moving,
    is_over,
    is_settled,
    is_started,
    reason_of,
    settled,
    settled_at,
    with_condition,
)
from kedge.plan.staging.gates import Gates, LostProof, health_gate, lost_proofs
from kedge.plan.staging.grouping import most_at_once
from kedge.plan.staging.rollbacks import is_rollback
from kedge.plan.staging.run_input import RunInput
from kedge.plan.staging.stage_metrics import metrics_gate
from kedge.plan.staging.step_builder import RunFailure, StepBuilder
from kedge.plan.staging.wait_text import RunCode, wait_texts
from kedge.plan.text import counted, listed

_BEFORE, _AFTER = "before", "after"


def granted(stage: StageStatus, wanted: Stage, done: Set[str] = frozenset()) -> Grants:
    """Which clusters of a stage may begin now, and what the others wait for, by maxConcurrency.

    It limits how many have begun and are not done, whatever they were before: so a cluster counts as available until it
    begins, and again once it is done. `done`: clusters that have all they are to have before they begin.
    """
    units = [_unit(one, done) for one in stage.clusters]
    most = most_at_once(wanted, len(units))
    return grant(units, Budget(len(units), most), order=[unit.key for unit in units])


def _unit(cluster: ClusterUpdateStatus, done: Set[str]) -> Unit:
    if is_settled(cluster) or cluster.cluster_name in done:
        return Unit(cluster.cluster_name, _AFTER, _AFTER, Proof.proven)
    begun = find(cluster, CLUSTER_STARTED)
    if begun is None or not is_started(cluster):
        return Unit(cluster.cluster_name, _BEFORE, _AFTER, Proof.proven)
    return Unit(cluster.cluster_name, _AFTER, _AFTER, Proof.pending, begun.last_transition_time)


class Stages:
    """The stages of one run, at one look."""

    def __init__(self, seen: RunInput, builder: StepBuilder, strategy: StrategySpec, at: Stamp) -> None:
        self._seen = seen
        self._builder = builder
        self._strategy = strategy
        self._wanted = {stage.name: stage for stage in strategy.stages}
        self._gates = Gates(seen, builder, at)
        self._at = at
        self._before: StageStatus | None = None  # the last stage that is over and has clusters

    def advance(self, stage: StageStatus) -> StageStatus:
        """The stage as far as it gets now. Raises `RunFailure`."""
        if not stage.clusters:
            return self._skipped(stage)
        wanted = self._wanted[stage.stage_name]
        stage, gate = self._opened(stage, wanted)
        if isinstance(gate, Closed):
            return self._waiting(stage, gate.waits)
        stage = self._moved(stage, wanted)
        if not all(map(is_settled, stage.clusters)):
            return self._moving(stage)
        since = settled_at(stage)
        tasks, gate = self._gates.passed(
            stage.stage_name, stage.after_stage_task_status, wanted.after_stage_tasks, When.after, since
        )
        stage = replace(self._begun(stage), after_stage_task_status=tasks)
        metrics = metrics_gate(stage, wanted, since or self._at.now, self._builder, self._at)
        gate = combined((gate, self._still_works(stage), metrics))
        return self._waiting(stage, gate.waits) if isinstance(gate, Closed) else self._over(stage)

    def keep(self, stage: StageStatus) -> None:
        """See to clusters that are done."""
        if stage.clusters:
            self._before = stage
        for cluster in stage.clusters:
            self._builder.restore_started_condition(cluster)

    # Its clusters

    def _opened(self, stage: StageStatus, wanted: Stage) -> tuple[StageStatus, Gate]:
        if any(map(is_started, stage.clusters)):
            return stage, Open()
        tasks, gate = self._gates.passed(
            stage.stage_name, stage.before_stage_task_status, wanted.before_stage_tasks, When.before
        )
        gate = combined((gate, self._still_works(self._before)))
        return replace(stage, before_stage_task_status=tasks), gate

    def _moved(self, stage: StageStatus, wanted: Stage) -> StageStatus:
        """With those done that are, and as many begun as may move at once."""
        stage = replace(stage, clusters=tuple(self._followed(stage, one) for one in stage.clusters))
        stage = self._judged(stage, wanted)
        begun = self._next(stage, wanted) if self._may_start else frozenset()
        clusters = (self._builder.started(one) if one.cluster_name in begun else one for one in stage.clusters)
        return replace(stage, clusters=tuple(clusters))

    def _next(self, stage: StageStatus, wanted: Stage) -> frozenset[str]:
        """The clusters that begin now. One that has all it is to have is done at once and keeps no place, but it begins
        in its turn: not after the one that has taken the last place.
        """
        names = [one.cluster_name for one in stage.clusters]
        later = (one.cluster_name for one in stage.clusters if not is_started(one) and not is_settled(one))
        done = frozenset(name for name in later if self._builder.is_done(name))
        grants = granted(stage, wanted, done)
        ahead = names if grants.spare else names[: names.index(grants.moved[-1])] if grants.moved else []
        return done.intersection(ahead).union(grants.moved)

    def _followed(self, stage: StageStatus, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        if is_settled(cluster):
            self._builder.restore_started_condition(cluster)
            return cluster
        cluster = self._builder.left(stage, cluster, self._strategy.unreachable_clusters)
        return self._builder.followed(cluster) if is_moving(cluster) else cluster

    @property
    def _may_start(self) -> bool:
        return self._seen.is_kept and self._seen.picked is not None

    def _judged(self, stage: StageStatus, wanted: Stage) -> StageStatus:
        """With those failed that take too long, if some may. Raises `RunFailure` if too many have."""
        if wanted.max_failures is None:
            return stage
        clusters = tuple(self._failed(one) if self._builder.is_stuck(one) else one for one in stage.clusters)
        stage = replace(stage, clusters=clusters)
        if problem := self._too_many_failed(stage, wanted.max_failures):
            raise RunFailure(problem, stage)
        return stage

    def _too_many_failed(self, stage: StageStatus, max_failures: IntOrPercent) -> str:
        failed = [one.cluster_name for one in stage.clusters if reason_of(one, SUCCEEDED) == UPDATING_FAILED]
        allowed = resolve(max_failures, len(stage.clusters), round_up=False)
        if len(failed) <= allowed:
            return ""
        total = f"{counted(len(failed), 'cluster')} of stage {stage.stage_name} failed, and {allowed} may"
        return f"{total}: {listed(failed, most=3)}; {failed[-1]}: {self._builder.cause(failed[-1])}"

    def _still_works(self, stage: StageStatus | None) -> Gate:
        """The gate after a stage that is done. Raises `RunFailure` if too many of its clusters have failed since.

        One that does not work for long has failed after all; what may fail holds nothing up. On the way back nothing
        does: what comes next needs it all the more.
        """
        if stage is None or is_rollback(self._seen.run):
            return Open()
        allowed = self._wanted[stage.stage_name].max_failures
        lost = lost_proofs(stage, self._seen, self._builder, self._strategy.unreachable_clusters)
        self._builder.timers += [at for one in lost for at in one.timers if at > self._at.now]
        lasting = [one for one in lost if one.has_lasted(self._at.now)]
        if allowed is None:
            stuck = health_gate(stage.stage_name, lasting)
            self._builder.stuck += stuck.waits if isinstance(stuck, Closed) else ()
            return health_gate(stage.stage_name, lost)
        failed = _with_failed(stage, lasting, self._at)
        if problem := self._too_many_failed(failed, allowed):
            raise RunFailure(problem, None if is_over(stage) else failed)
        return health_gate(stage.stage_name, [one for one in lost if one not in lasting])

    def _failed(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        self._builder.moves.remove(cluster.cluster_name)
        self._builder.point = [one for one in self._builder.point if one.spec.target_cluster != cluster.cluster_name]
        self._builder.forget_stuck(cluster.cluster_name)
        return settled(cluster, UPDATING_FAILED, self._builder.cause(cluster.cluster_name), self._at)

    # What it says

    def _moving(self, stage: StageStatus) -> StageStatus:
        if self._builder.moves:
            return with_condition(self._begun(stage), PROGRESSING, TRUE, STAGE_STARTED, "", self._at)
        if not self._seen.is_kept:
            gone = Wait(stage.stage_name, RunCode.resources_gone, {}, (Blocker(self._seen.resources),))
            self._builder.stuck.append(gone)
            return self._waiting(stage, (gone,))
        placement = Blocker(self._seen.run.spec.placement_name)
        return self._waiting(stage, (Wait(stage.stage_name, RunCode.scheduling, {}, (placement,)),))

    def _waiting(self, stage: StageStatus, waits: Sequence[Wait]) -> StageStatus:
        self._builder.waits += waits
        text = wait_texts(waits, self._seen.run.metadata.name)
        return with_condition(stage, PROGRESSING, FALSE, STAGE_WAITING, text, self._at)

    def _begun(self, stage: StageStatus) -> StageStatus:
        return stage if stage.start_time is not None else replace(stage, start_time=self._at.now.replace(microsecond=0))

    def _over(self, stage: StageStatus) -> StageStatus:
        reason = STAGE_SUCCEEDED if self._seen.dialect is Dialect.kubefleet else STAGE_WAITING
        stage = with_condition(stage, PROGRESSING, FALSE, reason, "", self._at)
        stage = with_condition(stage, SUCCEEDED, TRUE, STAGE_SUCCEEDED, "", self._at)
        return replace(stage, end_time=self._at.now.replace(microsecond=0))

    def _skipped(self, stage: StageStatus) -> StageStatus:
        stage = with_condition(stage, PROGRESSING, FALSE, STAGE_EMPTY, "", self._at)
        return with_condition(stage, SUCCEEDED, TRUE, STAGE_EMPTY, "", self._at)


def _with_failed(stage: StageStatus, lost: Sequence[LostProof], at: Stamp) -> StageStatus:
    causes = {one.unit.key: one.cause for one in lost}
    clusters = tuple(
        settled(one, UPDATING_FAILED, causes[one.cluster_name], at) if one.cluster_name in causes else one
        for one in stage.clusters
    )
    return replace(stage, clusters=clusters)
