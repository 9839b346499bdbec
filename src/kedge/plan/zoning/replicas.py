"""Replicas: which StatefulSet of a rollout group gets which number of replicas now.

    plan = replicas.plan(Scaling(sets, now, scales=scales))

Two passes, each in the order of names: those that follow a leader, then, if none of them is scaled, those that mirror a
reference. At most one StatefulSet is scaled; then everything is looked at anew. What is wrong with one StatefulSet
scales that one not, and stops no other one.

A step down with a delay needs answers of pods first: the plan says whose pods to `ask`, and is made again with the
answers. So a plan has a step to do, or one to ask for, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.plan.moving.wait import Wait
from kedge.plan.zoning import downscale_delay
from kedge.plan.zoning.downscale_delay import Delay
from kedge.plan.zoning.leader import follow, leader_of
from kedge.plan.zoning.mirror import may_mirror, mirror, reference_of
from kedge.plan.zoning.scaling import ScaleStep, Scaling, ScalingVerdict


class ScalingPlan(Struct, frozen=True):
    """What to do now, and what every other StatefulSet waits for."""

    step: ScaleStep | None = None
    """The one change of replicas."""
    ask: ScaleStep | None = None
    """The step for which pods have to be called first."""
    waits: tuple[Wait, ...] = ()
    look_again: datetime | None = None
    """When time alone will change something."""


def is_scaled(stateful_set: StatefulSet) -> bool:
    """Whether it asks to be scaled at all."""
    return bool(leader_of(stateful_set)) or reference_of(stateful_set) is not None


def plan(scaling: Scaling) -> ScalingPlan:
    """What to do now. Pure: the same of the same."""
    followed = _one_pass(scaling, follow)
    if followed.step is not None:
        return followed
    mirrored = _one_pass(scaling, _mirror)
    look_again = _first((followed.look_again, mirrored.look_again))
    return ScalingPlan(mirrored.step, mirrored.ask, (*followed.waits, *mirrored.waits), look_again)


def _first(moments: Iterable[datetime | None]) -> datetime | None:
    return min((each for each in moments if each is not None), default=None)


def _one_pass(scaling: Scaling, judge: Callable[[StatefulSet, Scaling], ScalingVerdict | ScaleStep]) -> ScalingPlan:
    """The first step in the order of names, and what all before it wait for. Those after it are looked at next time."""
    found: list[ScalingVerdict] = []
    step = ask = None
    for one in scaling.in_order:
        verdict = _postponed(one, scaling, judge(one, scaling))
        if isinstance(verdict, ScaleStep):
            ask = verdict
            break
        found.append(verdict)
        if verdict.step is not None:
            step = verdict.step
            break
    waits = tuple(wait for verdict in found for wait in verdict.waits)
    return ScalingPlan(step, ask, waits, _first(verdict.until for verdict in found))


def _postponed(
    stateful_set: StatefulSet, scaling: Scaling, found: ScalingVerdict | ScaleStep
) -> ScalingVerdict | ScaleStep:
    """What is found, or what keeps it from being tried again yet."""
    if isinstance(found, ScalingVerdict) and found.step is None:
        return found
    return scaling.postponed.get(stateful_set.metadata.name, found)


def _mirror(stateful_set: StatefulSet, scaling: Scaling) -> ScalingVerdict | ScaleStep:
    """What mirroring means for it, or the step for which its pods have to be called first."""
    verdict = mirror(stateful_set, scaling)
    delay = downscale_delay.delay_of(stateful_set) if may_mirror(stateful_set) and reference_of(stateful_set) else None
    if isinstance(delay, Wait):
        return ScalingVerdict(waits=(*verdict.waits, delay))
    if verdict.step is None or delay is None:
        return verdict
    return _with_delay(verdict, verdict.step, delay, scaling)


def _with_delay(verdict: ScalingVerdict, step: ScaleStep, delay: Delay, scaling: Scaling) -> ScalingVerdict | ScaleStep:
    answers = scaling.answers.get(step.name)
    if answers is None:
        return step
    if not step.is_down:
        return verdict
    found = downscale_delay.delayed(step, delay, answers, scaling.now)
    return ScalingVerdict(found.step, (*verdict.waits, *found.waits), found.until)
