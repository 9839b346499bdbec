"""Stages: one stage of a run after the other: its gate, its clusters in their order, its gate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE
from kedge.api.dialect import Dialect
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.reasons import (
    PROGRESSING,
    STAGE_EMPTY,
    STAGE_STARTED,
    STAGE_SUCCEEDED,
    STAGE_WAITING,
    SUCCEEDED,
    UPDATING_FAILED,
)
from kedge.api.stage import Stage, StageTask, StrategySpec
from kedge.api.staged_status import ClusterUpdateStatus, StageStatus, StageTaskStatus
from kedge.plan.staging.gates import Answer, attempt
from kedge.plan.staging.grouping import most_at_once
from kedge.plan.staging.health import Unwell, spoken, unwell
from kedge.plan.staging.naming import When, ask
from kedge.plan.staging.returning import is_rollback
from kedge.plan.staging.round import Broken, Round
from kedge.plan.staging.saying import (
    At,
    is_moving,
    is_over,
    is_settled,
    is_started,
    reason_of,
    say,
    settled,
    settled_at,
)
from kedge.plan.staging.seen import Seen
from kedge.plan.text import counted, first, listed

_GONE: Final = "the run cannot give them to further clusters: make a new run"


class Gates:
    """The tasks before and after stages."""

    def __init__(self, seen: Seen, round_: Round, at: At) -> None:
        self._seen = seen
        self._round = round_
        self._at = at

    def passed(
        self,
        stage: str,
        tasks: Sequence[StageTaskStatus],
        wanted: Sequence[StageTask],
        when: When,
        since: datetime | None = None,
    ) -> tuple[tuple[StageTaskStatus, ...], str]:
        """The tasks as they are now, all tried at once; and what is still waited for, empty if nothing."""
        meta = self._seen.run.metadata
        asked = ask(meta.name, stage, when, self._seen.dialect)
        approval = Answer(self._seen.approvals.get(asked.name), meta.creation_timestamp)
        found = [
            attempt(task, given, asked, approval, since, self._at) for task, given in zip(tasks, wanted, strict=True)
        ]
        self._round.ask += [one.ask for one in found if one.ask is not None]
        self._round.accept += [one.accept for one in found if one.accept is not None]
        self._round.withdraw += [one.withdraw for one in found if one.withdraw is not None]
        self._round.timers += [one.until for one in found if one.until is not None]
        return tuple(one.task for one in found), first(one.waits for one in found if one.waits)


class Stages:
    """The stages of one run, at one look."""

    def __init__(self, seen: Seen, round_: Round, strategy: StrategySpec, at: At) -> None:
        self._seen = seen
        self._round = round_
        self._strategy = strategy
        self._wanted = {stage.name: stage for stage in strategy.stages}
        self._gates = Gates(seen, round_, at)
        self._at = at
        self._before: StageStatus | None = None  # the last stage that is over and has clusters

    def advance(self, stage: StageStatus) -> StageStatus:
        """The stage as far as it gets now. Raises `Broken`."""
        if not stage.clusters:
            return self._skipped(stage)
        wanted = self._wanted[stage.stage_name]
        stage, waits = self._opened(stage, wanted)
        if waits:
            return self._waiting(stage, waits)
        stage = self._moved(stage, wanted)
        if not all(map(is_settled, stage.clusters)):
            return self._moving(stage)
        since = settled_at(stage)
        tasks, waits = self._gates.passed(
            stage.stage_name, stage.after_stage_task_status, wanted.after_stage_tasks, When.after, since
        )
        stage = replace(self._begun(stage), after_stage_task_status=tasks)
        waits = first(filter(None, (waits, self._still_works(stage))))
        return self._waiting(stage, waits) if waits else self._over(stage)

    def keep(self, stage: StageStatus) -> None:
        """See to clusters that are done."""
        if stage.clusters:
            self._before = stage
        for cluster in stage.clusters:
            self._round.tell_again(cluster)

    # Its clusters

    def _opened(self, stage: StageStatus, wanted: Stage) -> tuple[StageStatus, str]:
        if any(map(is_started, stage.clusters)):
            return stage, ""
        tasks, waits = self._gates.passed(
            stage.stage_name, stage.before_stage_task_status, wanted.before_stage_tasks, When.before
        )
        waits = first(filter(None, (waits, self._still_works(self._before))))
        return replace(stage, before_stage_task_status=tasks), waits

    def _moved(self, stage: StageStatus, wanted: Stage) -> StageStatus:
        """With those done that are, and as many begun as may move at once."""
        stage = replace(stage, clusters=tuple(self._followed(stage, one) for one in stage.clusters))
        stage = self._judged(stage, wanted)
        free = most_at_once(wanted, len(stage.clusters)) - sum(map(is_moving, stage.clusters))
        clusters = []
        for cluster in stage.clusters:
            begins = free > 0 and self._may_start(cluster)
            clusters.append(self._round.started(cluster) if begins else cluster)
            free -= begins and is_moving(clusters[-1])
        return replace(stage, clusters=tuple(clusters))

    def _followed(self, stage: StageStatus, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        if is_settled(cluster):
            self._round.tell_again(cluster)
            return cluster
        cluster = self._round.left(stage, cluster, self._strategy.unreachable_clusters)
        return self._round.followed(cluster) if is_moving(cluster) else cluster

    def _may_start(self, cluster: ClusterUpdateStatus) -> bool:
        is_next = not is_started(cluster) and not is_settled(cluster)
        return is_next and self._seen.is_kept and self._seen.picked is not None

    def _judged(self, stage: StageStatus, wanted: Stage) -> StageStatus:
        """With those failed that take too long, if some may. Raises `Broken` if too many have."""
        if wanted.max_failures is None:
            return stage
        clusters = tuple(self._failed(one) if self._round.is_stuck(one) else one for one in stage.clusters)
        stage = replace(stage, clusters=clusters)
        if problem := self._too_many_failed(stage, wanted.max_failures):
            raise Broken(problem, stage)
        return stage

    def _too_many_failed(self, stage: StageStatus, max_failures: IntOrPercent) -> str:
        failed = [one.cluster_name for one in stage.clusters if reason_of(one, SUCCEEDED) == UPDATING_FAILED]
        allowed = resolve(max_failures, len(stage.clusters), round_up=False)
        if len(failed) <= allowed:
            return ""
        total = f"{counted(len(failed), 'cluster')} of stage {stage.stage_name} failed, and {allowed} may"
        return f"{total}: {listed(failed, most=3)}; {failed[-1]}: {self._round.cause(failed[-1])}"

    def _still_works(self, stage: StageStatus | None) -> str:
        """What keeps the gate after a stage that is done shut: empty if nothing. Raises `Broken` if too many failed.

        One that does not work for long has failed after all; what may fail holds nothing up. On the way back nothing
        does: what comes next needs it all the more.
        """
        if stage is None or is_rollback(self._seen.run):
            return ""
        allowed = self._wanted[stage.stage_name].max_failures
        found = unwell(stage, self._seen, self._round, self._strategy.unreachable_clusters)
        self._round.timers += [at for one in found for at in one.timers if at > self._at.now]
        lasting = [one for one in found if one.has_lasted(self._at.now)]
        if allowed is None:
            self._round.stuck += [spoken(stage.stage_name, lasting)] if lasting else []
            return spoken(stage.stage_name, found)
        failed = _with_failed(stage, lasting, self._at)
        if problem := self._too_many_failed(failed, allowed):
            raise Broken(problem, None if is_over(stage) else failed)
        return spoken(stage.stage_name, [one for one in found if one not in lasting])

    def _failed(self, cluster: ClusterUpdateStatus) -> ClusterUpdateStatus:
        self._round.moves.remove(cluster.cluster_name)
        self._round.point = [one for one in self._round.point if one.spec.target_cluster != cluster.cluster_name]
        self._round.stuck = [one for one in self._round.stuck if not one.startswith(f"{cluster.cluster_name} ")]
        return settled(cluster, UPDATING_FAILED, self._round.cause(cluster.cluster_name), self._at)

    # What it says

    def _moving(self, stage: StageStatus) -> StageStatus:
        if self._round.moves:
            return say(self._begun(stage), PROGRESSING, TRUE, STAGE_STARTED, "", self._at)
        if not self._seen.is_kept:
            self._round.stuck.append(f"{self._seen.resources} is gone, and {_GONE}")
            return self._waiting(stage, self._round.stuck[-1])
        return self._waiting(stage, f"clusters are being picked for {self._seen.run.spec.placement_name}")

    def _waiting(self, stage: StageStatus, why: str) -> StageStatus:
        self._round.waits.append(why)
        return say(stage, PROGRESSING, FALSE, STAGE_WAITING, why, self._at)

    def _begun(self, stage: StageStatus) -> StageStatus:
        return stage if stage.start_time is not None else replace(stage, start_time=self._at.now.replace(microsecond=0))

    def _over(self, stage: StageStatus) -> StageStatus:
        reason = STAGE_SUCCEEDED if self._seen.dialect is Dialect.kubefleet else STAGE_WAITING
        stage = say(stage, PROGRESSING, FALSE, reason, "", self._at)
        stage = say(stage, SUCCEEDED, TRUE, STAGE_SUCCEEDED, "", self._at)
        return replace(stage, end_time=self._at.now.replace(microsecond=0))

    def _skipped(self, stage: StageStatus) -> StageStatus:
        stage = say(stage, PROGRESSING, FALSE, STAGE_EMPTY, "", self._at)
        return say(stage, SUCCEEDED, TRUE, STAGE_EMPTY, "", self._at)


def _with_failed(stage: StageStatus, found: Sequence[Unwell], at: At) -> StageStatus:
    causes = {one.cluster: one.cause for one in found}
    clusters = tuple(
        settled(one, UPDATING_FAILED, causes[one.cluster_name], at) if one.cluster_name in causes else one
        for one in stage.clusters
    )
    return replace(stage, clusters=clusters)
