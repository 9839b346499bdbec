"""Group preview: what would become of a rollout group, pod by pod and in order; all times in seconds from now.

Pods move in waves: a wave is all pods of one zone that move before one of them is ready again. What does not get there
has the sentences of the group's story in the end, which are those of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, to_builtins

from kedge.api.pods import Pod
from kedge.plan.previewing.durations import MIN_SECONDS, MeasuredDuration
from kedge.plan.state import State
from kedge.plan.text import listed, natural, path_of
from kedge.plan.workloads.pods import is_finished, ready_since
from kedge.plan.zoning.group_story import GroupStory, ZoneStory
from kedge.plan.zoning.pods import is_running_and_ready, stuck_reason
from kedge.plan.zoning.scaling import ScaleCode

_HARMLESS: Final = frozenset({ScaleCode.force_invalid, ScaleCode.write_back_failed})
"""Scaling waits that keep nothing from being scaled."""
_NAMED: Final = 3


class PodMoveKind(StrEnum):
    """What happens to a pod."""

    replaced = "replaced"
    added = "added"
    removed = "removed"
    starting = "starting"
    """It was not ready when the group was read, and becomes ready by itself."""


class PodMove(Struct, frozen=True):
    """One pod that is replaced, added or removed."""

    pod: str
    zone: str
    what: PodMoveKind
    at: float
    done: float | None = None
    """When it is ready, or gone; None if it never is."""


class PodWave(Struct, frozen=True):
    """Pods of a zone that move together, in order."""

    zone: str
    pods: tuple[PodMove, ...]
    begins: float
    ends: float | None = None
    """When all of them are ready; None if that never happens."""


class StuckZone(Struct, frozen=True):
    """A zone that does not get there, and why."""

    zone: str
    why: str
    outdated: int
    pods: int


class GroupPreview(Struct, frozen=True):
    """What would become of one rollout group."""

    namespace: str
    name: str
    is_done: bool
    """Whether every pod gets there."""
    ends: float | None
    """When the last one does; None if not all do."""
    pods: int
    """How many there are to be in the end."""
    zones: tuple[str, ...] = ()
    """The StatefulSets that are in it in the end."""
    moves: tuple[PodMove, ...] = ()
    stays: tuple[StuckZone, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong with annotations, although it stops nothing."""

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def waves(self) -> tuple[PodWave, ...]:
        return pod_waves(self.moves)

    @property
    def last_move(self) -> float:
        """When the last move happens or is done."""
        return max((move.done or move.at for move in self.moves), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """The preview for programs."""
        return {**to_builtins(self), "waves": to_builtins(self.waves)}


def group_preview(story: GroupStory, moves: Iterable[PodMove]) -> GroupPreview:
    """What the moves come to, given where the group stands in the end."""
    ordered = tuple(sorted(moves, key=lambda move: (move.at, natural(move.pod))))
    is_done = is_settled(story)
    return GroupPreview(
        namespace=story.namespace,
        name=story.name,
        is_done=is_done,
        ends=max((move.done or move.at for move in ordered), default=0.0) if is_done else None,
        pods=story.pods,
        zones=tuple(zone.name for zone in story.zones),
        moves=ordered,
        stays=tuple(_stuck(zone) for zone in story.zones if not _is_done(zone)),
        problems=tuple(_problems(story)),
    )


def pod_waves(moves: Iterable[PodMove]) -> tuple[PodWave, ...]:
    """The moves in the order they begin. A new wave begins in another zone, or after one of the wave is done."""
    found: list[list[PodMove]] = []
    for move in sorted(moves, key=lambda move: (move.at, move.zone, natural(move.pod))):
        if not found or _begins_a_wave(move, found[-1]):
            found.append([])
        found[-1].append(move)
    return tuple(_wave(one) for one in found)


def _begins_a_wave(move: PodMove, wave: Sequence[PodMove]) -> bool:
    proven = min((one.done for one in wave if one.done is not None), default=None)
    return move.zone != wave[0].zone or (proven is not None and move.at >= proven)


def _wave(moves: Sequence[PodMove]) -> PodWave:
    known = [move.done for move in moves if move.done is not None]
    return PodWave(moves[0].zone, tuple(moves), moves[0].at, max(known) if len(known) == len(moves) else None)


# Where it stands in the end


def is_settled(story: GroupStory) -> bool:
    """Whether nothing is left to do: every pod is updated and ready, and no zone waits to be scaled."""
    return all(map(_is_done, story.zones))


def waits_for_time(story: GroupStory) -> bool:
    """Whether it is scaled further by time alone: after a delay between zones, or of a downscale."""
    waits = [wait for zone in story.zones for wait in zone.scaling_waits]
    is_timed = any(blocker.until is not None for wait in waits for blocker in wait.blockers)
    return is_timed or any(zone.is_scaling for zone in story.zones)


def _is_done(zone: ZoneStory) -> bool:
    return zone.is_done and not zone.is_scaling and all(wait.code in _HARMLESS for wait in zone.scaling_waits)


def _stuck(zone: ZoneStory) -> StuckZone:
    why = zone.why if zone.state is not State.available else ""
    if not why:
        broken = [f"{pod.name} {pod.why}" for pod in zone.pods if not pod.is_ready]
        why = listed(broken, _NAMED)
    sentences = [part for part in (why, zone.scaling) if part]
    return StuckZone(zone.name, "; ".join(sentences), zone.replicas - zone.updated, zone.replicas)


def _problems(story: GroupStory) -> Iterator[str]:
    for zone in story.zones:
        if zone.problem:
            yield f"{zone.name}: {zone.problem}"


# How long pods take


def measured_pods(pods: Iterable[Pod]) -> dict[str, MeasuredDuration]:
    """How long pods took from their creation to being ready. One that restarted says nothing about it."""
    return {pod.metadata.name: MeasuredDuration(took) for pod in pods if (took := _took(pod)) is not None}


def _took(pod: Pod) -> float | None:
    since, created = ready_since(pod), pod.metadata.creation_timestamp
    has_restarted = any(one.restart_count for one in pod.status.container_statuses)
    if since is None or created is None or has_restarted or not is_running_and_ready(pod):
        return None
    return max(MIN_SECONDS, (since - created).total_seconds())


def ready_in(pod: Pod, takes: float, now: datetime) -> float | None:
    """Seconds until a pod that is not ready is taken to be; None if it is stuck, or late by as much again."""
    created = pod.metadata.creation_timestamp
    if created is None or is_finished(pod) or stuck_reason(pod):
        return None
    age = (now - created).total_seconds()
    return None if age > 2 * takes else max(0.0, takes - age)
