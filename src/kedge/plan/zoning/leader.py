"""Leader: how many replicas a StatefulSet is to have that follows another one of its group.

Up at once, or when the leader is ready if that is asked for. Down when long enough has passed since another zone was
scaled down. A leader may follow a leader itself. One that is missing, the StatefulSet itself, or that follows in a
circle scales nothing, and stops nobody else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.api.times import parse_duration, parse_micro_time
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.zoning.scaling import (
    Reason,
    ScaleCode,
    ScaleStep,
    Scaling,
    ScalingVerdict,
    annotation,
    force_problems,
    force_replicas,
    min_time_between_zones,
    replicas_of,
    wait_for,
)

_JUST_AFTER: Final = timedelta(milliseconds=1)


def leader_of(stateful_set: StatefulSet) -> str:
    """The name of its leader; empty if it follows none."""
    return annotation(stateful_set, zones.DOWNSCALE_LEADER)


def follow(stateful_set: StatefulSet, scaling: Scaling) -> ScalingVerdict:
    """What following its leader means for it now."""
    name = stateful_set.metadata.name
    if not leader_of(stateful_set) or stateful_set.metadata.deletion_timestamp is not None:
        return ScalingVerdict()
    if problem := _leader_problem(stateful_set, scaling):
        return ScalingVerdict(waits=(problem,))
    forced, current = force_replicas(stateful_set), replicas_of(stateful_set)
    if forced is not None:
        return _forced(stateful_set, forced)
    leader = next(one for one in scaling.sets if one.metadata.name == leader_of(stateful_set))
    ignored, wanted = force_problems(stateful_set), replicas_of(leader)
    waits, until = _blocked(stateful_set, leader, scaling)
    step = ScaleStep(name, current, wanted, Reason.leader, leader.metadata.name)
    return ScalingVerdict(step if wanted != current and not waits else None, (*ignored, *waits), until)


def _forced(stateful_set: StatefulSet, forced: int) -> ScalingVerdict:
    current = replicas_of(stateful_set)
    step = ScaleStep(stateful_set.metadata.name, current, forced, Reason.forced, zones.FORCE_REPLICAS)
    return ScalingVerdict(step if forced != current else None)


def _leader_problem(stateful_set: StatefulSet, scaling: Scaling) -> Wait | None:
    """What is wrong with its leader, if anything is."""
    name, leader = stateful_set.metadata.name, leader_of(stateful_set)
    follows = {one.metadata.name: leader_of(one) for one in scaling.sets}
    if leader == name:
        return wait_for(name, ScaleCode.leader_itself, leader)
    if leader not in follows:
        return wait_for(name, ScaleCode.leader_missing, leader)
    chain = _chain(name, follows)
    if chain[-1] == name:
        return Wait(name, ScaleCode.leader_circular, blockers=tuple(Blocker(one) for one in chain))
    if annotation(stateful_set, zones.MIRROR_NAME) and annotation(stateful_set, zones.MIRROR_KIND):
        return wait_for(name, ScaleCode.two_sources, leader)
    return None


def _chain(name: str, follows: dict[str, str]) -> list[str]:
    """The leaders of a StatefulSet, one after the other; it ends with itself if it is in a circle."""
    chain = [follows[name]]
    while (following := follows.get(chain[-1], "")) and following not in chain:
        chain.append(following)
    return chain


def _blocked(
    stateful_set: StatefulSet, leader: StatefulSet, scaling: Scaling
) -> tuple[tuple[Wait, ...], datetime | None]:
    """What keeps it from having as many as its leader now, and until when time alone does."""
    current, wanted = replicas_of(stateful_set), replicas_of(leader)
    if wanted > current and annotation(stateful_set, zones.UPSCALE_WHEN_LEADER_READY) == "true":
        return _until_ready(stateful_set, leader, scaling), None
    if wanted < current:
        return _until_min_time(stateful_set, scaling)
    return (), None


def _until_ready(stateful_set: StatefulSet, leader: StatefulSet, scaling: Scaling) -> tuple[Wait, ...]:
    ready, wanted = _ready(leader, scaling), replicas_of(leader)
    if ready == wanted:
        return ()
    numbers = {"ready": ready, "replicas": wanted}
    blocker = Blocker(leader.metadata.name)
    return (Wait(stateful_set.metadata.name, ScaleCode.leader_not_ready, numbers, (blocker,)),)


def _ready(leader: StatefulSet, scaling: Scaling) -> int:
    """How many of its pods are surely ready: the fewer of what its status says and what its pods show.

    A status of an earlier generation may count pods of before the last change, and says nothing.
    """
    if leader.status.observed_generation < leader.metadata.generation:
        return 0
    by_status = leader.status.ready_replicas
    return min(by_status, scaling.ready_pods.get(leader.metadata.name, by_status))


def _until_min_time(stateful_set: StatefulSet, scaling: Scaling) -> tuple[tuple[Wait, ...], datetime | None]:
    name = stateful_set.metadata.name
    others = [one for one in scaling.in_order if one.metadata.name != name]
    moments, problems = _last_downscales(name, others)
    if problems or not moments:
        return problems, None
    min_time = _min_time(stateful_set)
    if isinstance(min_time, Wait):
        return (min_time,), None
    last, zone = max(moments)
    if scaling.now - last > min_time:
        return (), None
    until = _later(last, min_time)
    blocker = Blocker(zone, since=last, until=until, reported=min_time_between_zones(stateful_set) or "")
    wait = Wait(name, ScaleCode.min_time, {"seconds": int(min_time.total_seconds())}, (blocker,))
    return (wait,), until + _JUST_AFTER if until is not None else None


def _last_downscales(name: str, others: list[StatefulSet]) -> tuple[list[tuple[datetime, str]], tuple[Wait, ...]]:
    """When the other zones were scaled down, as far as they were; and those that cannot be read."""
    moments: list[tuple[datetime, str]] = []
    problems: list[Wait] = []
    for one in others:
        text = one.metadata.annotations.get(zones.LAST_DOWNSCALE)
        if text is None:
            continue
        try:
            moments.append((parse_micro_time(text), one.metadata.name))
        except (ValueError, OverflowError):
            problems.append(wait_for(name, ScaleCode.last_downscale_invalid, one.metadata.name, text))
    return moments, tuple(problems)


def _min_time(stateful_set: StatefulSet) -> timedelta | Wait:
    name, text = stateful_set.metadata.name, min_time_between_zones(stateful_set)
    if text is None:
        return wait_for(name, ScaleCode.min_time_missing, zones.MIN_TIME_BETWEEN_ZONES)
    try:
        length = parse_duration(text)
    except ValueError as error:
        return wait_for(name, ScaleCode.min_time_invalid, zones.MIN_TIME_BETWEEN_ZONES, str(error))
    if length < timedelta():
        return wait_for(name, ScaleCode.min_time_invalid, zones.MIN_TIME_BETWEEN_ZONES, f"{text!r} is negative")
    return length


def _later(moment: datetime, length: timedelta) -> datetime | None:
    """The moment so much later; None if no calendar has it, or the moment just after it."""
    try:
        return moment + (length + _JUST_AFTER) - _JUST_AFTER
    except OverflowError:
        return None
