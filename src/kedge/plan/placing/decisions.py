"""Decisions: whether a cluster was picked, in the words that scripts and people know (kubefleet.md §2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kedge.api.snapshot import ClusterDecision, ClusterScore

MOST: Final = 1000
"""How many decisions are kept."""
MOST_UNSELECTED: Final = 20
"""How many of them may be of clusters that were not picked."""


class Score(Struct, frozen=True, order=True):
    """How well a cluster fits. The higher is the better: by spread first, then by affinity, then by having it already.

    Where all are equal the larger name wins: that is part of the contract (kubefleet.md §14, #14).
    """

    spread: int
    affinity: int
    sticky: int
    name: str


def score_of(decision: ClusterDecision) -> Score:
    """The score a cluster was picked by, as far as it is kept."""
    score = decision.cluster_score
    spread, affinity = (score.priority_score or 0, score.affinity_score or 0) if score else (0, 0)
    return Score(spread, affinity, 0, decision.cluster_name)


def picked(score: Score) -> ClusterDecision:
    """This cluster was picked, by its score."""
    reason = f'Successfully scheduled resources for placement in "{score.name}" ({_told(score)}): {_BY_POLICY}'
    return ClusterDecision(cluster_name=score.name, selected=True, reason=reason, cluster_score=_kept(score))


def picked_by_name(name: str) -> ClusterDecision:
    """This cluster was picked because it was named."""
    reason = f'Successfully scheduled resources for placement in "{name}": {_BY_POLICY}'
    return ClusterDecision(cluster_name=name, selected=True, reason=reason)


def outscored(score: Score) -> ClusterDecision:
    """This cluster fits, but others fit better."""
    reason = f'Cluster "{score.name}" does not score high enough ({_told(score)})'
    return ClusterDecision(cluster_name=score.name, selected=False, reason=reason, cluster_score=_kept(score))


def unfit(name: str, why: str) -> ClusterDecision:
    """This cluster does not fit."""
    return ClusterDecision(cluster_name=name, selected=False, reason=f"ClusterUnschedulable, {why}")


def not_eligible(name: str, why: str) -> ClusterDecision:
    """This cluster was named, but cannot take anything."""
    reason = f'Cluster "{name}" is not eligible for resource placement yet: {why}'
    return ClusterDecision(cluster_name=name, selected=False, reason=reason)


def not_found(name: str) -> ClusterDecision:
    """This cluster was named, but there is none of that name."""
    return ClusterDecision(cluster_name=name, selected=False, reason=f'Specified cluster "{name}" is not found')


def kept(selected: Sequence[ClusterDecision], unselected: Sequence[ClusterDecision]) -> tuple[ClusterDecision, ...]:
    """As many decisions as may be kept: those picked first."""
    return (*selected, *unselected[:MOST_UNSELECTED])[:MOST]


_BY_POLICY: Final = "picked by scheduling policy"


def _told(score: Score) -> str:
    return f"affinity score: {score.affinity}, topology spread score: {score.spread}"


def _kept(score: Score) -> ClusterScore:
    return ClusterScore(affinity_score=score.affinity, priority_score=score.spread)
