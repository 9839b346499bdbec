"""Plan: which clusters of a placement move now, and what every other one waits for.

The kernel decides within budget and exposure (`plan.moving.grants`). This is the adapter for bindings of a placement
(seed 000):

* removals come before changes. Of changes those of clusters that do not work come first, so that a fix goes where the
  bad release is; else names in ascending order;
* until the resources wanted are available on a cluster, at most maxUnavailable clusters are changed to them;
* no cluster that is available is removed before those being added have been sent their resources;
* of several bindings of one cluster only the oldest is added or changed; any may be removed;
* with a podBudget, a cluster is changed only if the pods that may be lacking then, over all clusters, are within it;
  and one that works is removed only once all others that hold resources have proven themselves.

In the kubefleet dialect there is no exposure, and a cluster that still has to prove itself costs as an available one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from kedge.api.binding import BindingState
from kedge.api.dialect import Dialect
from kedge.api.fleet import PAUSED, PINNED
from kedge.api.placement_kinds import Binding
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.placements import is_paused
from kedge.plan.rolling.budget import BadStrategy, Clusters, RolloutBudget, budget_of
from kedge.plan.rolling.pod_budget import PodBudget, charge_of, given_budget, pod_budget
from kedge.plan.rolling.readiness import BindingFacts, FleetFacts, judge, one_binding_per_cluster
from kedge.plan.rolling.rollout_input import RolloutInput, is_rolling, throttles_additions
from kedge.plan.rolling.wait_text import HoldCode, RolloutFacts, WaitTexts

_NO_REVISION: Final = "-"  # of a binding that may have something on its cluster, and does not say what


class RolloutPlan(Struct, frozen=True):
    """The bindings that move now, and why the others do not."""

    resources: str = ""
    """What those that are bound or re-pointed get, by the name of its first snapshot; empty if there is nothing."""
    bind: tuple[Binding, ...] = ()
    repoint: tuple[Binding, ...] = ()
    remove: tuple[Binding, ...] = ()
    waits: Mapping[str, Wait] = field(default_factory=dict)
    """What each binding waits for, by its name."""
    texts: WaitTexts = WaitTexts({}, {})
    """The same in sentences."""
    charges: Mapping[str, int] = field(default_factory=dict)
    """How many pods may be lacking on clusters that move now, by their bindings' names; empty without a podBudget."""
    credit: tuple[Binding, ...] = ()
    """Those that have proven themselves, and are charged with pods no longer."""
    look_again: float | None = None
    """In how many seconds waiting alone will have proven something; None if never."""

    @property
    def why(self) -> Mapping[str, str]:
        """What each binding waits for, in a sentence, by its name."""
        return self.texts

    def reason(self, name: str) -> str:
        """What a binding waits for, in words, without its cluster."""
        return self.texts.reason(name)

    def detailed(self, name: str) -> Wait | None:
        """What a binding waits for, with what its blockers report; None if it does not wait."""
        return self.texts.detailed(name) if name in self.waits else None


def plan(observed: RolloutInput, now: datetime) -> RolloutPlan:
    """Which clusters may move now. Pure: same observation, same plan."""
    if not is_rolling(observed.placement):
        return RolloutPlan()
    if not observed.wanted.name and not observed.wanted.problem:
        return RolloutPlan()  # nothing was selected yet; the placement itself says so
    try:
        budget = budget_of(observed.placement.spec, Clusters.of(observed.bindings), observed.dialect)
    except BadStrategy as error:
        return _halted(observed, HoldCode.bad_strategy, Blocker("spec.strategy", reported=str(error)))
    if observed.wanted.problem:
        return _halted(observed, HoldCode.no_such_revision, Blocker(PINNED, reported=observed.wanted.problem))
    if is_paused(observed.placement):
        return _halted(observed, HoldCode.paused, Blocker(PAUSED))
    if observed.wanted.name in observed.uncounted:
        return _halted(observed, HoldCode.uncounted, Blocker(observed.wanted.name))
    fleet = FleetFacts(now, budget.period, observed.unreachable, observed.gone, observed.parting)
    facts = sorted((judge(binding, fleet) for binding in observed.bindings), key=lambda one: one.name)
    try:
        return _Rollout(observed, budget, facts).plan(now)
    except BadStrategy as error:
        return _halted(observed, HoldCode.bad_strategy, Blocker("spec.strategy", reported=str(error)))


