"""Part: what every part of the benchmark has: sizes, progress, and the measures and notes it collects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from kedgebench.progress import Progress
from kedgebench.results import Measure

S = TypeVar("S")


class BasePart(ABC, Generic[S]):
    """One run of a part. `notes` are what a reader of the numbers must know besides."""

    name: ClassVar[str]
    """What the keys of its measures begin with."""

    def __init__(self, sizes: S, progress: Progress) -> None:
        self._sizes = sizes
        self._progress = progress
        self.notes: list[str] = []
        self.measures: dict[str, Measure] = {}

    @abstractmethod
    async def everything(self) -> None:
        """Every question, in turn."""

    def group(self, prefix: str) -> list[Measure]:
        """The measures whose keys begin so, in the order they were taken."""
        return [measure for key, measure in self.measures.items() if key.startswith(f"{self.name}.{prefix}.")]

    def of(self, key: str) -> Measure | None:
        return self.measures.get(f"{self.name}.{key}")

    def _measure(self, key: str, title: str, unit: str, base: str = "") -> Measure:
        key = f"{self.name}.{key}"
        return self.measures.setdefault(key, Measure(key, title, unit, base) if base else Measure(key, title, unit))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
