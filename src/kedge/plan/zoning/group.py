"""Group: which pods of a rollout group are deleted now, so that they come back with the new revision, and who waits.

Promises, for each group:

* pods of two zones are never taken down at the same time, and pods of a zone only while all pods of the others are
  ready;
* of one zone at most as many pods as its annotation allows are unavailable because of a rollout;
* a group with a StatefulSet that is not OnDelete is left alone;
* an outdated pod that cannot become ready is replaced first, and needs no budget, so that a fix reaches it. At most as
  many pods as may be unavailable get a revision that no pod of the zone has proven;
* every zone that is to change and does not has a wait.

If pods in several zones cannot become ready, and all of them are outdated, only the rollout can mend them. Then these
pods alone are replaced, one zone at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.gate import Closed, Open, while_proven
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Unit
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.zoning.zone import Zone


class ZoneCode(StrEnum):
    """What a zone waits for, beside the codes of the kernel."""

    not_on_delete = "NotOnDelete"
    """A StatefulSet of the group has another update strategy."""
    paused = "Paused"
    not_observed = "NotObserved"
    """The StatefulSet's status does not speak of its spec yet."""
    leaving = "Leaving"
    """The StatefulSet is being deleted."""
    other_zone = "OtherZone"
    """Another zone is rolled out first."""
    disruption_budget = "DisruptionBudget"
    """A ZoneAwarePodDisruptionBudget keeps a pod that is to be deleted."""
    not_ready = "NotReady"
    """All its pods are of the new revision, and some are not ready."""


class GroupPlan(Struct, frozen=True):
    """What to do now, and what the rest waits for."""

    zone: str = ""
    """The zone whose pods are being replaced; empty if there is none."""
    delete: tuple[str, ...] = ()
    """The pods to delete, in order; all of that zone."""
    promote: tuple[str, ...] = ()
    """The zones whose status is to name the new revision as the current one."""
    waits: Mapping[str, Wait] = {}
    """What zones wait for, by their names."""
    pod_waits: Mapping[str, Wait] = {}
    """What outdated pods of the zone being rolled out wait for, by their names."""

    @property
    def is_refused(self) -> bool:
        """Whether the group must be left alone until somebody mends it."""
        return any(wait.code == ZoneCode.not_on_delete for wait in self.waits.values())

    @property
    def denied(self) -> tuple[str, ...]:
        """The pods that a disruption budget keeps."""
        return tuple(name for name, wait in self.pod_waits.items() if wait.code == ZoneCode.disruption_budget)


def plan(zones: Iterable[Zone]) -> GroupPlan:
    """What to do about a group now. Pure: same zones, same plan."""
    ordered = sorted(zones, key=lambda zone: zone.name)
    if unfit := [zone for zone in ordered if not zone.is_on_delete]:
        return GroupPlan(waits={zone.name: _unfit(zone, unfit) for zone in ordered})
    promote = tuple(zone.name for zone in ordered if zone.promotes)
    zone = _next_zone(ordered)
    if zone is None:
        return GroupPlan(promote=promote, waits=_waits(ordered, None))
    grants = _grants(zone, ordered)
    waits = _waits(ordered, zone)
    if not grants.moved:
        waits[zone.name] = next(iter(grants.waiting.values()), _not_ready(zone))
    return GroupPlan(zone.name, grants.moved, promote, waits, grants.waiting)


def without_denied(found: GroupPlan, denials: Mapping[str, str]) -> GroupPlan:
    """The plan without the pods that a disruption budget keeps, given what it says of each."""
    if not denials:
        return found
    waits = {
        name: Wait(name, ZoneCode.disruption_budget, {}, (Blocker(name, reported=message),))
        for name, message in denials.items()
    }
    delete = tuple(name for name in found.delete if name not in denials)
    first = next(iter(waits.values()))
    zone_waits = found.waits if delete else {**found.waits, found.zone: replace(first, unit=found.zone)}
    return replace(found, delete=delete, waits=zone_waits, pod_waits={**found.pod_waits, **waits})


# Whose turn it is


