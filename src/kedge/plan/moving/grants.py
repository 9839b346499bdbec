"""Grants: which units move now, and what every other one that is to move waits for.

    grants = grant(units, budget, order=[unit.key for unit in units], exposure=Exposure(1))

Promises:

* a unit is added only while fewer units than `budget.most` hold something;
* a unit is changed or removed only if enough others are proven and stay so; one that is known not to work needs no
  budget;
* with an allowance: a unit is changed or removed only if what it costs is left of it;
* with an exposure: no unit is changed to a revision that nobody has proven, if as many units as that allows hold it;
* units are asked in the order given, and each one that can move does;
* every unit that is to move and does not has a wait. Its blockers are units that are not proven, that move now, or that
  take up the room.

Budget given to a unit stays spent until its own status proves it back: that status is all the kernel goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property

from msgspec import Struct

from kedge.plan.moving.allowance import Allowance
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.exposure import Exposure, Holders
from kedge.plan.moving.unit import RANK, Proof, Unit
from kedge.plan.moving.wait import Blocker, Code, Wait


class Grants(Struct, frozen=True):
    """The keys of the units that move now, in order; and what the others wait for, by their keys."""

    moved: tuple[str, ...] = ()
    waiting: Mapping[str, Wait] = {}
    spare: int = 0
    """How many more proven units could be taken down."""
    allowance: Allowance | None = None
    """With what those that move now cost."""


def grant(
    units: Sequence[Unit],
    budget: Budget,
    *,
    order: Iterable[str],
    exposure: Exposure | None = None,
    add_at_once: int | None = None,
    charged: Set[str] = frozenset(),
    in_doubt: Set[str] = frozenset(),
    held: Mapping[str, Wait] | None = None,
    allowance: Allowance | None = None,
) -> Grants:
    """Which units move now. Pure: same units, same grants.

    Of several units of one place the first counts; the others cost what it does. `add_at_once`: a unit is added only
    while fewer units than this hold something and are not proven. `charged`: units that cost as if they were proven.
    `in_doubt`: units that an earlier request may still move. `held`: units that the scope itself holds back, with
    their waits. `allowance`: a second budget, of which each unit has its own price.
    """
    round_ = _Round(units, budget, exposure, add_at_once, charged, in_doubt, allowance)
    by_key = {unit.key: unit for unit in units}
    given = held or {}
    for key in order:
        if key not in given and by_key[key].is_moving:
            round_.ask(by_key[key])
    return Grants(tuple(round_.moved), {**given, **round_.waits()}, round_.spare, round_.allowance)


class _Round:
    """One pass over the units. What is granted is taken from what is left."""

    def __init__(
        self,
        units: Sequence[Unit],
        budget: Budget,
        exposure: Exposure | None,
        add_at_once: int | None,
        charged: Set[str],
        in_doubt: Set[str],
        allowance: Allowance | None,
    ) -> None:
        places: dict[str, Unit] = {}
        for unit in units:
            places.setdefault(unit.place or unit.key, unit)
        self._counted = tuple(places.values())
        self._budget = budget
        self._exposure = exposure
        self._add_at_once = add_at_once
        self._charged = charged
        self._in_doubt = in_doubt
        self.allowance = allowance
        self._holding = sum(unit.held != "" for unit in self._counted)
        self._available = {place for place, unit in places.items() if unit.proof is Proof.proven}
        self._holders: dict[str, Holders] = {}
        self._exposures: dict[str, tuple[Mapping[str, int], tuple[Blocker, ...]]] = {}
        self._refused: list[tuple[Unit, Code]] = []
        self._added = 0
        self.moved: dict[str, Unit] = {}

    def ask(self, unit: Unit) -> None:
        """Move a unit that wants to, if it may."""
        code = self._refusal_to_take_down(unit) if unit.held else self._refusal_to_add()
        if code is not None:
            self._refused.append((unit, code))
            return
        self.moved[unit.key] = unit
        self._added += not unit.held
        self._available.discard(unit.counted_as)
        if unit.held and self.allowance is not None:
            self.allowance = self.allowance.charged(unit.key, unit.counted_as)
        if unit.held and unit.wanted and self._exposure is not None:
            self._holders_of(unit.wanted).add(unit)

    def _refusal_to_add(self) -> Code | None:
        if not self._budget.may_add(self._holding + self._added):
            return Code.no_room
        is_throttled = self._add_at_once is not None and self._unproven + self._added >= self._add_at_once
        return Code.in_turn if is_throttled else None

    @cached_property
    def _unproven(self) -> int:
        return sum(unit.is_wanted and unit.holds and not unit.is_proven for unit in self._counted)

    def _refusal_to_take_down(self, unit: Unit) -> Code | None:
        if not unit.needs_no_budget and not self._budget.is_kept_by(len(self._available) - self._cost(unit)):
            return Code.budget_spent
        if self.allowance is not None and not self.allowance.admits(unit.key):
            return Code.allowance_spent
        if unit.wanted and self._exposure is not None:
            is_admitted = self._holders_of(unit.wanted).admit(unit, self._exposure)
            return None if is_admitted else Code.revision_unproven
        return None

    def _cost(self, unit: Unit) -> bool:
        return unit.counted_as in self._available or unit.key in self._charged

    def _holders_of(self, revision: str) -> Holders:
        if revision not in self._holders:
            self._holders[revision] = Holders(revision, self._counted, self._in_doubt)
        return self._holders[revision]

    @property
    def spare(self) -> int:
        return self._budget.may_take_down(len(self._available))

    # What the others wait for, once all were asked

    def waits(self) -> dict[str, Wait]:
        return {unit.key: self._wait(unit, code) for unit, code in self._refused}

    def _wait(self, unit: Unit, code: Code) -> Wait:
        match code:
            case Code.no_room:
                return Wait(unit.key, code, self._room_numbers, self._leaving_or_holding)
            case Code.in_turn:
                return Wait(unit.key, code, self._turn_numbers, self._unavailable)
            case Code.budget_spent:
                return Wait(unit.key, code, self._budget_numbers, self._unavailable)
            case Code.allowance_spent:
                assert self.allowance is not None
                price = self.allowance.prices.get(unit.key, 0)
                return Wait(unit.key, code, {**self._allowance_numbers, "price": price}, self._allowance_holders)
            case Code.revision_unproven:
                return Wait(unit.key, code, *self._exposed(unit.wanted))

    def _exposed(self, revision: str) -> tuple[Mapping[str, int], tuple[Blocker, ...]]:
        """The limit, and who holds a revision that nobody has proven. Found once: many units may wait for the same."""
        if revision not in self._exposures:
            assert self._exposure is not None
            holders = tuple(map(self._blocker, self._holders_of(revision).unproven))
            self._exposures[revision] = ({"limit": self._exposure.limit, "holding": len(holders)}, holders)
        return self._exposures[revision]

    @cached_property
    def _room_numbers(self) -> Mapping[str, int]:
        budget = self._budget
        holding = self._holding + self._added
        return {"desired": budget.desired, "maxSurge": budget.max_surge, "most": budget.most, "holding": holding}

    @cached_property
    def _turn_numbers(self) -> Mapping[str, int]:
        return {"atOnce": self._add_at_once or 0, "unproven": self._unproven + self._added, "missing": self._missing}

    @cached_property
    def _budget_numbers(self) -> Mapping[str, int]:
        return {
            "desired": self._budget.desired,
            "maxUnavailable": self._budget.max_unavailable,
            "available": len(self._available),
            "missing": self._missing,
        }

    @cached_property
    def _allowance_numbers(self) -> Mapping[str, int]:
        assert self.allowance is not None
        return {"limit": self.allowance.limit, "spent": self.allowance.spent}

    @cached_property
    def _allowance_holders(self) -> tuple[Blocker, ...]:
        assert self.allowance is not None
        held = self.allowance.held
        found = [self._blocker(unit) for unit in self._counted if held.get(unit.counted_as)]
        return tuple(sorted(found, key=lambda one: (RANK[one.proof or Proof.pending], one.key)))

    @cached_property
    def _missing(self) -> int:
        """How many units are desired that are not there at all."""
        return max(0, self._budget.desired - sum(unit.is_wanted for unit in self._counted))

    @cached_property
    def _leaving_or_holding(self) -> tuple[Blocker, ...]:
        """Those that are to leave; if there are none, all that hold something or are added now."""
        holding = [unit for unit in self._counted if unit.holds or unit.key in self.moved]
        leaving = [unit for unit in holding if unit.proof is Proof.leaving or not unit.is_wanted]
        return tuple(self._blocker(unit) for unit in sorted(leaving or holding, key=lambda unit: unit.counted_as))

    @cached_property
    def _unavailable(self) -> tuple[Blocker, ...]:
        """Those that are not proven, or move now; first those that tell most."""
        found = [self._blocker(unit) for unit in self._counted if not unit.is_proven or unit.key in self.moved]
        return tuple(sorted(found, key=lambda one: (RANK[one.proof or Proof.pending], one.key)))

    def _blocker(self, unit: Unit) -> Blocker:
        """As the unit will be once what moves now has moved."""
        if unit.key in self.moved:
            return Blocker(unit.counted_as, Proof.pending)
        return Blocker(unit.counted_as, unit.proof, unit.since, unit.proven_at)
