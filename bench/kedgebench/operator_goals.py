"""Goals of a part about an operator: a release by its critical path, an operator at rest, promises kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kedgebench.goals import Verdict
from kedgebench.part import BasePart
from kedgebench.results import KEDGE, Figure

OVERHEAD = 1.2
MIB = 100e6 / 2**20
CPU_AT_REST = 0.6  # seconds in a minute: a hundredth of a core


def release(part: BasePart[Any], what: str) -> Iterator[Verdict]:
    """The overhead of a release."""
    if found := _figure(part, "release.overhead"):
        goal = f"{what} at most {OVERHEAD:g} times the critical path"
        yield Verdict(goal, f"{found.value:.2f} times", found.value <= OVERHEAD)


def rest(part: BasePart[Any], of: str, peak: str) -> Iterator[Verdict]:
    """An operator of so many, at rest; `peak` is the measure of the most memory it took."""
    for key, what, most, unit in (
        (f"rest.{peak}", "never takes more memory than 100 MB", MIB, "MiB"),
        ("promises.writes", "writes nothing at rest", 0.0, "writes"),
        ("rest.idle_cpu", "takes at most a hundredth of a core at rest", CPU_AT_REST, "s in a minute"),
    ):
        if found := _figure(part, key):
            yield Verdict(f"an operator of {of} {what}", f"{found.value:.3g} {unit}", found.value <= most)


def promises(part: BasePart[Any], promised: str) -> Iterator[Verdict]:
    if found := _figure(part, "promises.broken"):
        broken = max(found.rounds)
        yield Verdict(promised, f"broken {broken:.0f} times", not broken)


def _figure(part: BasePart[Any], key: str) -> Figure | None:
    measure = part.of(key)
    return measure.of(KEDGE) if measure is not None else None
