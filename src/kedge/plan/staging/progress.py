"""Progress: how far a run has got, in a sentence; and when each cluster's turn is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kedge.api.condition import FALSE, TRUE
from kedge.api.placement_kinds import Run
from kedge.api.reasons import PROGRESSING, ROLLED_BACK, SUCCEEDED
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageStatus
from kedge.plan.staging.conditions import (
    find,
    has_condition,
    has_ended,
    is_initialized,
    is_over,
    is_settled,
    is_started,
)
from kedge.plan.text import of_all


def creation_order(run: Run) -> tuple[float, str]:
    """The order in which runs were made."""
    made = run.metadata.creation_timestamp
    return (made.timestamp() if made else 0.0, run.metadata.name)


def run_to_report(runs: Iterable[Run]) -> Run | None:
    """The run to speak of: the one under way that was made first, or else the last that was made."""
    known = sorted(runs, key=creation_order)
    live = [run for run in known if not has_ended(run.status)]
    return live[0] if live else known[-1] if known else None


def progress(run: Run) -> str:
    """How far a run has got."""
    name, status = run.metadata.name, run.status
    back = find(status, ROLLED_BACK)
    if back is not None and back.status == TRUE:
        return f"run {name} was rolled back: {back.message}"
    if not is_initialized(status):
        reason = status.conditions[-1].message if status.conditions else ""
        return f"run {name} has not begun" + (f": {reason}" if reason else "")
    everyone = list(_clusters(status))
    done = of_all(sum(has_condition(one, SUCCEEDED) for one in everyone), len(everyone), "cluster")
    said = find(status, PROGRESSING)
    why = f": {said.message}" if said is not None and said.status == FALSE and said.message else ""
    return f"run {name} has brought {done} resources {status.resource_snapshot_index_used}{_where(status)}{why}"


def turn_texts(run: Run) -> Mapping[str, str]:
    """What each cluster that a run has not begun with waits for."""
    if has_ended(run.status):
        return {}
    return {
        cluster.cluster_name: f"Run {run.metadata.name} brings this cluster its resources in stage {stage.stage_name}"
        for stage in run.status.stages_status
        for cluster in stage.clusters
        if not is_started(cluster) and not is_settled(cluster)
    }


def current(status: RunStatus) -> StageStatus | None:
    """The stage a run is in, or is to begin; None if all are over."""
    last = (status.deletion_stage_status,) if status.deletion_stage_status is not None else ()
    return next((stage for stage in (*status.stages_status, *last) if not is_over(stage)), None)


def _where(status: RunStatus) -> str:
    stage = current(status)
    if stage is None or has_ended(status):
        return ""
    names = [one.stage_name for one in status.stages_status]
    number = names.index(stage.stage_name) + 1 if stage.stage_name in names else 0
    return f", and is in stage {stage.stage_name} ({number} of {len(names)})" if number else ", and clears clusters"


def _clusters(status: RunStatus) -> Iterable[ClusterUpdateStatus]:
    return (cluster for stage in status.stages_status for cluster in stage.clusters)
