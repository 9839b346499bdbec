"""Sizes: how much the second part does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """`seconds` are of CPU time of the server, per operation and round; `idle` is in virtual seconds."""

    rounds: int = 3
    seconds: float = 0.4
    objects: int = 500
    watchers: tuple[int, ...] = (1, 10, 100, 1000)
    watchers_https: tuple[int, ...] = (1, 10, 100)
    events: int = 10_000  # told in all for one figure, over all watchers
    most_writes: int = 300
    stored: int = 4000
    few: int = 10
    many: int = 100
    idle: float = 600.0
    releases: int = 1  # after the first
    more_releases: int = 3  # times as many where members are few
    rounds_of_many: int = 2
    first: tuple[int, ...] = (1, 4, 10)
    warm: tuple[int, ...] = (1, 4, 10, 100)


FULL = Sizes()
QUICK = Sizes(
    rounds=1,
    seconds=0.05,
    objects=20,
    watchers=(1, 3),
    watchers_https=(1, 3),
    events=30,
    most_writes=10,
    stored=200,
    few=1,
    many=2,
    idle=120.0,
    releases=1,
    more_releases=1,
    rounds_of_many=1,
    first=(1,),
    warm=(1, 2),
)
