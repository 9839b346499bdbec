"""Conditions: the conditions of a run, its stages, clusters and tasks.

All of them speak of the run as it is now: what was said before a run was stopped and resumed still holds after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition, set_condition
from kedge.api.reasons import (
    CLUSTER_STARTED,
    INITIALIZED,
    PROGRESSING,
    ROLLED_BACK,
    RUN_FAILED,
    RUN_NOT_INITIALIZED,
    RUN_SUCCEEDED,
    SUCCEEDED,
    UPDATING_STARTED,
)
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageStatus, StageTaskStatus
from kedge.plan.text import cut

LONGEST: Final = 1024
Conditions = tuple[Condition, ...]
Holder = TypeVar("Holder", RunStatus, StageStatus, ClusterUpdateStatus, StageTaskStatus)


class Stamp(Struct, frozen=True):
    """When something is said, and of which generation of the run."""

    now: datetime
    generation: int


def with_condition(holder: Holder, kind: str, status: str, reason: str, message: str, at: Stamp) -> Holder:
    """The same, saying this too."""
    condition = new_condition(kind, status, reason, cut(message, LONGEST), now=at.now, generation=at.generation)
    return replace(holder, conditions=set_condition(holder.conditions, condition))


def find(holder: Holder, kind: str) -> Condition | None:
    """What it says of this."""
    return find_condition(holder.conditions, kind)


def reason_of(holder: Holder, kind: str) -> str:
    """Why it says of this what it says; empty if it says nothing."""
    found = find(holder, kind)
    return found.reason if found is not None else ""


def has_condition(holder: Holder, kind: str, status: str = TRUE) -> bool:
    """Whether it says this."""
    found = find(holder, kind)
    return found is not None and found.status == status


# A run


def is_initialized(status: RunStatus) -> bool:
    """Whether it has worked out its stages."""
    return has_condition(status, INITIALIZED)


def has_ended(status: RunStatus) -> bool:
    """Whether nothing will happen any more: it has succeeded, failed, was rolled back, or could not even begin."""
    ended = is_rolled_back(status) or reason_of(status, SUCCEEDED) in (RUN_SUCCEEDED, RUN_FAILED)
    return ended or reason_of(status, INITIALIZED) == RUN_NOT_INITIALIZED


def is_rolled_back(status: RunStatus) -> bool:
    """Whether another run brings the clusters back that this one had begun with, or has."""
    return has_condition(status, ROLLED_BACK)


def at_generation(status: RunStatus, generation: int) -> RunStatus:
    """The same, said of the run as it is now."""
    stages = tuple(_stage(stage, generation) for stage in status.stages_status)
    last = status.deletion_stage_status
    return replace(
        status,
        conditions=_all(status.conditions, generation),
        stages_status=stages,
        deletion_stage_status=None if last is None else _stage(last, generation),
    )


def _stage(stage: StageStatus, generation: int) -> StageStatus:
    return replace(
        stage,
        conditions=_all(stage.conditions, generation),
        clusters=tuple(replace(one, conditions=_all(one.conditions, generation)) for one in stage.clusters),
        before_stage_task_status=_tasks(stage.before_stage_task_status, generation),
        after_stage_task_status=_tasks(stage.after_stage_task_status, generation),
    )


def _tasks(tasks: Iterable[StageTaskStatus], generation: int) -> tuple[StageTaskStatus, ...]:
    return tuple(replace(task, conditions=_all(task.conditions, generation)) for task in tasks)


def _all(conditions: Conditions, generation: int) -> Conditions:
    if all(one.observed_generation == generation for one in conditions):
        return conditions
    return tuple(replace(one, observed_generation=generation) for one in conditions)


# A stage


def is_over(stage: StageStatus) -> bool:
    """Whether a stage is done with, its gates included."""
    return has_condition(stage, SUCCEEDED)


def has_begun(stage: StageStatus) -> bool:
    """Whether anything was said of a stage yet."""
    return find(stage, PROGRESSING) is not None


# A cluster


def unstarted(names: Sequence[str]) -> tuple[ClusterUpdateStatus, ...]:
    """Clusters of which there is nothing to say yet."""
    return tuple(ClusterUpdateStatus(cluster_name=name) for name in names)


def is_started(cluster: ClusterUpdateStatus) -> bool:
    """Whether the run has begun to bring it the change."""
    return has_condition(cluster, CLUSTER_STARTED)


def is_settled(cluster: ClusterUpdateStatus) -> bool:
    """Whether the run is done with it, whatever came of it."""
    return find(cluster, SUCCEEDED) is not None


def is_moving(cluster: ClusterUpdateStatus) -> bool:
    """Whether it has begun, and nothing has come of it yet."""
    return is_started(cluster) and not is_settled(cluster)


def started(cluster: ClusterUpdateStatus, message: str, at: Stamp) -> ClusterUpdateStatus:
    return with_condition(cluster, CLUSTER_STARTED, TRUE, UPDATING_STARTED, message, at)


def settled(
    cluster: ClusterUpdateStatus, reason: str, message: str, at: Stamp, status: str = FALSE
) -> ClusterUpdateStatus:
    return with_condition(cluster, SUCCEEDED, status, reason, message, at)


def settled_at(stage: StageStatus) -> datetime | None:
    """When the last of a stage's clusters was done; None if none ever was."""
    found = (find(cluster, SUCCEEDED) for cluster in stage.clusters)
    return max((one.last_transition_time for one in found if one is not None), default=None)
