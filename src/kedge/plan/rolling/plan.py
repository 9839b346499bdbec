"""Plan: which clusters of a placement move now, and what every other one waits for.

Promises (seed 000):

* a cluster is added only while fewer clusters than wanted + maxSurge hold resources;
* a cluster that is available, or may be, is changed or removed only if wanted - maxUnavailable others are available and
  stay so; one whose own status says that it does not work may be changed or removed without regard to that, so that a
  fix reaches it;
* until the resources wanted are available on a cluster, at most maxUnavailable clusters hold them (`exposure`);
* removals come before changes, and of changes those of clusters that do not work come first, so that a fix goes where
  the bad release is; else names in ascending order;
* no cluster that is available is removed before those being added have been sent their resources;
* whoever waits, waits with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from kedge.api.binding import BindingState
from kedge.api.dialect import Dialect
from kedge.api.fleet import THROTTLE_FIRST
from kedge.api.rollout import ApplyStrategy
from kedge.api.twins import Binding, Placement
from kedge.plan.placements import is_external, is_paused
from kedge.plan.rolling import why
from kedge.plan.rolling.budget import BadStrategy, Budget, Clusters, budget_of
from kedge.plan.rolling.exposure import Exposure
from kedge.plan.rolling.readiness import Around, Readiness, Unit, heads, judge
from kedge.plan.rolling.wanted import Wanted

_ON: Final = "true"


class Seen(Struct, frozen=True):
    """Everything a plan depends on but the time."""

    placement: Placement
    bindings: tuple[Binding, ...]
    wanted: Wanted
    """The resources to roll out."""
    unreachable: Mapping[str, str] = {}
    """Clusters that are not heard of, and what is known of since when, in words."""
    gone: Set[str] = frozenset()
    """Clusters that are no members any more."""
    parting: Set[str] = frozenset()
    """Members that are leaving: what was placed there is to stay, so nothing is touched until they are gone."""
    dialect: Dialect = Dialect.seed

    @property
    def apply_strategy(self) -> ApplyStrategy:
        """How objects are to be written."""
        strategy = self.placement.spec.strategy
        return (strategy.apply_strategy if strategy is not None else None) or ApplyStrategy()

    def is_applied_so(self, binding: Binding) -> bool:
        """Whether a cluster's objects are written as they are to be."""
        return (binding.spec.apply_strategy or ApplyStrategy()) == self.apply_strategy

    def has_wanted(self, binding: Binding) -> bool:
        """Whether a cluster has the resources wanted, in the way wanted."""
        return binding.spec.resource_snapshot_name == self.wanted.name and self.is_applied_so(binding)

    def wants_to_move(self, binding: Binding) -> bool:
        """Whether a binding is not where it is to be."""
        return binding.spec.state != BindingState.bound or not self.has_wanted(binding)


class Plan(Struct, frozen=True):
    """The bindings that move now, and why the others do not."""

    resources: str = ""
    """What those that are bound or re-pointed get, by the name of its first snapshot; empty if there is nothing."""
    bind: tuple[Binding, ...] = ()
    repoint: tuple[Binding, ...] = ()
    remove: tuple[Binding, ...] = ()
    why: Mapping[str, str] = field(default_factory=dict)
    """What each binding waits for, by its name."""
    look_again: float | None = None
    """In how many seconds waiting alone will have proven something; None if never."""


def is_rolling(placement: Placement) -> bool:
    """Whether a placement is rolled out from here: not if it goes away, nor if staged runs move it."""
    return placement.metadata.deletion_timestamp is None and not is_external(placement)


def plan(seen: Seen, now: datetime) -> Plan:
    """Which clusters may move now. Pure: same observation, same plan."""
    if not is_rolling(seen.placement):
        return Plan()
    if not seen.wanted.name and not seen.wanted.problem:
        return Plan()  # nothing was selected yet; the placement itself says so
    try:
        budget = _budget(seen)
    except BadStrategy as error:
        return _standing_still(seen, str(error))
    held_up = seen.wanted.problem or (why.PAUSED if is_paused(seen.placement) else "")
    if held_up:
        return _standing_still(seen, held_up)
    return _moving(seen, budget, now)


def _budget(seen: Seen) -> Budget:
    return budget_of(seen.placement.spec, Clusters.of(seen.bindings), seen.dialect)


def _throttles(seen: Seen) -> bool:
    return seen.placement.metadata.annotations.get(THROTTLE_FIRST) == _ON


def _standing_still(seen: Seen, reason: str) -> Plan:
    """Nothing moves, and whoever would says why."""
    held = {
        binding.metadata.name: why.waits(binding, reason)
        for binding in seen.bindings
        if binding.metadata.deletion_timestamp is None and seen.wants_to_move(binding)
    }
    return Plan(resources=seen.wanted.name, why=held)


def _moving(seen: Seen, budget: Budget, now: datetime) -> Plan:
    around = Around(now, budget.period, seen.unreachable, seen.gone, seen.parting)
    units = sorted((judge(binding, around) for binding in seen.bindings), key=lambda unit: unit.name)
    return _Round(seen, budget, units).plan(now)


