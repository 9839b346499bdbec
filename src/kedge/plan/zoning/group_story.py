"""Group story: where a rollout group stands, zone by zone and pod by pod, each with the reason.

Made by the functions with which the operator decides, from the same objects. So what waits here waits there, for the
same; the waits are kept as data, and the sentences are only for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Wait
from kedge.plan.state import State
from kedge.plan.text import counted, listed, natural, of_all, path_of
from kedge.plan.zoning.budget_spec import ZoneBudget
from kedge.plan.zoning.disruption import (
    BudgetZones,
    Decision,
    Denied,
    Disruption,
    budget_for,
    decide,
    rollout_override,
)
from kedge.plan.zoning.group import GroupPlan, ZoneCode, plan, without_denied
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.replicas import ScalingPlan
from kedge.plan.zoning.scaling_text import step_text, wait_text
from kedge.plan.zoning.wait_text import Sentences
from kedge.plan.zoning.zone import Zone

_NO_SCALING: Final = ScalingPlan()
_STATES: Final = {
    ZoneCode.not_on_delete: State.failed,
    ZoneCode.paused: State.paused,
    ZoneCode.not_observed: State.unknown,
    ZoneCode.leaving: State.leaving,
}
_ORDER: Final = (State.failed, State.moving, State.next, State.waiting, State.paused, State.leaving, State.unknown)
"""Which state of a zone is its group's, if zones differ."""


class PodStory(Struct, frozen=True):
    """Where one pod stands."""

    name: str
    state: State
    revision: str
    """The revision that it runs; empty if it is missing."""
    is_updated: bool
    is_ready: bool
    why: str = ""
    wait: Wait | None = None


