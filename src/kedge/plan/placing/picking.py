"""Picking: the best so many of the clusters that fit, spread as asked.

Each pick changes how even the next one would be, so they are made one after the other; but all in one go. Clusters of
one domain keep their order among themselves, so only the first of each is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.snapshot import ClusterDecision
from kedge.plan.placing.decisions import MOST_UNSELECTED, Score, outscored, picked, unfit
from kedge.plan.placing.spread import Domain, Spread, Verdict


class Candidate(Struct, frozen=True, order=True):
    """A cluster that fits, by how much it is liked before spreading."""

    affinity: int
    sticky: int
    name: str

    def scored(self, spread: int) -> Score:
        return Score(spread, self.affinity, self.sticky, self.name)


class Picks(Struct, frozen=True):
    """What became of the candidates: the picked in their order, and of the others, best first, those told."""

    selected: tuple[ClusterDecision, ...] = ()
    outscored: tuple[ClusterDecision, ...] = ()
    uneven: tuple[ClusterDecision, ...] = ()
    """Those whose pick would break a constraint, by name."""


def pick(candidates: Iterable[tuple[Candidate, MemberCluster]], wanted: int, spread: Spread) -> Picks:
    """The best `wanted` candidates."""
    lines: dict[Domain, list[Candidate]] = {}
    for candidate, member in candidates:
        lines.setdefault(spread.domain(member), []).append(candidate)
    for line in lines.values():
        line.sort()
    selected = tuple(picked(score) for score in _best(lines, wanted, spread))
    return _with_rest(selected, lines, spread)


def _best(lines: dict[Domain, list[Candidate]], wanted: int, spread: Spread) -> Iterable[Score]:
    """The best candidate there is, as often as wanted; takes each out of its line."""
    for _ in range(wanted):
        heads = [(line[-1].scored(verdict.score), domain) for domain, line, verdict in _open(lines, spread)]
        if not heads:
            return
        score, domain = max(heads, key=lambda head: head[0])
        lines[domain].pop()
        spread.add(domain)
        yield score


def _open(lines: dict[Domain, list[Candidate]], spread: Spread) -> Iterable[tuple[Domain, list[Candidate], Verdict]]:
    """The lines in which someone waits who may be picked."""
    judged = ((domain, line, spread.judge(domain)) for domain, line in lines.items() if line)
    return [each for each in judged if each[2].broken is None]


def _with_rest(selected: tuple[ClusterDecision, ...], lines: dict[Domain, list[Candidate]], spread: Spread) -> Picks:
    worse: list[Score] = []
    uneven: list[ClusterDecision] = []
    for domain, line in lines.items():
        verdict = spread.judge(domain)
        if verdict.broken is None:
            worse += [Score(verdict.score, each.affinity, 0, each.name) for each in line]
        else:
            limit = f'"{verdict.broken.topology_key}" (max skew {verdict.broken.max_skew})'
            uneven += [unfit(candidate.name, f"violated topology spread constraint {limit}") for candidate in line]
    told = nlargest(MOST_UNSELECTED, worse)
    by_name = sorted(uneven, key=lambda decision: decision.cluster_name)[:MOST_UNSELECTED]
    return Picks(selected, tuple(outscored(score) for score in told), tuple(by_name))
