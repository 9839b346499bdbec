"""Changing: what becomes of a run's stages when clusters join while it is under way.

A cluster that is picked later belongs to its stage as if it had been there, as long as no cluster of that stage has
begun. If its stage is under way or over, it is left to the next run: it would pass the stage's gates unseen.
"""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.selector import selects
from kedge.api.stage import Stage, StrategySpec
from kedge.api.staged_status import RunStatus, StageStatus
from kedge.plan.staging.grouping import BadStages, order, selected
from kedge.plan.staging.initializing import unstarted
from kedge.plan.staging.returning import is_rollback
from kedge.plan.staging.saying import is_over, is_settled, is_started
from kedge.plan.staging.seen import Seen


def changed(seen: Seen, status: RunStatus) -> RunStatus:
    """The status with clusters that were picked since in the stages they belong to."""
    strategy = status.staged_update_strategy_snapshot or StrategySpec(stages=())
    new = _of_one_stage(seen, strategy, newcomers(seen, status))
    if not new:
        return status
    wanted = {stage.name: stage for stage in strategy.stages}
    stages = tuple(_joined(seen, wanted[stage.stage_name], stage, new) for stage in status.stages_status)
    return replace(status, stages_status=stages)


def newcomers(seen: Seen, status: RunStatus) -> frozenset[str]:
    """Clusters that are picked, and no part of the run."""
    if is_rollback(seen.run):
        return frozenset()  # it is confined to the clusters of the run it takes back
    known = {cluster.cluster_name for stage in status.stages_status for cluster in stage.clusters}
    bound = {one.spec.target_cluster for one in seen.bindings}
    return frozenset((seen.picked or frozenset()) & bound & seen.labels.keys() - known)


def _of_one_stage(seen: Seen, strategy: StrategySpec, new: frozenset[str]) -> frozenset[str]:
    """Those that belong to one stage alone: what two stages select is a mistake, for a run that says so."""

    def belongs(stage: Stage, name: str) -> bool:
        return selects(stage.label_selector, seen.labels[name])

    return frozenset(name for name in new if sum(belongs(stage, name) for stage in strategy.stages) == 1)


def _joined(seen: Seen, wanted: Stage, stage: StageStatus, new: frozenset[str]) -> StageStatus:
    if is_over(stage) or any(is_started(one) or is_settled(one) for one in stage.clusters):
        return stage
    try:
        found = selected(wanted, {name: seen.labels[name] for name in new}, seen.dialect)
    except BadStages:  # such as a label that is no number: the cluster is left to a run that says so
        return stage
    if not found:
        return stage
    everyone = {*(one.cluster_name for one in stage.clusters), *found}
    ordered = sorted(everyone, key=lambda name: order(wanted, name, seen.labels.get(name, {})))
    return replace(stage, clusters=unstarted(ordered))
