"""Sizes: how much the fourth part does."""

from __future__ import annotations

from dataclasses import dataclass

ZONES = 3


@dataclass(frozen=True)
class Sizes:
    """`pods` are those of one zone of the group that is released; `at_once` of them may be unavailable."""

    pods: int = 10
    at_once: int = 2
    releases: int = 3
    waves: int = 4  # by hand, before each release and after the last
    groups: int = 50
    group_pods: int = 2  # of one zone of each of those groups
    settle: float = 15.0  # seconds until an operator counts as at rest
    idle: float = 60.0


FULL = Sizes()
QUICK = Sizes(pods=4, releases=1, waves=2, groups=3, settle=3.0, idle=5.0)
