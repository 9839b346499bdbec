"""Record: what became of each test in one run of pytest, kept in one file.

Promises that a file that is there is whole, and of a run that came to its end: it appears at once, and last. A run that
was killed leaves none. Reading refuses what is not such a file by giving nothing back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """What became of one test. One that is expected to fail, and does, counts as skipped."""

    id: str
    outcome: Outcome
    real: bool
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """What became of one run of pytest."""

    exit_status: int
    seed: int | None
    collected: tuple[str, ...]
    deselected: tuple[str, ...]
    left_out: tuple[str, ...]
    """What was deselected as it should be: slow, or on the real control plane and not in every run."""
    broken: tuple[str, ...]
    """What went wrong outside of any test: a worker that crashed, a file that could not be imported."""
    results: tuple[Result, ...]

    def that_are(self, outcome: Outcome) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.outcome == outcome)

    @property
    def passed(self) -> tuple[Result, ...]:
        return self.that_are("passed")

    @property
    def failed(self) -> tuple[Result, ...]:
        return self.that_are("failed")

    @property
    def skipped(self) -> tuple[Result, ...]:
        return self.that_are("skipped")


def write(run: Run, file: Path) -> None:
    """Make the file appear, whole."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.write_text(json.dumps(asdict(run)), encoding="utf-8")
    unfinished.replace(file)


def read(file: Path) -> Run | None:
    """The run that a file tells of; nothing if there is no such file, or not a whole one."""
    try:
        return _run(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _run(read: dict[str, object]) -> Run:
    return Run(
        exit_status=_integer(read["exit_status"]),
        seed=None if read["seed"] is None else _integer(read["seed"]),
        collected=_texts(read["collected"]),
        deselected=_texts(read["deselected"]),
        left_out=_texts(read["left_out"]),
        broken=_texts(read["broken"]),
        results=tuple(Result(**result) for result in _list(read["results"])),  # type: ignore[arg-type]
    )


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(text) for text in _list(value))


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value
