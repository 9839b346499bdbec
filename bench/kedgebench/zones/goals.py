"""Goals of the fourth part, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from kedgebench.goals import Verdict
from kedgebench.results import Figure
from kedgebench.zones.part import KEDGE, Part
from kedgebench.zones.sizes import ZONES, Sizes

OVERHEAD = 1.2
MIB = 100e6 / 2**20
CPU_AT_REST = 0.6  # seconds in a minute: a hundredth of a core


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [*_release(part, sizes), *_rest(part, sizes), *_promises(part)]


def _release(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    if found := _figure(part, "release.overhead"):
        goal = f"a release of {ZONES} zones of {sizes.pods} pods takes at most {OVERHEAD:g} times its critical path"
        yield Verdict(goal, f"{found.value:.2f} times", found.value <= OVERHEAD)


def _rest(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for key, what, most, unit in (
        ("rest.peak", "never takes more memory than 100 MB", MIB, "MiB"),
        ("promises.writes", "writes nothing at rest", 0.0, "writes"),
        ("rest.idle_cpu", "takes at most a hundredth of a core at rest", CPU_AT_REST, "s in a minute"),
    ):
        if found := _figure(part, key):
            yield Verdict(
                f"an operator of {sizes.groups} groups {what}", f"{found.value:.3g} {unit}", found.value <= most
            )


def _promises(part: Part) -> Iterator[Verdict]:
    if found := _figure(part, "promises.broken"):
        broken = max(found.rounds)
        yield Verdict(
            "pods of one zone at a time, and never too many of them", f"broken {broken:.0f} times", not broken
        )


def _figure(part: Part, key: str) -> Figure | None:
    measure = part.of(key)
    return measure.of(KEDGE) if measure is not None else None
