"""Floor: how many tests must at least pass in a run, so that tests cannot get lost unnoticed.

The numbers are in the file `floor` beside this module, and are read by `.ci/run`: all tests, and those of them on the
real control plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("floor")


@dataclass(frozen=True)
class Floor:
    """The least number of tests."""

    all: int
    real: int


def read(file: Path = FILE) -> Floor:
    lines = [
        line.split() for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    numbers = {name: int(number) for name, number in lines}
    return Floor(**numbers)
