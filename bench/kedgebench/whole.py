"""Whole: a part from beginning to end, printed, and as data in the form of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kedgebench import machine
from kedgebench.goals import Verdict
from kedgebench.part import BasePart
from kedgebench.progress import Progress
from kedgebench.report import data

S = TypeVar("S")
P = TypeVar("P", bound=BasePart[Any])


@dataclass(frozen=True)
class Whole(Generic[S, P]):
    """What a part consists of."""

    full: S
    quick: S
    part: Callable[[S, Progress], P]
    judge: Callable[[P, S], Iterable[Verdict]]
    text: Callable[[Mapping[str, Any], P, S, Iterable[Verdict]], str]

    async def measure(self, about: Mapping[str, Any], progress: Progress, *, quick: bool) -> dict[str, Any]:
        """Measure, print, and give the numbers."""
        sizes = self.quick if quick else self.full
        part, begun = self.part(sizes, progress), progress.elapsed
        before = machine.load()
        await part.everything()
        progress.end()
        if quick:
            part.notes.append("a quick run: too short to believe any of it")
        found = {**about, "load_before": before, "load": machine.load(), "seconds": round(progress.elapsed - begun)}
        verdicts = list(self.judge(part, sizes))
        print(f"\n{self.text(found, part, sizes, verdicts)}", flush=True)
        return data(found, part.measures, verdicts, part.notes)