class ZoneStory(Struct, frozen=True):
    """Where one StatefulSet of a group stands."""

    name: str
    state: State
    revision: str
    """The revision that is rolled out."""
    replicas: int
    updated: int
    ready: int
    max_unavailable: int
    why: str = ""
    wait: Wait | None = None
    problem: str = ""
    """What is wrong with its annotations."""
    scaling: str = ""
    """What is done about its replicas, or what that waits for."""
    scaling_waits: tuple[Wait, ...] = ()
    is_scaling: bool = False
    """Whether its replicas are to change next."""
    pods: tuple[PodStory, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.state is State.available


class GroupStory(Struct, frozen=True):
    """Where a rollout group stands."""

    namespace: str
    name: str
    state: State
    zones: tuple[ZoneStory, ...]
    deletes: tuple[str, ...] = ()
    """The pods that are to be deleted now."""

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def is_done(self) -> bool:
        return self.state is State.available

    @property
    def pods(self) -> int:
        return sum(zone.replicas for zone in self.zones)

    @property
    def updated(self) -> int:
        return sum(zone.updated for zone in self.zones)

    @property
    def ready(self) -> int:
        return sum(zone.ready for zone in self.zones)

    @property
    def why(self) -> str:
        """What the whole group waits for, in the words of the zone that decides it."""
        deciding = next((zone for zone in self.zones if zone.state is self.state and zone.why), None)
        return "" if deciding is None else f"{deciding.name}: {deciding.why}"


def zones_of(sets: Iterable[StatefulSet], pods: Iterable[Pod]) -> tuple[Zone, ...]:
    """The zones of StatefulSets, each with the pods that it controls."""
    by_owner: dict[str, list[Pod]] = {}
    for pod in pods:
        if (owner := controller_of(pod.metadata)) is not None:
            by_owner.setdefault(owner.uid, []).append(pod)
    found = (Zone(one, tuple(by_owner.get(one.metadata.uid, ()))) for one in sets)
    return tuple(sorted(found, key=lambda zone: natural(zone.name)))


def tell_group(
    namespace: str,
    name: str,
    zones: Iterable[Zone],
    scaling: ScalingPlan = _NO_SCALING,
    kept: Callable[[GroupPlan, tuple[Zone, ...]], GroupPlan] | None = None,
) -> GroupStory:
    """Where a group stands. `scaling` is what is found about its replicas; `kept` leaves out pods that are to stay."""
    ordered = tuple(zones)
    found, sentences = plan(ordered), Sentences(ordered)
    if kept is not None:
        found = kept(found, ordered)
    told = tuple(_with_scaling(_zone(zone, found, sentences), scaling) for zone in ordered)
    states = {zone.state for zone in told}
    state = next((state for state in _ORDER if state in states), State.available)
    return GroupStory(namespace, name, state, told, found.delete)


def kept_by_budgets(
    budgets: tuple[BudgetZones, ...], now: datetime, found: GroupPlan, zones: tuple[Zone, ...]
) -> GroupPlan:
    """The plan without the pods that a disruption budget keeps; pods that may go count for those after them."""
    own = next((zone for zone in zones if zone.name == found.zone), None)
    if own is None:
        return found
    pods = {pod.metadata.name: pod for pod in own.pods}
    denials: dict[str, str] = {}
    going: list[str] = []
    for name in found.delete:
        decision = _decision(pods[name], own, budgets, tuple(going), now)
        if isinstance(decision, Denied):
            denials[name] = decision.message
        elif decision.counts:
            going.append(pods[name].metadata.uid)
    return without_denied(found, denials)


def _decision(pod: Pod, own: Zone, budgets: tuple[BudgetZones, ...], going: tuple[str, ...], now: datetime) -> Decision:
    """Whether the budgets let the operator delete this pod. `going` are the uids of those that go before it."""
    budget = budget_for(pod, (one.budget for one in budgets))
    if not isinstance(budget, ZoneBudget):
        return budget
    zones = next(one.zones for one in budgets if one.budget is budget)
    override = rollout_override(budget, own.limit.pods)
    return decide(Disruption(pod, (budget,), own.stateful_set, zones, going, now, override))


def _zone(zone: Zone, found: GroupPlan, sentences: Sentences) -> ZoneStory:
    wait = found.waits.get(zone.name)
    return ZoneStory(
        name=zone.name,
        state=_state(zone, found, wait),
        revision=zone.stateful_set.status.update_revision,
        replicas=zone.expected,
        updated=sum(unit.held == unit.wanted for unit in _existing(zone)),
        ready=sum(map(is_running_and_ready, zone.pods)),
        max_unavailable=zone.limit.pods,
        why=sentences.reason(wait) if wait is not None else _doing(zone, found),
        wait=wait,
        problem=zone.limit.problem,
        pods=tuple(_pod(unit, zone, found, sentences) for unit in zone.units),
    )


def _with_scaling(zone: ZoneStory, scaling: ScalingPlan) -> ZoneStory:
    waits = tuple(wait for wait in scaling.waits if wait.unit == zone.name)
    step, ask = (one if one is not None and one.name == zone.name else None for one in (scaling.step, scaling.ask))
    said = [f"is to be {step_text(step)}"] if step is not None else []
    said += [f"is to be {step_text(ask)}, once its pods are prepared"] if ask is not None else []
    said += map(wait_text, waits)
    is_scaling = step is not None or ask is not None
    return replace(zone, scaling="; ".join(said), scaling_waits=waits, is_scaling=is_scaling)


def _existing(zone: Zone) -> list[Unit]:
    there = {pod.metadata.name for pod in zone.pods}
    return [unit for unit in zone.units if unit.key in there]


def _state(zone: Zone, found: GroupPlan, wait: Wait | None) -> State:
    if wait is not None and wait.code in _STATES:
        return _STATES[ZoneCode(wait.code)]
    if zone.name == found.zone and found.delete:
        return State.moving
    if any(unit.proof is Proof.failed for unit in zone.not_ready):
        return State.failed
    if zone.name == found.zone or (not zone.is_ready and not zone.outdated):
        return State.moving
    return State.waiting if wait is not None else State.available


def _doing(zone: Zone, found: GroupPlan) -> str:
    if zone.name == found.zone and found.delete:
        return f"{counted(len(found.delete), 'pod')} to be deleted now: {listed(found.delete)}"
    return ""


def _pod(unit: Unit, zone: Zone, found: GroupPlan, sentences: Sentences) -> PodStory:
    pod = next((one for one in zone.pods if one.metadata.name == unit.key), None)
    wait = found.pod_waits.get(unit.key)
    if wait is None and unit.held != unit.wanted and unit.key not in found.delete:
        wait = found.waits.get(zone.name)
    return PodStory(
        name=unit.key,
        state=_pod_state(unit, found),
        revision=unit.held if pod is not None else "",
        is_updated=unit.held == unit.wanted,
        is_ready=pod is not None and is_running_and_ready(pod),
        why=_pod_why(unit, pod, found, wait, sentences),
        wait=wait,
    )


def _pod_state(unit: Unit, found: GroupPlan) -> State:
    if unit.key in found.delete:
        return State.next
    if unit.proof is Proof.failed:
        return State.failed
    if not unit.is_proven:
        return State.moving
    return State.waiting if unit.held != unit.wanted else State.available


def _pod_why(unit: Unit, pod: Pod | None, found: GroupPlan, wait: Wait | None, sentences: Sentences) -> str:
    if pod is None:
        return "is missing: the StatefulSet controller has to create it"
    if pod.metadata.deletion_timestamp is not None:
        return "is terminating"
    own = "" if unit.is_proven else sentences.not_ready_because(pod)
    if unit.key in found.delete:
        return "; ".join(part for part in (own, f"is deleted next, to update it to revision {unit.wanted}") if part)
    waits = f"waits: {sentences.reason(wait)}" if wait is not None else ""
    return "; ".join(part for part in (own, waits) if part)


# Sentences


def group_line(story: GroupStory) -> str:
    """The whole group in a line."""
    numbers = f"{of_all(story.updated, story.pods, 'pod')} updated, {story.ready} ready"
    return f"{numbers}; {counted(len(story.zones), 'zone')}"


def zone_line(zone: ZoneStory) -> str:
    """A zone in a line."""
    numbers = f"{of_all(zone.updated, zone.replicas, 'pod')} updated, {zone.ready} ready"
    verb = "waits: " if zone.wait is not None else ""
    why = f", {verb}{zone.why}" if zone.why else ""
    scaling = f"; {zone.scaling}" if zone.scaling else ""
    return f"{numbers}{why}{scaling}" + (f" ({zone.problem})" if zone.problem else "")


def pod_line(pod: PodStory) -> str:
    """A pod in a line."""
    runs = f"revision {pod.revision}" if pod.revision else "not there"
    age = "" if pod.is_updated or not pod.revision else ", outdated"
    return f"{runs}{age}" + (f", {pod.why}" if pod.why else "")


def explained_group(story: GroupStory) -> list[str]:
    """Why a group is where it is: a line for it, and one for each zone."""
    head = "is done" if story.is_done else f"is {story.state}"
    return [f"rollout group {story.path} {head}: {group_line(story)}"] + [
        f"  {zone.name}: {zone_line(zone)}" for zone in story.zones
    ]


def explained_zone(zone: ZoneStory) -> list[str]:
    """Why a zone is where it is: a line for it, and one for each pod."""
    most = f"at most {counted(zone.max_unavailable, 'pod')} unavailable"
    return [f"{zone.name}: {zone_line(zone)}; {most}; revision {zone.revision or 'unknown'}"] + [
        f"  {pod.name}: {pod_line(pod)}" for pod in zone.pods
    ]


def explained_pod(story: GroupStory, zone: ZoneStory, pod: PodStory) -> list[str]:
    """Why a pod is where it is."""
    ready = "ready" if pod.is_ready else "not ready"
    return [
        f"pod {pod.name} of rollout group {story.path}, zone {zone.name}: {ready}, {pod_line(pod)}",
        f"  the zone is to run revision {zone.revision or 'unknown'}: {zone_line(zone)}",
    ]
