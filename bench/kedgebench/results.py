"""Results: what was measured, round by round, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

KEDGE = "kedge"


@dataclass(frozen=True)
class Figure:
    """One measure of one contender over several rounds: its median, and how far the rounds were apart."""

    rounds: tuple[float, ...]

    @property
    def value(self) -> float:
        return median(self.rounds)

    @property
    def spread(self) -> float:
        """Half the distance between the lowest and the highest round, as a part of the median."""
        return (max(self.rounds) - min(self.rounds)) / 2 / self.value if self.value else 0.0


@dataclass(frozen=True)
class Measure:
    """A question asked of several contenders."""

    key: str
    title: str
    unit: str
    base: str = KEDGE
    """The contender that the others are compared to."""
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contender: str, value: float) -> None:
        self.figures.setdefault(contender, []).append(value)

    def of(self, contender: str) -> Figure | None:
        rounds = self.figures.get(contender)
        return Figure(tuple(rounds)) if rounds else None

    def ratio(self, contender: str) -> float | None:
        """How many times what the base needs this contender needs."""
        found, base = self.of(contender), self.of(self.base)
        return found.value / base.value if found and base and base.value else None

    def __iter__(self) -> Iterator[tuple[str, Figure]]:
        return ((contender, Figure(tuple(rounds))) for contender, rounds in self.figures.items())