def _next_zone(ordered: list[Zone]) -> Zone | None:
    """The zone that may be changed now."""
    willing = [zone for zone in ordered if _can_change(zone)]
    by_turn = sorted(willing, key=lambda zone: zone.is_ready)  # one that is not ready comes first
    for zone in by_turn:
        if isinstance(_gate(zone, ordered), Open):
            return zone
    for zone in by_turn:
        if _can_mend(zone, ordered):
            return zone
    return None


def _can_change(zone: Zone) -> bool:
    return bool(zone.outdated) and zone.is_observed and not zone.is_paused and not zone.is_leaving


def _gate(zone: Zone, ordered: list[Zone]) -> Open | Closed:
    """Open only while all pods of the other zones are ready."""
    return while_proven(zone.name, _not_ready_elsewhere(zone, ordered))


def _not_ready_elsewhere(zone: Zone, ordered: list[Zone]) -> list[Unit]:
    return [unit for other in ordered if other is not zone for unit in other.not_ready]


def _can_mend(zone: Zone, ordered: list[Zone]) -> bool:
    """Whether it has pods that only this rollout can mend, and what is not ready elsewhere waits for the same."""
    others = (other for other in ordered if other is not zone)
    return any(_is_mendable(unit) for unit in zone.outdated) and all(other.waits_for_its_rollout for other in others)


def _is_mendable(unit: Unit) -> bool:
    return unit.is_moving and unit.needs_no_budget


def _grants(zone: Zone, ordered: list[Zone]) -> Grants:
    """What may move of a zone. While its gate is closed, only pods that nothing else can mend."""
    gate = _gate(zone, ordered)
    held = (
        {} if isinstance(gate, Open) else {unit.key: gate.waits[0] for unit in zone.outdated if not _is_mendable(unit)}
    )
    in_doubt = zone.names_in_doubt
    return grant(
        zone.units,
        zone.budget,
        order=[unit.key for unit in _by_urgency(zone.outdated, in_doubt)],
        exposure=Exposure(zone.limit.pods),
        in_doubt=in_doubt,
        held=held,
    )


def _by_urgency(units: Iterable[Unit], in_doubt: Set[str]) -> list[Unit]:
    """First what an earlier request may still delete, then what does not work anyway; within, the order given."""
    return sorted(units, key=lambda unit: (unit.key not in in_doubt, not unit.needs_no_budget))


# What the others wait for


def _waits(ordered: list[Zone], acting: Zone | None) -> dict[str, Wait]:
    found = ((zone.name, _wait(zone, ordered, acting)) for zone in ordered if zone is not acting)
    return {name: wait for name, wait in found if wait is not None}


def _wait(zone: Zone, ordered: list[Zone], acting: Zone | None) -> Wait | None:
    if not zone.is_observed:
        return Wait(zone.name, ZoneCode.not_observed)
    if not zone.outdated:
        return None if zone.is_ready else _not_ready(zone)
    if zone.is_leaving:
        return Wait(zone.name, ZoneCode.leaving)
    if zone.is_paused:
        return Wait(zone.name, ZoneCode.paused, {"outdated": len(zone.outdated)})
    gate = _gate(zone, ordered)
    return gate.waits[0] if isinstance(gate, Closed) else _turn(zone, acting)


def _turn(zone: Zone, acting: Zone | None) -> Wait:
    assert acting is not None, "a zone whose gate is open is next, if no other is"
    numbers = {"updated": len(acting.units) - len(acting.outdated), "pods": len(acting.units)}
    return Wait(zone.name, ZoneCode.other_zone, numbers, (Blocker(acting.name),))


def _not_ready(zone: Zone) -> Wait:
    blockers = tuple(Blocker(unit.key, unit.proof) for unit in zone.not_ready)
    return Wait(zone.name, ZoneCode.not_ready, {"notReady": zone.unavailable}, blockers)


def _unfit(zone: Zone, unfit: list[Zone]) -> Wait:
    blockers = tuple(Blocker(one.name, reported=one.stateful_set.spec.update_strategy.type) for one in unfit)
    return Wait(zone.name, ZoneCode.not_on_delete, {}, blockers)
