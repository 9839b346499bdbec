"""Sizes: how much the third part does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """`real` members take about half a gigabyte each, and `rounds` of updates go over them."""

    real: int = 10
    max_unavailable: str = "20%"
    rounds: int = 3
    collects: tuple[float | None, ...] = (None, 0.0)  # seconds; None is what a hub does unless told
    placing: int = 100
    placing_rounds: int = 3
    grown: tuple[int, ...] = (10, 100, 1000)
    standing: int = 1000
    runs: int = 100  # at once, over as many members as there are `standing`
    previewed: tuple[int, ...] = (100, 1000)
    placements: int = 20
    idle: float = 60.0


FULL = Sizes()
QUICK = Sizes(
    real=3,
    max_unavailable="50%",
    rounds=1,
    collects=(0.0,),
    placing=5,
    placing_rounds=1,
    grown=(2, 4),
    standing=10,
    runs=2,
    previewed=(5, 10),
    placements=2,
    idle=1.0,
)
