"""Placement preview: what would become of a placement, cluster by cluster and in order; all times in seconds from now.

Clusters move in waves: a wave is everything that moves before one of those that moved has proven itself. The stages
of a staged run are taken from its status in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins

from kedge.api.condition import TRUE, find_condition
from kedge.api.placement_kinds import Placement, Run
from kedge.api.staged_status import RunStatus, StageStatus, StageTaskStatus
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.placements import is_external
from kedge.plan.staging.progress import turn_texts
from kedge.plan.staging.run_story import tell_run
from kedge.plan.state import State
from kedge.plan.text import listed, natural, path_of


class MoveKind(StrEnum):
    """What a move does to a cluster."""

    added = "added"
    changed = "changed"
    removed = "removed"


class Move(Struct, frozen=True):
    """One cluster that gets a revision, or loses it."""

    cluster: str
    what: MoveKind
    at: float
    revision: str = ""
    """The index of the revision it gets."""
    done: float | None = None
    """When it is available, or cleared; None if it never is."""


class StuckCluster(Struct, frozen=True):
    """A cluster that does not get to the wanted revision, and why."""

    cluster: str
    why: str
    moved: bool = False
    """Whether it was given the revision, and does not become available."""


class Wave(Struct, frozen=True):
    """Clusters that move together."""

    clusters: tuple[str, ...]
    begins: float
    ends: float | None = None
    """When all of them are available; None if that never happens."""


class StageTaskPreview(Struct, frozen=True):
    """A task before or after a stage."""

    what: str
    begins: float | None = None
    ends: float | None = None


class StagePreview(Struct, frozen=True):
    """One stage of a staged run."""

    name: str
    clusters: tuple[str, ...]
    begins: float | None = None
    ends: float | None = None
    waits: tuple[StageTaskPreview, ...] = ()


class PlacementPreview(Struct, frozen=True):
    """What would become of one placement."""

    kind: str
    namespace: str | None
    name: str
    revision: str
    """The index of the revision that it rolls out."""
    is_done: bool
    """Whether every cluster gets there."""
    ends: float | None
    """When the last one does; None if not all do."""
    moves: tuple[Move, ...] = ()
    stays: tuple[StuckCluster, ...] = ()
    unpicked: tuple[str, ...] = ()
    """Why further clusters were not picked."""
    stages: tuple[StagePreview, ...] = ()
    why: str = ""
    """What it waits for in the end, if it is not done."""

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.path}"

    @property
    def waves(self) -> tuple[Wave, ...]:
        return waves_of(self.moves)

    @property
    def last_move(self) -> float:
        """When the last move happens or is done."""
        return max((move.done or move.at for move in self.moves), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """The preview for programs."""
        return {**to_builtins(self), "waves": to_builtins(self.waves)}


def waves_of(moves: Iterable[Move]) -> tuple[Wave, ...]:
    """The moves in the order they begin. A new wave begins where a move starts after one of the wave is done."""
    found: list[list[Move]] = []
    for move in sorted(moves, key=lambda move: (move.at, natural(move.cluster))):
        proven = min((one.done for one in found[-1] if one.done is not None), default=None) if found else None
        if not found or (proven is not None and move.at >= proven):
            found.append([])
        found[-1].append(move)
    return tuple(_wave(one) for one in found)


def _wave(moves: Sequence[Move]) -> Wave:
    ends = [move.done for move in moves]
    known = [end for end in ends if end is not None]
    names = tuple(sorted((move.cluster for move in moves), key=natural))
    return Wave(names, moves[0].at, max(known) if len(known) == len(ends) else None)


# Staged runs


_TASK_BEGUN = ("ApprovalRequestCreated",)
_TASK_OVER = ("ApprovalRequestApproved", "WaitTimeElapsed")


def stage_previews(status: RunStatus, began: datetime) -> tuple[StagePreview, ...]:
    """Every stage of a run in order; the deletion stage last, if it has clusters."""
    deleting = status.deletion_stage_status
    found = [*status.stages_status, *([deleting] if deleting is not None and deleting.clusters else [])]
    return tuple(_stage(one, began) for one in found)


def why_not_updated(
    placement: Placement, places: Iterable[ClusterPlace], runs: Iterable[Run], new_revision: str = ""
) -> str:
    """Why staged update runs do not bring a placement to its wanted revision; empty if they do, or have nothing to do.

    `runs` are those that were not over at the start. `new_revision` is a revision that is new.
    """
    stories = [(run.metadata.name, tell_run(run)) for run in runs]
    if failed := next((f"run {name}: {story.why}" for name, story in stories if not story.is_done), ""):
        return failed
    if stories or not is_external(placement):
        return ""
    known = list(places)
    if any(not place.index for place in known):
        return "no staged update run brings it anything"
    if broken := [place.cluster for place in known if place.state in (State.moving, State.failed)]:
        return f"{listed(broken)}: not available, and no staged update run changes that"
    return f"no staged update run brings it revision {new_revision}" if new_revision else ""


def run_turns(runs: Iterable[Run]) -> dict[str, str]:
    """What the clusters wait for that runs have not started to update."""
    return {name: turn for run in runs for name, turn in turn_texts(run).items()}


def _stage(stage: StageStatus, began: datetime) -> StagePreview:
    return StagePreview(
        name=stage.stage_name,
        clusters=tuple(one.cluster_name for one in stage.clusters),
        begins=_seconds_since(began, stage.start_time),
        ends=_seconds_since(began, stage.end_time),
        waits=tuple(_stage_tasks(stage, began)),
    )


def _stage_tasks(stage: StageStatus, began: datetime) -> Iterator[StageTaskPreview]:
    for when, tasks in (("before", stage.before_stage_task_status), ("after", stage.after_stage_task_status)):
        for task in tasks:
            yield StageTaskPreview(
                f"{task.type} {when}", _time_of(task, _TASK_BEGUN, began), _time_of(task, _TASK_OVER, began)
            )


def _time_of(task: StageTaskStatus, types: tuple[str, ...], began: datetime) -> float | None:
    for kind in types:
        found = find_condition(task.conditions, kind)
        if found is not None and found.status == TRUE:
            return _seconds_since(began, found.last_transition_time)
    return None


def _seconds_since(began: datetime, at: datetime | None) -> float | None:
    return None if at is None else max(0.0, (at - began).total_seconds())