class _Round:
    """One look at all clusters; what is granted is taken from what is left."""

    def __init__(self, seen: Seen, budget: Budget, units: list[Unit]) -> None:
        self._seen = seen
        self._budget = budget
        self._units = units
        self._heads = heads(units)
        self._holding = sum(unit.holds for unit in self._heads.values())
        self._available = {cluster for cluster, unit in self._heads.items() if unit.is_available}
        self._exposure = self._exposed()
        self._held_back: set[str] = set()  # the names of those that wait for proof, and for nothing else
        self._without_works: tuple[str, ...] = ()
        self._moved: dict[str, Unit] = {}  # by name

    def plan(self, now: datetime) -> Plan:
        live = [unit for unit in self._units if not unit.is_deleting]
        waiting = [unit for unit in live if self._seen.wants_to_move(unit.binding)]
        acting = [unit for unit in waiting if self._speaks(unit)]
        added = self._add([unit for unit in acting if unit.state == BindingState.scheduled])
        unpicked = [unit for unit in waiting if unit.state == BindingState.unscheduled]
        self._without_works = self._not_sent() if unpicked else ()
        removed = self._disturb([unit for unit in unpicked if self._speaks(unit)])
        changed = self._disturb(self._in_turn(unit for unit in acting if unit.state == BindingState.bound))
        explained = self._explained([unit for unit in waiting if unit.name not in self._moved])
        return Plan(
            resources=self._seen.wanted.name,
            bind=_bindings(added),
            repoint=_bindings(changed),
            remove=_bindings(removed),
            why=explained,
            look_again=self._next_proof(now) if explained else None,
        )

    def _speaks(self, unit: Unit) -> bool:
        """Whether it may act: of several bindings of a cluster only the first, but any may be taken away."""
        if unit.cluster in self._seen.parting:
            return False
        return unit is self._heads[unit.cluster] or unit.state == BindingState.unscheduled

    # Adding

    def _add(self, units: list[Unit]) -> list[Unit]:
        added = units[: max(0, self._room())]
        self._moved.update((unit.name, unit) for unit in added)
        return added

    def _room(self) -> int:
        room = self._budget.most - self._holding
        if _throttles(self._seen):
            room = min(room, max(1, self._budget.max_unavailable) - len(self._unproven()))
        return room

    def _unproven(self) -> list[Unit]:
        """Wanted clusters that have resources, and are not known to work."""
        return [unit for unit in self._heads.values() if unit.is_picked and unit.holds and not unit.is_available]

    # Changing and removing

    def _exposed(self) -> Exposure:
        holders = [unit for unit in self._heads.values() if unit.holds and self._seen.has_wanted(unit.binding)]
        bound = max(1, self._budget.max_unavailable)
        return Exposure(holders, len(self._heads) if self._seen.dialect is Dialect.kubefleet else bound)

    def _in_turn(self, units: Iterable[Unit]) -> list[Unit]:
        """Those first that do not work, and of them those whose resources work nowhere."""
        proven = {unit.binding.spec.resource_snapshot_name for unit in self._heads.values() if unit.is_available}
        return sorted(
            units,
            key=lambda unit: (not unit.is_free, unit.binding.spec.resource_snapshot_name in proven, unit.name),
        )

    def _disturb(self, units: list[Unit]) -> list[Unit]:
        moved = []
        for unit in units:
            if self._may_disturb(unit):
                self._available.discard(unit.cluster)
                self._moved[unit.name] = unit
                moved.append(unit)
                if unit.is_picked:
                    self._exposure.grant(unit)
        return moved

    def _may_disturb(self, unit: Unit) -> bool:
        if not unit.is_picked:
            return unit.is_free or (not self._without_works and self._has_budget(unit))
        if not (unit.is_free or self._has_budget(unit)):
            return False
        if self._exposure.has_room(unit.cluster):
            return True
        self._held_back.add(unit.name)
        return False

    def _has_budget(self, unit: Unit) -> bool:
        return self._budget.may_disturb(len(self._available) - self._counts(unit))

    def _counts(self, unit: Unit) -> bool:
        """Whether one cluster fewer would be available: the peer lets none go on that is still to prove itself."""
        if self._seen.dialect is Dialect.kubefleet and unit.readiness is Readiness.unproven:
            return True
        return unit.cluster in self._available

    def _not_sent(self) -> tuple[str, ...]:
        """Clusters being added that have not been sent their resources yet."""
        bound = (unit for unit in self._heads.values() if unit.state == BindingState.bound and not unit.is_deleting)
        return tuple(unit.cluster for unit in (*self._moved.values(), *bound) if not unit.has_works)

    # Explaining

    def _explained(self, waiting: list[Unit]) -> Mapping[str, str]:
        reasons = why.Reasons(
            budget=self._budget,
            heads=self._heads,
            moved=self._moved,
            unreachable=self._seen.unreachable,
            parting=self._seen.parting,
            holding=self._holding,
            without_works=self._without_works,
            throttled=_throttles(self._seen),
            held_back=self._held_back,
            exposure=self._exposure,
            resources=self._seen.wanted.name,
        )
        return why.Waits(reasons, waiting)

    def _next_proof(self, now: datetime) -> float | None:
        proven = [unit.proven_at for unit in self._heads.values() if unit.proven_at is not None]
        return max(0.001, (min(proven) - now).total_seconds()) if proven else None


def _bindings(units: Iterable[Unit]) -> tuple[Binding, ...]:
    return tuple(unit.binding for unit in units)
