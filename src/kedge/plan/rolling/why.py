"""Why: what a cluster waits for, in a sentence with the numbers, the clusters and the object that does not work.

cluster-3 waits: at most 1 of 3 clusters may be unavailable, and cluster-1 is not available: Deployment shop/web has 0
of 3 updated replicas
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Final

from kedge.api.binding import BindingState
from kedge.api.condition import Condition, find_condition
from kedge.api.fleet import PAUSED as _PAUSED
from kedge.api.placement_status import FailedPlacement
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.api.twins import Binding
from kedge.plan.rolling.budget import Budget
from kedge.plan.rolling.exposure import Exposure
from kedge.plan.rolling.readiness import Readiness, Unit, current, has_failed
from kedge.plan.text import moment

PAUSED: Final = f"the placement is paused; `kedge resume`, or removing its annotation {_PAUSED}, lets it go on"
_NAMED: Final = 3
_LONGEST: Final = 400


def waits(binding: Binding, reason: str) -> str:
    """A cluster and what it waits for."""
    leaving = " to be removed" if binding.spec.state == BindingState.unscheduled else ""
    return f"{binding.spec.target_cluster} waits{leaving}: {reason}"


def waits_to_go(binding: Binding) -> str:
    """What a cluster that is to be removed waits for, as was said last; empty if nothing was."""
    said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
    before = waits(binding, "")
    return said.message.removeprefix(before) if said is not None and said.message.startswith(before) else ""


class Reasons:
    """What the clusters of one placement wait for, after what moves now has moved. Each reason is found once."""

    def __init__(
        self,
        *,
        budget: Budget,
        heads: Mapping[str, Unit],
        moved: Mapping[str, Unit],
        unreachable: Mapping[str, str],
        parting: Set[str],
        holding: int,
        without_works: Sequence[str],
        throttled: bool,
        held_back: Set[str],
        exposure: Exposure,
        resources: str,
    ) -> None:
        self._budget = budget
        self._heads = heads
        self._moved = moved
        self._unreachable = unreachable
        self._parting = parting
        self._holding = holding
        self._without_works = without_works
        self._throttled = throttled
        self._held_back = held_back
        self._exposure = exposure
        self._resources = resources

    def of(self, unit: Unit) -> str:
        """Why one that does not move does not."""
        return waits(unit.binding, self._reason(unit))

    def _reason(self, unit: Unit) -> str:
        head = self._heads[unit.cluster]
        if unit.cluster in self._parting:
            return "it is leaving the fleet, and what was placed there is to stay"
        if unit is not head and unit.state != BindingState.unscheduled:
            return _behind(head)
        if unit.state == BindingState.scheduled:
            return self._no_room
        if unit.state == BindingState.unscheduled and self._without_works:
            return self._no_works
        if unit.name in self._held_back:
            return self._no_proof
        return self._no_budget

    @cached_property
    def _no_proof(self) -> str:
        most = self._exposure.most
        clusters = "1 cluster" if most == 1 else f"{most} clusters"
        holders = self._exposure.unproven
        told = [self._trouble(unit) for unit in holders[:_NAMED]]
        told += [f"{len(holders) - _NAMED} more have them, too"] if len(holders) > _NAMED else []
        return f"{self._resources} works nowhere yet, at most {clusters} may have it until then, and {'; '.join(told)}"

    @cached_property
    def _no_works(self) -> str:
        return f"{_names(self._without_works)} {_have(self._without_works)} to be sent the resources first"

    @cached_property
    def _no_room(self) -> str:
        budget, adding = self._budget, sum(unit.state == BindingState.scheduled for unit in self._moved.values())
        if self._throttled and self._holding + adding < budget.most:
            return f"clusters are added {max(1, budget.max_unavailable)} at a time, and {self._blockers}{_so(budget)}"
        leaving = sorted(unit.cluster for unit in self._heads.values() if unit.holds and self._leaves(unit))
        first = f": {_names(leaving)} {_have(leaving)} to be removed first" if leaving else ""
        most = f"{budget.most} clusters ({budget.target} wanted, {budget.max_surge} more)"
        return f"at most {most} may hold resources, and {self._holding + adding} do{first}{_so(budget)}"

    @cached_property
    def _no_budget(self) -> str:
        budget = self._budget
        if budget.max_unavailable == 0 and not self._blocking:
            return "maxUnavailable is 0, so no cluster that is available may be disturbed: set it to at least 1"
        clusters = f"{budget.counted} cluster" if budget.counted == 1 else f"{budget.counted} clusters"
        most = f"at most {budget.max_unavailable} of {clusters} may be unavailable{_not_picked(budget)}"
        return f"{most}, and {self._blockers}{_so(budget)}"

    def _leaves(self, unit: Unit) -> bool:
        return unit.is_deleting or not unit.is_picked

    @cached_property
    def _blocking(self) -> list[Unit]:
        """Wanted clusters that are not available, the most telling first."""
        picked = (unit for unit in self._heads.values() if unit.is_picked)
        found = [unit for unit in picked if self._readiness(unit) is not Readiness.available]
        return sorted(found, key=lambda unit: (self._readiness(unit).value, unit.cluster))

    @cached_property
    def _blockers(self) -> str:
        told = [self._trouble(unit) for unit in self._blocking[:_NAMED]]
        more = len(self._blocking) - len(told)
        missing = self._budget.counted - sum(unit.is_picked for unit in self._heads.values())
        told += [f"and {more} more"] if more > 0 else []
        told += [f"{missing} of those wanted could not be picked"] if missing > 0 else []
        return "; ".join(told)

    def _trouble(self, unit: Unit) -> str:
        """Why a cluster does not count as available; that it is not is said only if its own status says so."""
        cluster = unit.cluster
        match self._readiness(unit):
            case Readiness.broken:
                return f"{cluster} is not available: {_cut(failure_of(unit.binding))}"
            case Readiness.unreachable:
                said = self._unreachable[cluster] or "it is not heard of"
                return f"it is not known whether {cluster} is available: {_cut(said)}"
            case Readiness.unproven if unit.proven_at is not None:
                until = moment(unit.proven_at)
                return f"it cannot be seen whether the resources of {cluster} work, so it is given until {until}"
            case other:
                return f"{cluster} {_CAUSES[other]}"

    def _readiness(self, unit: Unit) -> Readiness:
        """As it will be once what moves now has moved: the same words now and then."""
        return Readiness.underway if unit.name in self._moved else unit.readiness


class Waits(Mapping[str, str]):
    """What each binding that does not move waits for, by its name. A sentence is made when it is asked for: most looks
    at many clusters ask for none.
    """

    def __init__(self, reasons: Reasons, units: Iterable[Unit]) -> None:
        self._reasons = reasons
        self._units = {unit.name: unit for unit in units}

    def __getitem__(self, name: str) -> str:
        return self._reasons.of(self._units[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._units)

    def __len__(self) -> int:
        return len(self._units)

    def __repr__(self) -> str:
        return repr(dict(self))


_CAUSES: Final = {
    Readiness.gone: "is no member of the fleet any more",
    Readiness.underway: "is being given its resources",
    Readiness.leaving: "is being removed, or is leaving the fleet",
    Readiness.empty: "has not been given its resources yet",
    Readiness.unproven: "has not proven itself yet",
}


def failure_of(binding: Binding) -> str:
    """What does not work there: the first object that failed, or what the status says."""
    if binding.status.failed_placements:
        return _object(binding.status.failed_placements[0])
    said = next((condition for condition in current(binding) if has_failed(condition)), None)
    return _words(said) if said is not None else "its status does not say why"


def _object(failed: FailedPlacement) -> str:
    name = f"{failed.namespace}/{failed.name}" if failed.namespace else failed.name
    said = _words(failed.condition)
    return said if failed.name in said else f"{failed.kind} {name}: {said}"


def _words(condition: Condition) -> str:
    return condition.message or condition.reason


def _behind(head: Unit) -> str:
    if head.is_deleting or not head.is_picked:
        return f"its earlier binding {head.name} has to be gone first"
    return f"there is another binding of this cluster, {head.name}: one of them has to go"


def _not_picked(budget: Budget) -> str:
    """That fewer are there than wanted, where that makes a difference."""
    missing = budget.target - budget.counted
    return (
        f" ({missing} of the {budget.target} wanted could not be picked, and count neither way)" if missing > 0 else ""
    )


def _so(budget: Budget) -> str:
    return f" ({budget.remark})" if budget.remark else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _names(clusters: Iterable[str]) -> str:
    found = list(clusters)
    named, more = found[:_NAMED], len(found) - _NAMED
    if more > 0:
        return f"{', '.join(named)} and {more} more"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _have(clusters: Sequence[str]) -> str:
    return "has" if len(clusters) == 1 else "have"
