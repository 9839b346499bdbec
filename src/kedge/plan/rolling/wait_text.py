"""Wait text: what a binding waits for, in a sentence with the numbers, the clusters and the object that does not work.

cluster-3 waits: at most 1 of 3 clusters may be unavailable, and cluster-1 is not available: Deployment shop/web has 0
of 3 updated replicas

Nothing is decided on these sentences: conditions, events and commands show them, and programs read the wait itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.condition import Condition
from kedge.api.fleet import PAUSED
from kedge.api.placement_kinds import Binding
from kedge.api.placement_status import FailedPlacement
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Code, Wait
from kedge.plan.rolling.budget import RolloutBudget
from kedge.plan.rolling.readiness import BindingFacts, current, has_failed
from kedge.plan.text import moment, object_name

_PAUSED: Final = f"the placement is paused; `kedge resume`, or removing its annotation {PAUSED}, lets it go on"
_LEAVING: Final = "it is leaving the fleet, and what was placed there is to stay"
_NAMED: Final = 3
_SHOWN: Final = 10
_LONGEST: Final = 400


class HoldCode(StrEnum):
    """Why a rollout holds a binding back, beside budget and exposure."""

    paused = "Paused"
    bad_strategy = "BadStrategy"
    no_such_revision = "NoSuchRevision"
    leaving_fleet = "LeavingFleet"
    earlier_binding = "EarlierBinding"
    """An earlier binding of the cluster has to be gone first."""
    other_binding = "OtherBinding"
    """Another binding of the cluster is there to stay."""
    unsent = "ResourcesNotSent"
    """Clusters that are being added have to be sent their resources first."""
    uncounted = "PodsNotCounted"
    """The pods of the revision that is wanted are not counted yet."""
    too_many_pods = "PodBudgetTooSmall"
    """Moving the cluster may take away more pods than the whole budget."""
    unbounded_pods = "PodsNotBounded"
    """Nobody can say how many pods moving the cluster may take away."""
    unproven = "OthersNotProven"
    """Other clusters have to prove themselves before the pods of this one go."""


class RolloutFacts(Struct, frozen=True):
    """What sentences need beside the waits."""

    clusters: Mapping[str, BindingFacts]
    """The binding that counts for each cluster."""
    budget: RolloutBudget
    unreachable: Mapping[str, str]
    resources: str
    pods: int = 0
    """How many pods all clusters are to run, if there is a budget of pods."""
    lacking: Mapping[str, int] = {}
    """How many pods may be lacking, by cluster."""


_NO_FACTS: Final = RolloutFacts({}, RolloutBudget(Budget(0, 0), 0), {}, "")


def wait_text(binding: Binding, reason: str) -> str:
    """A cluster and what it waits for."""
    leaving = " to be removed" if binding.spec.state == BindingState.unscheduled else ""
    return f"{binding.spec.target_cluster} waits{leaving}: {reason}"


class WaitTexts(Mapping[str, str]):
    """What each binding that does not move waits for, by its name. A sentence is made when it is asked for: most looks
    at many clusters ask for none. Bindings that wait for the same share what is found out about it.
    """

    def __init__(
        self, waits: Mapping[str, Wait], bindings: Mapping[str, Binding], facts: RolloutFacts = _NO_FACTS
    ) -> None:
        self._waits = waits
        self._bindings = bindings
        self._facts = facts
        self._known: dict[tuple[str, int, int], str] = {}

    def __getitem__(self, name: str) -> str:
        return wait_text(self._bindings[name], self.reason(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._waits)

    def __len__(self) -> int:
        return len(self._waits)

    def __repr__(self) -> str:
        return repr(dict(self))

    def reason(self, name: str) -> str:
        """What a binding waits for, without its cluster."""
        wait = self._waits[name]
        shared = (wait.code, id(wait.blockers), wait.numbers.get("price", 0))
        if shared not in self._known:
            self._known[shared] = self._reason(wait)
        return self._known[shared]

    def detailed(self, name: str) -> Wait:
        """A wait as data for programs: named by its cluster, with what the first few blockers report of themselves."""
        wait = self._waits[name]
        blockers = tuple(replace(one, reported=self._reported(one)) for one in wait.blockers[:_SHOWN])
        numbers = {**wait.numbers, "blockers": len(wait.blockers)}
        return replace(wait, unit=self._bindings[name].spec.target_cluster, numbers=numbers, blockers=blockers)

    def _reported(self, blocker: Blocker) -> str:
        match blocker.proof:
            case Proof.failed:
                return cut(failure_of(self._facts.clusters[blocker.key].binding))
            case Proof.unknown:
                return cut(self._facts.unreachable[blocker.key])
            case _:
                return blocker.reported

    def _reason(self, wait: Wait) -> str:
        match wait.code:
            case HoldCode.paused:
                return _PAUSED
            case HoldCode.leaving_fleet:
                return _LEAVING
            case HoldCode.earlier_binding:
                return f"its earlier binding {wait.blockers[0].key} has to be gone first"
            case HoldCode.other_binding:
                return f"there is another binding of this cluster, {wait.blockers[0].key}: one of them has to go"
            case HoldCode.unsent:
                names = [one.key for one in wait.blockers]
                return f"{_names(names)} {_have(names)} to be sent the resources first"
            case HoldCode.uncounted:
                return f"the pods of {wait.blockers[0].key} have to be counted first"
            case HoldCode.too_many_pods:
                return _too_many_pods(wait)
            case HoldCode.unbounded_pods:
                return _unbounded_pods(wait)
            case HoldCode.unproven:
                return f"its pods are needed until others have proven themselves: {self._few(wait.blockers)}"
            case Code.allowance_spent:
                return self._no_pods(wait)
            case Code.no_room:
                return self._no_room(wait)
            case Code.in_turn:
                at_once = wait.numbers["atOnce"]
                return f"clusters are added {at_once} at a time, and {self._blockers(wait)}{self._remark}"
            case Code.revision_unproven:
                return self._no_proof(wait)
            case Code.budget_spent:
                return self._no_budget(wait)
            case _:
                return wait.blockers[0].reported

    def _no_room(self, wait: Wait) -> str:
        numbers, clusters = wait.numbers, self._facts.clusters
        leaving = [one.key for one in wait.blockers if clusters[one.key].is_deleting or not clusters[one.key].is_picked]
        first = f": {_names(leaving)} {_have(leaving)} to be removed first" if leaving else ""
        most = f"{numbers['most']} clusters ({numbers['desired']} wanted, {numbers['maxSurge']} more)"
        return f"at most {most} may hold resources, and {numbers['holding']} do{first}{self._remark}"

    def _no_proof(self, wait: Wait) -> str:
        limit, more = wait.numbers["limit"], wait.numbers["holding"] - _NAMED
        told = [self._trouble(one) for one in wait.blockers[:_NAMED]]
        told += [f"{more} more have them, too"] if more > 0 else []
        clusters = "1 cluster" if limit == 1 else f"{limit} clusters"
        resources = f"{self._facts.resources} works nowhere yet"
        return f"{resources}, at most {clusters} may have it until then, and {'; '.join(told)}"

    def _no_budget(self, wait: Wait) -> str:
        desired, unavailable = wait.numbers["desired"], wait.numbers["maxUnavailable"]
        if unavailable == 0 and not self._picked(wait):
            return "maxUnavailable is 0, so no cluster that is available may be disturbed: set it to at least 1"
        clusters = "1 cluster" if desired == 1 else f"{desired} clusters"
        most = f"at most {unavailable} of {clusters} may be unavailable{self._not_picked}"
        return f"{most}, and {self._blockers(wait)}{self._remark}"

    def _no_pods(self, wait: Wait) -> str:
        limit, price = wait.numbers["limit"], wait.numbers["price"]
        most = f"at most {limit} of {pods_text(self._facts.pods)} of all clusters may be unavailable (podBudget)"
        told = self._few(wait.blockers, self._facts.lacking)
        return f"{most}, a change here may take away {price}, and {told}"

    def _few(self, blockers: Sequence[Blocker], lacking: Mapping[str, int] | None = None) -> str:
        """Why the first few of these clusters do not count as available, and how many pods they may lack."""
        told = [
            self._trouble(one) + (f" ({pods_text(lacking[one.key])})" if lacking else "") for one in blockers[:_NAMED]
        ]
        told += [f"and {len(blockers) - _NAMED} more"] if len(blockers) > _NAMED else []
        return "; ".join(told)

    def _picked(self, wait: Wait) -> list[Blocker]:
        """Of those waited for, the clusters that are wanted."""
        return [one for one in wait.blockers if self._facts.clusters[one.key].is_picked]

    def _blockers(self, wait: Wait) -> str:
        picked, missing = self._picked(wait), wait.numbers["missing"]
        told = [self._trouble(one) for one in picked[:_NAMED]]
        told += [f"and {len(picked) - _NAMED} more"] if len(picked) > _NAMED else []
        told += [f"{missing} of those wanted could not be picked"] if missing else []
        return "; ".join(told)

    def _trouble(self, blocker: Blocker) -> str:
        """Why a cluster does not count as available; that it is not is said only if its own status says so."""
        cluster = blocker.key
        match blocker.proof:
            case Proof.failed:
                return f"{cluster} is not available: {self._reported(blocker)}"
            case Proof.unknown:
                heard = self._reported(blocker) or "it is not heard of"
                return f"it is not known whether {cluster} is available: {heard}"
            case Proof.untracked if blocker.until is not None:
                until = moment(blocker.until)
                return f"it cannot be seen whether the resources of {cluster} work, so it is given until {until}"
            case other:
                return f"{cluster} {_CAUSES[other or Proof.pending]}"

    @property
    def _not_picked(self) -> str:
        """That fewer are there than wanted, where that makes a difference."""
        target = self._facts.budget.target
        missing = target - self._facts.budget.budget.desired
        return f" ({missing} of the {target} wanted could not be picked, and count neither way)" if missing > 0 else ""

    @property
    def _remark(self) -> str:
        return f" ({self._facts.budget.remark})" if self._facts.budget.remark else ""


_CAUSES: Final = {
    Proof.gone: "is no member of the fleet any more",
    Proof.pending: "is being given its resources",
    Proof.leaving: "is being removed, or is leaving the fleet",
    Proof.nothing: "has not been given its resources yet",
    Proof.untracked: "has not proven itself yet",
}


def failure_of(binding: Binding) -> str:
    """What does not work there: the first object that failed, or what the status says."""
    if binding.status.failed_placements:
        return _object(binding.status.failed_placements[0])
    said = next((condition for condition in current(binding) if has_failed(condition)), None)
    return _words(said) if said is not None else "its status does not say why"


def _object(failed: FailedPlacement) -> str:
    said = _words(failed.condition)
    return said if failed.name in said else f"{object_name(failed.kind, failed.namespace, failed.name)}: {said}"


def _words(condition: Condition) -> str:
    return condition.message or condition.reason


def pods_text(number: int) -> str:
    """So many pods."""
    return "1 pod" if number == 1 else f"{number} pods"


def _too_many_pods(wait: Wait) -> str:
    limit, desired, price = wait.numbers["limit"], wait.numbers["desired"], wait.numbers["price"]
    most = f"podBudget comes to {limit} of {pods_text(desired)}, and a change here may take away {price} at once"
    return f"{most}: raise it to at least {price}, or lower maxUnavailable of the workloads"


def _unbounded_pods(wait: Wait) -> str:
    names = [one.key for one in wait.blockers]
    share = f"podBudget cannot bound {_names(names)}: maxUnavailable is a share of pods that only the cluster counts"
    return f"{share}; make it a number, or remove podBudget"


def cut(text: str) -> str:
    """At most so much of what a member says of itself."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _names(clusters: Iterable[str]) -> str:
    found = list(clusters)
    named, more = found[:_NAMED], len(found) - _NAMED
    if more > 0:
        return f"{', '.join(named)} and {more} more"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _have(clusters: Sequence[str]) -> str:
    return "has" if len(clusters) == 1 else "have"
