"""Spread: how evenly picked clusters lie over the values of labels (kubefleet.md §2.5).

Clusters that have the same values in every label that counts are alike to it: they are one domain, and judged once.
Only what one more cluster would change is judged, as the peer does: a fleet that is uneven already stays uneven until
a pick can better it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.scheduling import TopologySpreadConstraint, UnsatisfiableAction

PENALTY: Final = 1000
"""What it costs to break a constraint that may be broken."""

Domain: TypeAlias = tuple[str | None, ...]
"""A cluster's value of each label that counts; None where it has none, which is never wrong."""


class Verdict(Struct, frozen=True):
    """What one more cluster in a domain would do: `broken` is the constraint that forbids it."""

    score: int
    broken: TopologySpreadConstraint | None = None


class Edges(Struct, frozen=True):
    """The least and the most clusters that a value of a label has, and whether one value `alone` has the least."""

    least: int
    most: int
    alone: bool


class Spread:
    """The clusters picked so far, over the domains. `add` counts one more."""

    def __init__(
        self, constraints: Sequence[TopologySpreadConstraint], members: Iterable[MemberCluster], present: Iterable[str]
    ) -> None:
        """`members` are all there are, as every value of a label counts, and `present` those picked already."""
        self._constraints = sorted(constraints, key=_may_be_broken)
        self._counts: list[Counter[str]] = [Counter() for _ in constraints]
        taken = frozenset(present)
        for member in members:
            self._count(self.domain(member), 1 if member.metadata.name in taken else 0)
        self._edges = [_edges(counts) for counts in self._counts]

    def domain(self, member: MemberCluster) -> Domain:
        return tuple(member.metadata.labels.get(each.topology_key) for each in self._constraints)

    def add(self, domain: Domain) -> None:
        """One more cluster was picked here."""
        self._count(domain, 1)
        self._edges = [_edges(counts) for counts in self._counts]

    def judge(self, domain: Domain) -> Verdict:
        """What one more cluster here would do. Those that must hold come first: one of them broken is the end."""
        score = 0
        for constraint, value, counts, edges in zip(self._constraints, domain, self._counts, self._edges, strict=True):
            if value is None:
                continue
            change = _change(counts[value], edges)
            if edges.most - edges.least + change <= constraint.max_skew:
                score -= change
            elif _may_be_broken(constraint):
                score -= PENALTY
            else:
                return Verdict(0, constraint)
        return Verdict(score)

    def _count(self, domain: Domain, more: int) -> None:
        for value, counts in zip(domain, self._counts, strict=True):
            if value is not None:
                counts[value] += more


def _edges(counts: Counter[str]) -> Edges:
    ordered = sorted(counts.values()) or [0]
    return Edges(ordered[0], ordered[-1], alone=len(ordered) < 2 or ordered[1] != ordered[0])


def _change(here: int, edges: Edges) -> int:
    """By how much one more where there are so many changes the skew."""
    if here == edges.most:
        return 1
    return -1 if here == edges.least and edges.alone else 0


def _may_be_broken(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable is UnsatisfiableAction.schedule_anyway
