"""Sizes: how much the fifth part does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """`pods` are those of the Deployment that is released, in so many `batches`."""

    pods: int = 100
    batches: int = 10
    releases: int = 3  # of each contender
    rollouts: int = 100
    rollout_pods: int = 2  # of each of those, in as many batches
    settle: float = 15.0  # seconds until an operator counts as at rest
    idle: float = 60.0

    @property
    def at_once(self) -> int:
        """The pods of one batch."""
        return self.pods // self.batches


FULL = Sizes()
QUICK = Sizes(pods=12, batches=3, releases=1, rollouts=3, settle=3.0, idle=5.0)
