"""What is said of the clusters that were picked, and of those that were not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.api.snapshot import ClusterDecision, ClusterScore
from kedge.plan.placing.decisions import (
    Score,
    not_eligible,
    not_found,
    outscored,
    picked,
    picked_by_name,
    score_of,
    unschedulable,
)

SCORE = Score(2, 3, 1, "a")


@pytest.mark.parametrize(
    ("score", "wanted"),
    [
        (None, (0, 0)),
        (ClusterScore(), (0, 0)),
        (ClusterScore(priority_score=5), (5, 0)),
        (ClusterScore(affinity_score=7), (0, 7)),
        (ClusterScore(priority_score=-5, affinity_score=7), (-5, 7)),
    ],
)
def test_a_score_is_read_back_from_a_decision(score: ClusterScore | None, wanted: tuple[int, int]) -> None:
    decision = ClusterDecision(cluster_name="a", selected=True, reason="", cluster_score=score)
    assert score_of(decision) == Score(*wanted, 0, "a")


@pytest.mark.parametrize(
    ("decided", "selected", "score"),
    [
        (lambda: picked(SCORE), True, (2, 3)),
        (lambda: outscored(SCORE), False, (2, 3)),
        (lambda: picked_by_name("a"), True, None),
        (lambda: unschedulable("a", "why"), False, None),
        (lambda: not_eligible("a", "why"), False, None),
        (lambda: not_found("a"), False, None),
    ],
)
def test_a_decision_says_whether_a_cluster_was_picked_and_its_score(
    decided: Callable[[], ClusterDecision], selected: bool, score: tuple[int, int] | None
) -> None:
    decision = decided()
    assert (decision.cluster_name, decision.selected) == ("a", selected)
    kept = decision.cluster_score
    assert (kept and (kept.priority_score, kept.affinity_score)) == score
