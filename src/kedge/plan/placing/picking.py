"""Picking: the best so many of the clusters that fit, spread as asked.

Each pick changes how even the next one would be, so they are made one after the other; but all in one go. Clusters of
one domain keep their order among themselves, so only the first of each is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    best: list[Score] = []
    verdicts = {domain: spread.judge(domain) for domain in lines}
    for _ in range(wanted):
        verdicts = {domain: spread.judge(domain) for domain in lines}
        if (head := _best(lines, verdicts)) is None:
            break
        score, domain = head
        lines[domain].pop()
        spread.add(domain)
        best.append(score)
    return _with_rest(tuple(picked(score) for score in best), lines, verdicts)


def _best(lines: Mapping[Domain, list[Candidate]], verdicts: Mapping[Domain, Verdict]) -> tuple[Score, Domain] | None:
    """The best candidate that may be picked, and where."""
    heads = [
        (line[-1].scored(verdicts[domain].score), domain)
        for domain, line in lines.items()
        if line and verdicts[domain].broken is None
    ]
    return max(heads, key=lambda head: head[0], default=None)


def _with_rest(
    selected: tuple[ClusterDecision, ...],
    lines: Mapping[Domain, list[Candidate]],
    verdicts: Mapping[Domain, Verdict],
) -> Picks:
    """With what is told of the others: how they stood when the last cluster was picked."""
    worse: list[Score] = []
    uneven: list[ClusterDecision] = []
    for domain, line in lines.items():
        verdict = verdicts[domain]
        if verdict.broken is None:
            worse += [Score(verdict.score, each.affinity, 0, each.name) for each in line]
        else:
            limit = f'"{verdict.broken.topology_key}" (max skew {verdict.broken.max_skew})'
            uneven += [unfit(candidate.name, f"violated topology spread constraint {limit}") for candidate in line]
    told = nlargest(MOST_UNSELECTED, worse)
    by_name = sorted(uneven, key=lambda decision: decision.cluster_name)[:MOST_UNSELECTED]
    return Picks(selected, tuple(outscored(score) for score in told), tuple(by_name))
