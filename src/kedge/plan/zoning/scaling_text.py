"""Scaling text: scaling steps and waits in sentences. Nothing is decided on the words.

Where Grafana's rollout-operator has a sentence for it, the sentence is that one: people search for it.
"""

from __future__ import annotations

from kedge.api import zones
from kedge.plan.findings import MAX_MESSAGE
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import counted, cut, first_few, moment
from kedge.plan.zoning.scaling import Reason, ScaleCode, ScaleStep


def step_text(step: ScaleStep) -> str:
    """What is done, and why."""
    how = f"scaled {'down' if step.is_down else 'up'} from {step.current} to {step.replicas} replicas"
    match step.reason:
        case Reason.leader:
            return f"{how} to match leader {step.source}"
        case Reason.reference:
            return f"{how} to mirror {step.source}"
        case _:
            return f"{how} because of annotation {step.source}"


def wait_text(wait: Wait) -> str:
    """What keeps a StatefulSet from being scaled. An annotation may be long, the sentence is not."""
    return cut(_wait_text(wait), MAX_MESSAGE)


def _wait_text(wait: Wait) -> str:
    blocker = wait.blockers[0]
    match wait.code:
        case ScaleCode.leader_missing | ScaleCode.leader_itself | ScaleCode.leader_circular | ScaleCode.two_sources:
            return _leader_text(wait, blocker)
        case ScaleCode.leader_not_ready:
            ready, wanted = wait.numbers["ready"], wait.numbers["replicas"]
            return f"not scaled up before leader {blocker.key} is ready: {ready} of {counted(wanted, 'pod')} are"
        case ScaleCode.min_time:
            since, until = _when(blocker)
            return f"not scaled down until {until}: {blocker.key} was scaled down at {since}, {blocker.reported} apart"
        case ScaleCode.refused:
            return f"not scaled: {blocker.reported}"
        case ScaleCode.group_unread:
            return f"not scaled: the StatefulSets of the group cannot be read: {blocker.reported}"
        case ScaleCode.pods_not_prepared | ScaleCode.delay_not_reached:
            return _delay_text(wait, blocker)
        case ScaleCode.reference_incomplete | ScaleCode.reference_unavailable | ScaleCode.write_back_failed:
            return _reference_text(wait, blocker)
        case _:
            return _invalid_text(wait, blocker)


def _leader_text(wait: Wait, leader: Blocker) -> str:
    match wait.code:
        case ScaleCode.leader_missing:
            why = f"there is no StatefulSet {leader.key} in its rollout group"
            return f"could not find leader for {wait.unit} using {zones.DOWNSCALE_LEADER}: {why}"
        case ScaleCode.leader_itself:
            return f"not scaled: annotation {zones.DOWNSCALE_LEADER} makes {wait.unit} its own leader"
        case ScaleCode.leader_circular:
            circle = " follows ".join((wait.unit, *(one.key for one in wait.blockers)))
            return f"not scaled: annotation {zones.DOWNSCALE_LEADER} leads in a circle: {circle}"
        case _:
            both = f"it follows leader {leader.key} and mirrors a reference"
            return f"not scaled: {both}: remove {zones.DOWNSCALE_LEADER} or {zones.MIRROR_NAME}"


def _delay_text(wait: Wait, pod: Blocker) -> str:
    if wait.code == ScaleCode.pods_not_prepared:
        failed = first_few(f"{one.key}: {one.reported}" for one in wait.blockers)
        return f"failed prepare pods for delayed downscale: {failed}"
    since, until = _when(pod)
    reached = "has not been reached for any pods at the end of statefulset replicas range"
    told = f"{pod.key} is prepared since {since}, and may go at {until}"
    return f"configured downscale delay {pod.reported} {reached}: {told}"


def _reference_text(wait: Wait, about: Blocker) -> str:
    match wait.code:
        case ScaleCode.reference_incomplete:
            both = f"{zones.MIRROR_NAME} and {zones.MIRROR_KIND}"
            return f"not scaled: annotation {about.key} is missing: set both {both}, or none"
        case ScaleCode.write_back_failed:
            return f"the status of {about.key} was not updated: {about.reported}"
        case _:
            return f"not scaled: the scale of {about.key} is not known: {about.reported}"


def _invalid_text(wait: Wait, about: Blocker) -> str:
    """What is wrong with a label or an annotation."""
    match wait.code:
        case ScaleCode.last_downscale_invalid:
            return (
                f"can't parse {zones.LAST_DOWNSCALE} annotation of {about.key}: {about.reported!r} is no RFC 3339 time"
            )
        case ScaleCode.min_time_missing:
            return f"missing label {about.key} on follower"
        case ScaleCode.min_time_invalid:
            return f"unable to parse label {about.key} value on follower: {about.reported}"
        case ScaleCode.api_version_invalid:
            return f"invalid API version in {about.key} annotation: {about.reported!r} has more than one /"
        case ScaleCode.force_invalid:
            return f"annotation {about.key} is ignored: {about.reported!r} is no number of at least 0"
        case _:
            return f"not scaled: {about.key} of the delayed downscale: {about.reported}"


def _when(blocker: Blocker) -> tuple[str, str]:
    since, until = (
        moment(at) if at is not None else "a time beyond the calendar" for at in (blocker.since, blocker.until)
    )
    return since, until
