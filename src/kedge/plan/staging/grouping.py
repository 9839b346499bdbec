"""Grouping: which clusters belong to which stage of a strategy, and in which order.

Each cluster belongs to exactly one stage: one that two stages select is a mistake. In a stage clusters come by the
value of the sorting label, then by name. Whole numbers compare as numbers and come first, then other values as text,
then clusters without the label; today's KubeFleet takes whole numbers only.

A cluster that is picked later belongs to its stage as if it had been there, as long as no cluster of that stage has
begun. If its stage is under way or over, it is left to the next run: it would pass the stage's gates unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.numbers import resolve
from kedge.api.selector import InvalidSelector, selects
from kedge.api.stage import Stage, StageTask, StageTaskType, StrategySpec
from kedge.api.staged_status import RunStatus, StageStatus
from kedge.api.times import parse_duration
from kedge.plan.staging.conditions import is_over, is_settled, is_started, unstarted
from kedge.plan.staging.rollbacks import is_rollback
from kedge.plan.staging.run_input import Labels, RunInput

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}")


class BadStages(ValueError):
    """Stages that cannot be followed; says which, and what to do."""


class Grouped(Struct, frozen=True):
    """The clusters of each stage by its name, in order, and those that no stage selects."""

    stages: Mapping[str, tuple[str, ...]]
    unmatched: tuple[str, ...] = ()


def grouped(strategy: StrategySpec, clusters: Mapping[str, Labels], dialect: Dialect) -> Grouped:
    """Which of these clusters belong to which stage. Raises `BadStages`."""
    check(strategy)
    stages: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for stage in strategy.stages:
        found = selected(stage, clusters, dialect)
        if twice := sorted(taken.intersection(found)):
            raise BadStages(
                f"cluster `{twice[0]}` appears in more than one stages: {_both(strategy, clusters, twice[0])}"
            )
        taken.update(found)
        stages[stage.name] = found
    return Grouped(stages, tuple(sorted(clusters.keys() - taken)))


def selected(stage: Stage, clusters: Mapping[str, Labels], dialect: Dialect) -> tuple[str, ...]:
    """The clusters of one stage, in order. Raises `BadStages`."""
    found = [name for name, labels in clusters.items() if _selects(stage, labels)]
    if dialect is Dialect.kubefleet and stage.sorting_label_key is not None:
        _demand_numbers(stage, {name: clusters[name] for name in found})
    return tuple(sorted(found, key=lambda name: order(stage, name, clusters[name])))


def order(stage: Stage, name: str, labels: Labels) -> tuple[int, int, str, str]:
    """To sort a stage's clusters by."""
    value = labels.get(stage.sorting_label_key) if stage.sorting_label_key is not None else ""
    if value is None:
        return (2, 0, "", name)
    return (0, int(value), "", name) if _INTEGER.fullmatch(value) else (1, 0, value, name)


def most_at_once(stage: Stage, clusters: int) -> int:
    """How many of a stage's clusters change at once: at least one."""
    return max(1, resolve(stage.max_concurrency, clusters, round_up=False))


def wait_of(task: StageTask) -> timedelta:
    """How long a TimedWait waits."""
    return parse_duration(task.wait_time or "0")


# What is wrong with stages


def check(strategy: StrategySpec) -> None:
    """Refuse stages that cannot be followed; most of this the API refuses before."""
    names = [stage.name for stage in strategy.stages]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadStages(f"stage `{twice[0]}` is there more than once: give each stage a name of its own")
    for stage in strategy.stages:
        _check_tasks(stage)
        _check_number(stage)
        _selects(stage, {})


def _check_tasks(stage: Stage) -> None:
    before, after = stage.before_stage_tasks, stage.after_stage_tasks
    if len(before) > 1 or any(task.type is not StageTaskType.approval or task.wait_time for task in before):
        raise BadStages(f"stage `{stage.name}`: beforeStageTasks takes one task of type Approval, without a waitTime")
    if len({task.type for task in after}) < len(after):
        raise BadStages(f"stage `{stage.name}`: afterStageTasks has two tasks of the same type")
    for task in after:
        _check_wait(f"stage `{stage.name}`: afterStageTasks", task)


def _check_wait(where: str, task: StageTask) -> None:
    if task.type is StageTaskType.approval and task.wait_time:
        raise BadStages(f"{where}: a task of type Approval takes no waitTime")
    try:
        wait = wait_of(task)
    except ValueError as error:
        raise BadStages(f"{where}: waitTime {error}") from error
    if task.type is StageTaskType.timed_wait and wait <= timedelta():
        raise BadStages(f"{where}: a task of type TimedWait needs a waitTime of more than 0, such as 1h30m")


def _check_number(stage: Stage) -> None:
    try:
        resolve(stage.max_concurrency, 1, round_up=False)
    except ValueError as error:
        raise BadStages(f"stage `{stage.name}`: maxConcurrency {error}") from error


def _selects(stage: Stage, labels: Labels) -> bool:
    try:
        return selects(stage.label_selector, labels)
    except InvalidSelector as error:
        raise BadStages(f"stage `{stage.name}`: labelSelector: {error}") from error


def _demand_numbers(stage: Stage, clusters: Mapping[str, Labels]) -> None:
    key = stage.sorting_label_key or ""
    for name, labels in sorted(clusters.items()):
        if not _INTEGER.fullmatch(labels.get(key, "")):
            label = f"the sorting label `{key}:{labels.get(key, '')}` on cluster `{name}`"
            raise BadStages(f"{label} is not valid: it has to be a whole number")


def _both(strategy: StrategySpec, clusters: Mapping[str, Labels], cluster: str) -> str:
    names: Sequence[str] = [stage.name for stage in strategy.stages if _selects(stage, clusters[cluster])]
    return " and ".join(names[:2])


# Clusters that are picked while a run is under way


def with_newcomers(seen: RunInput, status: RunStatus) -> RunStatus:
    """The status with clusters that were picked since in the stages they belong to."""
    strategy = status.staged_update_strategy_snapshot or StrategySpec(stages=())
    new = _of_one_stage(seen, strategy, newcomers(seen, status))
    if not new:
        return status
    wanted = {stage.name: stage for stage in strategy.stages}
    stages = tuple(_joined(seen, wanted[stage.stage_name], stage, new) for stage in status.stages_status)
    return replace(status, stages_status=stages)


def newcomers(seen: RunInput, status: RunStatus) -> frozenset[str]:
    """Clusters that are picked, and no part of the run."""
    if is_rollback(seen.run):
        return frozenset()  # it is confined to the clusters of the run it takes back
    known = {cluster.cluster_name for stage in status.stages_status for cluster in stage.clusters}
    bound = {one.spec.target_cluster for one in seen.bindings}
    return frozenset((seen.picked or frozenset()) & bound & seen.labels.keys() - known)


def _of_one_stage(seen: RunInput, strategy: StrategySpec, new: frozenset[str]) -> frozenset[str]:
    """Those that belong to one stage alone: what two stages select is a mistake, for a run that says so."""

    def belongs(stage: Stage, name: str) -> bool:
        return selects(stage.label_selector, seen.labels[name])

    return frozenset(name for name in new if sum(belongs(stage, name) for stage in strategy.stages) == 1)


def _joined(seen: RunInput, wanted: Stage, stage: StageStatus, new: frozenset[str]) -> StageStatus:
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
