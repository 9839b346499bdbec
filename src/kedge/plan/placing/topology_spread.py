"""Topology spread: the best N of the clusters that match, spread evenly over the values of labels (kubefleet.md §2.5).

Clusters with the same values of every label that counts are one domain, and are judged together. Only what one more
cluster would change is judged, as KubeFleet does: a fleet that is uneven already stays uneven until a pick improves it.

Each pick changes how even the next one would be, so clusters are picked one after the other. Clusters of one domain
keep their order among themselves, so only the best of each domain is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.scheduling import TopologySpreadConstraint, UnsatisfiableAction
from kedge.api.snapshot import ClusterDecision
from kedge.plan.placing.decisions import MAX_UNSELECTED, Score, outscored, picked, unschedulable

VIOLATION_PENALTY: Final = 1000
"""What it costs to violate a soft constraint."""

Domain: TypeAlias = tuple[str | None, ...]
"""A cluster's value of each topology key; None where it has no such label, which violates nothing."""


class SpreadImpact(Struct, frozen=True):
    """What one more cluster in a domain would do. `violated` is the constraint that forbids it."""

    score: int
    violated: TopologySpreadConstraint | None = None


class SkewBounds(Struct, frozen=True):
    """The least and the most clusters that a value of a label has, and whether a single value has the least."""

    least: int
    most: int
    single_least: bool


class TopologySpread:
    """How many picked clusters each domain has. `add` counts one more."""

    def __init__(
        self, constraints: Sequence[TopologySpreadConstraint], members: Iterable[MemberCluster], present: Iterable[str]
    ) -> None:
        """`members` are all there are, as every value of a label counts, and `present` those picked already."""
        self._constraints = sorted(constraints, key=_is_soft)
        self._counts: list[Counter[str]] = [Counter() for _ in constraints]
        taken = frozenset(present)
        for member in members:
            self._count(self.domain(member), 1 if member.metadata.name in taken else 0)
        self._bounds = [_skew_bounds(counts) for counts in self._counts]

    def domain(self, member: MemberCluster) -> Domain:
        return tuple(member.metadata.labels.get(each.topology_key) for each in self._constraints)

    def add(self, domain: Domain) -> None:
        """Count one more picked cluster in this domain."""
        self._count(domain, 1)
        self._bounds = [_skew_bounds(counts) for counts in self._counts]

    def impact_of(self, domain: Domain) -> SpreadImpact:
        """What one more cluster here would do. Hard constraints come first: one that is violated decides."""
        score = 0
        for constraint, value, counts, bounds in zip(
            self._constraints, domain, self._counts, self._bounds, strict=True
        ):
            if value is None:
                continue
            change = _skew_change(counts[value], bounds)
            if bounds.most - bounds.least + change <= constraint.max_skew:
                score -= change
            elif _is_soft(constraint):
                score -= VIOLATION_PENALTY
            else:
                return SpreadImpact(0, constraint)
        return SpreadImpact(score)

    def _count(self, domain: Domain, more: int) -> None:
        for value, counts in zip(domain, self._counts, strict=True):
            if value is not None:
                counts[value] += more


def _skew_bounds(counts: Counter[str]) -> SkewBounds:
    ordered = sorted(counts.values()) or [0]
    return SkewBounds(ordered[0], ordered[-1], single_least=len(ordered) < 2 or ordered[1] != ordered[0])


def _skew_change(here: int, bounds: SkewBounds) -> int:
    """By how much one more cluster changes the skew, where there are `here` clusters already."""
    if here == bounds.most:
        return 1
    return -1 if here == bounds.least and bounds.single_least else 0


def _is_soft(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable is UnsatisfiableAction.schedule_anyway


# Picking


class ScoredCluster(Struct, frozen=True, order=True):
    """A cluster that matches, with its scores before spreading."""

    affinity: int
    sticky: int
    name: str

    def scored(self, spread: int) -> Score:
        return Score(spread, self.affinity, self.sticky, self.name)


class PickResult(Struct, frozen=True):
    """The clusters that were picked, in order, and the decisions that are reported of the others, best first."""

    selected: tuple[ClusterDecision, ...] = ()
    outscored: tuple[ClusterDecision, ...] = ()
    violating: tuple[ClusterDecision, ...] = ()
    """Those whose pick would violate a hard constraint, by name."""


def pick_best(
    candidates: Iterable[tuple[ScoredCluster, MemberCluster]], wanted: int, spread: TopologySpread
) -> PickResult:
    """The best `wanted` candidates."""
    by_domain: dict[Domain, list[ScoredCluster]] = {}
    for candidate, member in candidates:
        by_domain.setdefault(spread.domain(member), []).append(candidate)
    for clusters in by_domain.values():
        clusters.sort()
    scores: list[Score] = []
    impacts = {domain: spread.impact_of(domain) for domain in by_domain}
    for _ in range(wanted):
        impacts = {domain: spread.impact_of(domain) for domain in by_domain}
        if (found := _best(by_domain, impacts)) is None:
            break
        score, domain = found
        by_domain[domain].pop()
        spread.add(domain)
        scores.append(score)
    return _with_rest(tuple(picked(score) for score in scores), by_domain, impacts)


def _best(
    by_domain: Mapping[Domain, list[ScoredCluster]], impacts: Mapping[Domain, SpreadImpact]
) -> tuple[Score, Domain] | None:
    """The best candidate that may be picked, and where."""
    best_of_each = [
        (clusters[-1].scored(impacts[domain].score), domain)
        for domain, clusters in by_domain.items()
        if clusters and impacts[domain].violated is None
    ]
    return max(best_of_each, key=lambda each: each[0], default=None)


def _with_rest(
    selected: tuple[ClusterDecision, ...],
    by_domain: Mapping[Domain, list[ScoredCluster]],
    impacts: Mapping[Domain, SpreadImpact],
) -> PickResult:
    """With the decisions for the others, as they were scored when the last cluster was picked."""
    others: list[Score] = []
    violating: list[ClusterDecision] = []
    for domain, clusters in by_domain.items():
        impact = impacts[domain]
        if impact.violated is None:
            others += [Score(impact.score, each.affinity, 0, each.name) for each in clusters]
        else:
            limit = f'"{impact.violated.topology_key}" (max skew {impact.violated.max_skew})'
            violating += [
                unschedulable(candidate.name, f"violated topology spread constraint {limit}") for candidate in clusters
            ]
    best_others = nlargest(MAX_UNSELECTED, others)
    by_name = sorted(violating, key=lambda decision: decision.cluster_name)[:MAX_UNSELECTED]
    return PickResult(selected, tuple(outscored(score) for score in best_others), tuple(by_name))
