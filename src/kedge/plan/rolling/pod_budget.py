"""Pod budget: how many pods a placement's changes may take away at once, over all its clusters.

A cluster is charged when it is moved, with as many pods as its workloads may lack while they replace them, and credited
when it has proven itself. The charge is kept with the binding that is moved, in the same write. A cluster that has not
proven itself and has no charge lost its pods by itself: as long as it says no better, all of them count, and if nobody
knows how many they are, they are the whole budget. Clusters that are added lose nobody's pods, and clusters that are no
longer wanted count no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kedge.api.fleet import PODS_CHARGED
from kedge.api.numbers import IntOrPercent, resolve
from kedge.api.placement import PlacementSpec
from kedge.api.placement_kinds import Binding
from kedge.plan.moving.allowance import Allowance
from kedge.plan.rolling.pod_counts import PodCounts
from kedge.plan.rolling.readiness import BindingFacts


class PodBudget(Struct, frozen=True):
    """The budget of one placement, in pods."""

    limit: int
    desired: int
    """How many pods all clusters are to run."""
    wanted: PodCounts
    known: Mapping[str, PodCounts]
    """The counts of revisions, by the name of their first snapshot."""

    def allowance(self, clusters: Iterable[BindingFacts]) -> Allowance:
        """What is held and what moving costs, of the bindings that count for their clusters."""
        counted = [one for one in clusters if one.is_picked and not one.is_deleting]
        prices = {one.name: max(0, self.charge(one) - self.held(one)) for one in counted if one.holds}
        return Allowance(self.limit, {one.cluster: held for one in counted if (held := self.held(one))}, prices)

    def held(self, one: BindingFacts) -> int:
        """How many pods may be lacking on a cluster now."""
        if one.is_available or not one.holds:
            return 0
        charged = charge_of(one.binding)
        if charged is not None:
            return charged
        before = self._before(one)
        pods = max(self.wanted.pods, before.pods if before is not None else 0)
        return max(pods, self.limit) if (before or self.wanted).is_uncounted else pods

    def charge(self, one: BindingFacts) -> int:
        """How many pods may be lacking on a cluster once it is moved. One that had nothing loses nothing."""
        if not one.holds:
            return 0
        return max(self.held(one), self.wanted.takes_after(self._before(one)))

    def unbounded(self, one: BindingFacts) -> tuple[str, ...]:
        """The workloads for which nobody can say how many pods moving a cluster takes away; none if all its pods count
        already.
        """
        lost_all = not one.is_available and charge_of(one.binding) is None
        return () if not one.holds or lost_all else self.wanted.unbounded_after(self._before(one))

    def is_too_small(self, one: BindingFacts) -> bool:
        """Whether a cluster could not be moved even if it were the only one."""
        return self.charge(one) > max(self.limit, self.held(one))

    def _before(self, one: BindingFacts) -> PodCounts | None:
        """The counts of what a cluster has been given, if they are known."""
        return self.known.get(one.binding.spec.resource_snapshot_name)


def given_budget(spec: PlacementSpec) -> IntOrPercent | None:
    """The budget as its user wrote it; None if there is none."""
    rolling = spec.strategy.rolling_update if spec.strategy is not None else None
    return rolling.pod_budget if rolling is not None else None


def pod_budget(
    given: IntOrPercent, wanted: PodCounts, known: Mapping[str, PodCounts], clusters: Iterable[BindingFacts]
) -> PodBudget:
    """What a budget comes to for these clusters. Raises ValueError if it is neither a number nor a percentage."""
    desired = wanted.pods * sum(one.is_picked and not one.is_deleting for one in clusters)
    return PodBudget(max(1, resolve(given, desired, round_up=False)), desired, wanted, known)


def charge_of(binding: Binding) -> int | None:
    """What a binding was charged when it was moved; None if nothing is known of it."""
    found = binding.metadata.annotations.get(PODS_CHARGED, "")
    return int(found) if found.isascii() and found.isdecimal() else None
