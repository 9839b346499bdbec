"""Decisions: whether a cluster was picked and why, in KubeFleet's words, which scripts look for (kubefleet.md §2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kedge.api.snapshot import ClusterDecision, ClusterScore

MAX_DECISIONS: Final = 1000
"""How many decisions are kept."""
MAX_UNSELECTED: Final = 20
"""How many of them may be of clusters that were not picked."""


class Score(Struct, frozen=True, order=True):
    """How well a cluster fits. Higher is better: by spread, then affinity, then whether it has the resources.

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
    reason = f'Successfully scheduled resources for placement in "{score.name}" ({_score_text(score)}): {_BY_POLICY}'
    return ClusterDecision(cluster_name=score.name, selected=True, reason=reason, cluster_score=_cluster_score(score))


def picked_by_name(name: str) -> ClusterDecision:
    """This cluster was picked because it was named."""
    reason = f'Successfully scheduled resources for placement in "{name}": {_BY_POLICY}'
    return ClusterDecision(cluster_name=name, selected=True, reason=reason)


def outscored(score: Score) -> ClusterDecision:
    """This cluster fits, but others fit better."""
    reason = f'Cluster "{score.name}" does not score high enough ({_score_text(score)})'
    return ClusterDecision(cluster_name=score.name, selected=False, reason=reason, cluster_score=_cluster_score(score))


def unschedulable(name: str, why: str) -> ClusterDecision:
    """This cluster does not fit."""
    return ClusterDecision(cluster_name=name, selected=False, reason=f"ClusterUnschedulable, {why}")


def not_eligible(name: str, why: str) -> ClusterDecision:
    """This cluster was named, but cannot take anything."""
    reason = f'Cluster "{name}" is not eligible for resource placement yet: {why}'
    return ClusterDecision(cluster_name=name, selected=False, reason=reason)


def not_found(name: str) -> ClusterDecision:
    """This cluster was named, but there is none of that name."""
    return ClusterDecision(cluster_name=name, selected=False, reason=f'Specified cluster "{name}" is not found')


def limited_decisions(
    selected: Sequence[ClusterDecision], unselected: Sequence[ClusterDecision]
) -> tuple[ClusterDecision, ...]:
    """The decisions that a status holds: those of picked clusters first, up to the limits."""
    return (*selected, *unselected[:MAX_UNSELECTED])[:MAX_DECISIONS]


_BY_POLICY: Final = "picked by scheduling policy"


def _score_text(score: Score) -> str:
    return f"affinity score: {score.affinity}, topology spread score: {score.spread}"


def _cluster_score(score: Score) -> ClusterScore:
    return ClusterScore(affinity_score=score.affinity, priority_score=score.spread)
