"""Goals of the fifth part, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from kedgebench.batches.part import KEDGE, Part
from kedgebench.batches.sizes import Sizes
from kedgebench.goals import Verdict
from kedgebench.results import Figure

OVERHEAD = 1.2
MIB = 100e6 / 2**20
CPU_AT_REST = 0.6  # seconds in a minute: a hundredth of a core


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [*_release(part, sizes), *_rest(part, sizes), *_promises(part)]


def _release(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    if found := _figure(part, "release.overhead"):
        goal = f"{sizes.pods} pods in {sizes.batches} batches take at most {OVERHEAD:g} times their critical path"
        yield Verdict(goal, f"{found.value:.2f} times", found.value <= OVERHEAD)


def _rest(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for key, what, most, unit in (
        ("rest.start_peak", "never takes more memory than 100 MB", MIB, "MiB"),
        ("promises.writes", "writes nothing at rest", 0.0, "writes"),
        ("rest.idle_cpu", "takes at most a hundredth of a core at rest", CPU_AT_REST, "s in a minute"),
    ):
        if found := _figure(part, key):
            yield Verdict(
                f"an operator of {sizes.rollouts} rollouts {what}", f"{found.value:.3g} {unit}", found.value <= most
            )


def _promises(part: Part) -> Iterator[Verdict]:
    if found := _figure(part, "promises.broken"):
        broken = max(found.rounds)
        yield Verdict("never too few pods, and never too many", f"broken {broken:.0f} times", not broken)


def _figure(part: Part, key: str) -> Figure | None:
    measure = part.of(key)
    return measure.of(KEDGE) if measure is not None else None
