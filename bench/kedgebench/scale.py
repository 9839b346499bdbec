"""Scale: how much a run does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The sizes of a run.

    `seconds` are of CPU time, per contender and round; `rate` is of changes a second; `backlog` is how many events wait
    when a contender that stood still goes on: few enough that the server does not give up on it.
    """

    objects: int = 1000
    few: int = 20
    rounds: int = 4
    long_rounds: int = 3
    seconds: float = 0.3
    changes: int = 600
    rate: float = 200.0
    changes_behind: int = 300
    backlog: int = 100
    copies: int = 20
    queue_keys: int = 100_000


FULL = Scale()
QUICK = Scale(
    objects=50,
    few=5,
    rounds=1,
    long_rounds=1,
    seconds=0.1,
    changes=50,
    changes_behind=20,
    backlog=20,
    copies=10,
    queue_keys=10_000,
)
