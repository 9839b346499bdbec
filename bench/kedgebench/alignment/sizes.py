"""Sizes: how much the sixth part does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """`members` are real control planes, over which `pods` are divided evenly."""

    members: int = 10
    pods: int = 100
    max_unavailable: str = "10%"
    rounds: int = 3
    clusters: int = 100  # of the decision that is timed
    decisions: int = 200


FULL = Sizes()
QUICK = Sizes(members=2, pods=10, max_unavailable="20%", rounds=1, decisions=20)