def removal_waits(observed: RolloutInput, now: datetime) -> Mapping[str, str]:
    """What each binding that is to be removed waits for, in a sentence, by its name."""
    going = [one.metadata.name for one in observed.bindings if one.spec.state == BindingState.unscheduled]
    why = plan(observed, now).why if going else {}
    return {name: why[name] for name in going if name in why}


def _halted(observed: RolloutInput, code: HoldCode, blocker: Blocker) -> RolloutPlan:
    """Nothing moves, and whoever would move waits for the same."""
    stopped = {
        one.metadata.name: one
        for one in observed.bindings
        if one.metadata.deletion_timestamp is None and observed.wants_to_move(one)
    }
    blockers = (blocker,)
    waits = {name: Wait(name, code, blockers=blockers) for name in stopped}
    return RolloutPlan(resources=observed.wanted.name, waits=waits, texts=WaitTexts(waits, stopped))


class _Rollout:
    """The units of one placement, as the kernel takes them."""

    def __init__(self, observed: RolloutInput, budget: RolloutBudget, facts: list[BindingFacts]) -> None:
        self._observed = observed
        self._budget = budget
        self._facts = {one.name: one for one in facts}
        self._counted = one_binding_per_cluster(facts)
        counted = list(self._counted.values())
        others = [one for one in facts if self._counted[one.cluster] is not one]
        self._pods = _pod_budget(observed, counted)
        self._units = {one.name: self._unit(one) for one in (*counted, *others)}
        self._asked = [one for one in facts if not one.is_deleting and self._wants_to_move(one)]

    def plan(self, now: datetime) -> RolloutPlan:
        grants = self._granted(self._order, self._held)
        moved = [self._units[key] for key in grants.moved]
        bindings = {one.name: one.binding for one in self._facts.values()}
        lacking = dict(grants.allowance.held) if grants.allowance is not None else {}
        facts = RolloutFacts(
            self._counted,
            self._budget,
            self._observed.unreachable,
            self._observed.wanted.name,
            self._pods.desired if self._pods is not None else 0,
            lacking,
        )
        return RolloutPlan(
            resources=self._observed.wanted.name,
            bind=tuple(bindings[unit.key] for unit in moved if unit.adds),
            repoint=tuple(bindings[unit.key] for unit in moved if unit.changes),
            remove=tuple(bindings[unit.key] for unit in moved if unit.leaves),
            waits=grants.waiting,
            texts=WaitTexts(grants.waiting, bindings, facts),
            charges=self._charges(moved),
            credit=tuple(
                one.binding for name, one in self._facts.items() if name not in grants.moved and self._is_to_credit(one)
            ),
            look_again=self._next_proof(now) if grants.waiting else None,
        )

    def _granted(self, order: Iterable[str], held: Mapping[str, Wait]) -> Grants:
        budget = self._budget.budget
        at_once = max(1, budget.max_unavailable)
        is_kubefleet = self._observed.dialect is Dialect.kubefleet
        return grant(
            tuple(self._units.values()),
            budget,
            order=order,
            exposure=None if is_kubefleet else Exposure(at_once),
            add_at_once=at_once if throttles_additions(self._observed.placement) else None,
            charged=self._untracked if is_kubefleet else frozenset(),
            held=held,
            allowance=self._pods.allowance(self._counted.values()) if self._pods is not None else None,
        )

    # Pods

    def _charges(self, moved: Iterable[Unit]) -> Mapping[str, int]:
        pods = self._pods
        if pods is None:
            return {}
        return {unit.key: pods.charge(self._facts[unit.key]) for unit in moved if unit.is_wanted}

    def _is_to_credit(self, one: BindingFacts) -> bool:
        return self._pods is not None and one.is_available and charge_of(one.binding) is not None

    def _pod_hold(self, one: BindingFacts) -> Wait | None:
        """What the budget of pods makes a binding wait for, beside what others hold of it."""
        pods, unit = self._pods, self._units[one.name]
        if pods is None or unit.adds:
            return None
        if not one.is_picked:
            unproven = self._unproven() if not unit.needs_no_budget else ()
            return Wait(one.name, HoldCode.unproven, {"unproven": len(unproven)}, unproven) if unproven else None
        if unbounded := pods.unbounded(one):
            return Wait(
                one.name, HoldCode.unbounded_pods, {"unbounded": len(unbounded)}, tuple(map(Blocker, unbounded))
            )
        if pods.is_too_small(one):
            numbers = {"limit": pods.limit, "desired": pods.desired, "price": pods.charge(one)}
            return Wait(one.name, HoldCode.too_many_pods, numbers)
        return None

    def _unproven(self) -> tuple[Blocker, ...]:
        """The clusters that are to stay, hold resources, and have not proven themselves."""
        found = (one for one in self._counted.values() if one.is_picked and one.holds and not one.is_deleting)
        return tuple(Blocker(one.cluster, one.proof, None, one.proven_at) for one in found if not one.is_available)

    # Units

    def _wants_to_move(self, one: BindingFacts) -> bool:
        unit = self._units[one.name]
        return unit.held != unit.wanted  # also of a cluster that is leaving the fleet, which the kernel asks nothing of

    def _unit(self, one: BindingFacts) -> Unit:
        wanted = self._observed.wanted.name if one.is_picked else ""
        return Unit(one.name, self._revision(one), wanted, one.proof, proven_at=one.proven_at, place=one.cluster)

    def _revision(self, one: BindingFacts) -> str:
        """What a cluster holds. The same resources, written in another way than wanted, are another revision."""
        name, wanted = one.binding.spec.resource_snapshot_name, self._observed.wanted.name
        if not one.holds:
            return ""
        if name == wanted and not self._observed.is_applied_so(one.binding):
            return f"{name}, applied otherwise"
        return name or _NO_REVISION

    @cached_property
    def _order(self) -> list[str]:
        """Additions, removals, changes; of changes those first that do not work, and of them those whose resources
        work nowhere.
        """
        proven = {one.binding.spec.resource_snapshot_name for one in self._counted.values() if one.is_available}

        def turn(one: BindingFacts) -> tuple[bool, bool, str]:
            is_proven = one.binding.spec.resource_snapshot_name in proven
            return (not self._units[one.name].needs_no_budget, is_proven, one.name)

        changes = sorted((one for one in self._asked if one.state == BindingState.bound), key=turn)
        return [
            *self._names(BindingState.scheduled),
            *self._names(BindingState.unscheduled),
            *(one.name for one in changes),
        ]

    def _names(self, state: BindingState) -> list[str]:
        return [one.name for one in self._asked if one.state == state]

    def _next_proof(self, now: datetime) -> float | None:
        proven = [one.proven_at for one in self._counted.values() if one.proven_at is not None]
        return max(0.001, (min(proven) - now).total_seconds()) if proven else None

    @cached_property
    def _untracked(self) -> frozenset[str]:
        return frozenset(one.name for one in self._facts.values() if one.proof is Proof.untracked)

    # Those that are held back

    @cached_property
    def _held(self) -> Mapping[str, Wait]:
        held = {one.name: wait for one in self._asked if (wait := self._hold(one)) is not None}
        removals = [one for one in self._names(BindingState.unscheduled) if one not in held]
        unsent = tuple(map(Blocker, self._unsent(held))) if removals else ()
        costly = [name for name in removals if unsent and not self._units[name].needs_no_budget]
        return {**held, **{name: Wait(name, HoldCode.unsent, {"unsent": len(unsent)}, unsent) for name in costly}}

    def _hold(self, one: BindingFacts) -> Wait | None:
        if one.cluster in self._observed.parting:
            return Wait(one.name, HoldCode.leaving_fleet)
        first = self._counted[one.cluster]
        if one is first or one.state == BindingState.unscheduled:
            return self._pod_hold(one)
        is_going = first.is_deleting or not first.is_picked
        return Wait(
            one.name, HoldCode.earlier_binding if is_going else HoldCode.other_binding, {}, (Blocker(first.name),)
        )

    def _unsent(self, held: Mapping[str, Wait]) -> list[str]:
        """Clusters that are added now, or were, and have not been sent their resources yet."""
        additions = self._names(BindingState.scheduled)
        added = [self._facts[key] for key in self._granted(additions, held).moved] if additions else []
        counted = self._counted.values()
        bound = [one for one in counted if one.state == BindingState.bound and not one.is_deleting]
        return [one.cluster for one in (*added, *bound) if not one.has_works]


def _pod_budget(observed: RolloutInput, clusters: Iterable[BindingFacts]) -> PodBudget | None:
    given = given_budget(observed.placement.spec)
    if given is None:
        return None
    try:
        return pod_budget(given, observed.pods[observed.wanted.name], observed.pods, clusters)
    except ValueError as error:
        raise BadStrategy(f"spec.strategy.rollingUpdate.podBudget: {error}") from error
