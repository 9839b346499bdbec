"""Rollbacks: what becomes of a run that failed: its clusters are tried once more, or brought back to what they had.

A retry is asked for by an annotation with a time: clusters that failed until then begin anew, and so does the run. A
rollback is a run of its own, over the clusters that the other had begun with, through the same stages; but without
their tasks, for nothing is to hold up the way back, and nothing is cleared.

A run is rolled back as soon as there is a run that says so of itself, whoever made that. From then on it is over: it
moves nothing, is not tried again and does not go on, whatever its spec says, since it would bring back what was undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Condition
from kedge.api.fleet import RETRY, ROLLBACK_OF
from kedge.api.placement_kinds import Run
from kedge.api.reasons import (
    INITIALIZED,
    NOTHING_BEFORE,
    PROGRESSING,
    ROLLBACK_STARTED,
    ROLLED_BACK,
    RUN_FAILED,
    RUN_NOT_INITIALIZED,
    STAGE_FAILED,
    STAGE_STOPPED,
    SUCCEEDED,
    UPDATING_FAILED,
)
from kedge.api.stage import Missing, StrategySpec
from kedge.api.staged import RunState
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageStatus
from kedge.plan.staging.conditions import (
    Stamp,
    at_generation,
    find,
    has_begun,
    has_ended,
    is_over,
    is_rolled_back,
    is_started,
    reason_of,
    with_condition,
)

_LONGEST: Final = 63  # of a name of a run


# Trying once more


def retried(run: Run) -> RunStatus:
    """The status of a run, in which what failed until it was asked to try again has not failed."""
    until = _asked(run)
    if until is None or is_rolled_back(run.status) or reason_of(run.status, INITIALIZED) == RUN_NOT_INITIALIZED:
        return run.status
    stages = tuple(stage if is_over(stage) else _reopened(stage, until) for stage in run.status.stages_status)
    if not _is_retried(run.status.conditions, RUN_FAILED, until):
        return replace(run.status, stages_status=stages)
    return replace(run.status, stages_status=stages, conditions=_without(run.status.conditions))


def failed_at(status: RunStatus) -> datetime | None:
    """When something failed last that can be tried again; None if nothing has."""
    if is_rolled_back(status):
        return None
    clusters = (one for stage in status.stages_status if not is_over(stage) for one in stage.clusters)
    failed = [find(one, SUCCEEDED) for one in clusters if reason_of(one, SUCCEEDED) == UPDATING_FAILED]
    failed += [find(status, SUCCEEDED)] if reason_of(status, SUCCEEDED) == RUN_FAILED else []
    return max((one.last_transition_time for one in failed if one is not None), default=None)


def _asked(run: Run) -> datetime | None:
    try:
        return msgspec.convert(run.metadata.annotations.get(RETRY), datetime | None)
    except msgspec.ValidationError:
        return None


def _reopened(stage: StageStatus, until: datetime) -> StageStatus:
    clusters = tuple(_renewed(one, until) for one in stage.clusters)
    if not _is_retried(stage.conditions, STAGE_FAILED, until):
        return replace(stage, clusters=clusters)
    return replace(stage, clusters=clusters, conditions=_without(stage.conditions), metrics=(), end_time=None)


def _renewed(cluster: ClusterUpdateStatus, until: datetime) -> ClusterUpdateStatus:
    is_retried = _is_retried(cluster.conditions, UPDATING_FAILED, until)
    return replace(cluster, conditions=()) if is_retried else cluster


def _is_retried(conditions: tuple[Condition, ...], reason: str, until: datetime) -> bool:
    found = next((one for one in conditions if one.type == SUCCEEDED), None)
    return found is not None and found.reason == reason and found.last_transition_time <= until


def _without(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(one for one in conditions if one.type not in (SUCCEEDED, ROLLED_BACK))


# Going back


def is_rollback(run: Run) -> bool:
    """Whether a run takes another one back."""
    return bool(rolled_back_run(run))


def rolled_back_run(run: Run) -> str:
    """The run that a run takes back; empty if it does not."""
    return run.metadata.annotations.get(ROLLBACK_OF, "")


def wants_rollback(run: Run) -> bool:
    """Whether a run that failed is to be taken back, and nothing was done about it yet."""
    strategy = run.status.staged_update_strategy_snapshot
    is_wanted = strategy is not None and strategy.rollback_on_failure and not is_rollback(run)
    return is_wanted and reason_of(run.status, SUCCEEDED) == RUN_FAILED and find(run.status, ROLLED_BACK) is None


def as_rolled_back(run: Run, by: Run, now: datetime) -> RunStatus:
    """The status of a run that is rolled back by another: it is over, wherever it was."""
    at = Stamp(now, run.metadata.generation)
    status = at_generation(run.status, at.generation)
    if is_rolled_back(status):
        return status
    index = by.spec.resource_snapshot_index
    said = f"run {by.metadata.name} brings its clusters back to {f'resources {index}' if index else 'newest resources'}"
    if not has_ended(status):
        status = _ended(status, said, at)
    return with_condition(status, ROLLED_BACK, TRUE, ROLLBACK_STARTED, said, at)


def _ended(status: RunStatus, why: str, at: Stamp) -> RunStatus:
    def end(stage: StageStatus) -> StageStatus:
        if is_over(stage) or not has_begun(stage):
            return stage
        stage = with_condition(stage, PROGRESSING, FALSE, STAGE_STOPPED, why, at)
        return replace(stage, end_time=at.now.replace(microsecond=0))

    last = status.deletion_stage_status
    status = replace(
        status,
        stages_status=tuple(end(stage) for stage in status.stages_status),
        deletion_stage_status=None if last is None else end(last),
    )
    status = with_condition(status, PROGRESSING, FALSE, ROLLED_BACK, why, at)
    return with_condition(status, SUCCEEDED, FALSE, ROLLED_BACK, why, at)


def as_not_rolled_back(run: Run, now: datetime) -> RunStatus:
    """The status of a run that was to be rolled back, and had nothing before it."""
    at = Stamp(now, run.metadata.generation)
    status = at_generation(run.status, at.generation)
    return with_condition(status, ROLLED_BACK, FALSE, NOTHING_BEFORE, "its clusters had nothing before it", at)


def rollback_name(run: Run, number: int = 1) -> str:
    """What the run is called that takes this one back; the first name may be taken, and the second."""
    end = "-rollback" if number == 1 else f"-rollback-{number}"
    return f"{run.metadata.name[: _LONGEST - len(end)].rstrip('-.')}{end}"


def is_rollback_of(found: Run, run: Run) -> bool:
    """Whether a run takes this one back, and not an earlier one of the same name."""
    made, since = found.metadata.creation_timestamp, run.metadata.creation_timestamp
    is_of_name = rolled_back_run(found) == run.metadata.name and found.spec.placement_name == run.spec.placement_name
    return is_of_name and (made is None or since is None or made >= since)


def rollback_run_of(run: Run, runs: Iterable[Run]) -> Run | None:
    """Of these runs the one that takes this one back; None if none does."""
    there = (one for one in runs if one.metadata.deletion_timestamp is None and one.metadata.uid != run.metadata.uid)
    return next((one for one in there if is_rollback_of(one, run)), None)


def rollback_of(run: Run, number: int = 1) -> Mapping[str, Any]:
    """The run that takes this one back, without its namespace."""
    spec = {
        "placementName": run.spec.placement_name,
        "stagedRolloutStrategyName": run.spec.staged_rollout_strategy_name,
        "resourceSnapshotIndex": run.status.previous_resource_snapshot_index,
        "state": RunState.run.value,
    }
    return {
        "metadata": {"name": rollback_name(run, number), "annotations": {ROLLBACK_OF: run.metadata.name}},
        "spec": spec,
    }


def begun_clusters(run: Run) -> frozenset[str]:
    """The clusters that a run had begun with."""
    everyone = (one for stage in run.status.stages_status for one in stage.clusters)
    return frozenset(one.cluster_name for one in everyone if is_started(one))


def without_gates(strategy: StrategySpec) -> StrategySpec:
    """The same stages, with nothing to wait for but that clusters work."""
    stages = tuple(
        replace(stage, before_stage_tasks=(), after_stage_tasks=(), metrics=(), max_failures=None)
        for stage in strategy.stages
    )
    return StrategySpec(stages=stages, unmatched_clusters=Missing.skip)
