"""Goals of the third part, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from kedgebench.embedded.part import members_named
from kedgebench.fleet.part import Part, collecting, middle
from kedgebench.fleet.sizes import Sizes
from kedgebench.goals import Verdict

OVERHEAD = 1.2
SECONDS_TO_WORKS = 2.0
SECONDS_TO_AVAILABLE = 6.0
FLAT = 1.25  # times as much per cluster is still called flat: rounds differ by that
MIB = 400.0
SECONDS_TO_CATCH_UP = 15.0


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [*_rolling(part, sizes), *_placing(part, sizes), *_growth(part, sizes), *_standing(part)]


def _rolling(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for collect in sizes.collects:
        name = collecting(collect)
        found = middle(part.of("rolling.overhead"), name)
        if found is not None:
            goal = f"a rolling update over {sizes.real} real members takes at most {OVERHEAD:g} times its critical path"
            yield Verdict(f"{goal}, {name}", f"{found:.2f} times", found <= OVERHEAD)


def _placing(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for key, what, seconds in (
        ("first.works", "every Work made", SECONDS_TO_WORKS),
        ("first.placement", "every member available, and the placement says so", SECONDS_TO_AVAILABLE),
    ):
        found = middle(part.of(key), members_named(sizes.placing))
        if found is not None:
            goal = f"first placement on {sizes.placing} embedded members, {what}, within {seconds:g} s"
            yield Verdict(goal, f"{found:.1f} s", found <= seconds)


def _growth(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    few, many = members_named(sizes.grown[0]), members_named(sizes.grown[-1])
    for measure in part.group("growth"):
        ratio = measure.ratio(many)
        if ratio is not None:
            goal = f"{measure.title}: one of {many} costs at most {FLAT:g} times one of {few}"
            yield Verdict(goal, f"{ratio:.2f} times", ratio <= FLAT)


def _standing(part: Part) -> Iterator[Verdict]:
    for key, what, most, unit in (
        ("peak", "never more than", MIB, "MiB"),
        ("caught_up", "restarted and caught up within", SECONDS_TO_CATCH_UP, "s"),
    ):
        measure = part.of(f"standing.{key}")
        for name, figure in measure or ():
            yield Verdict(
                f"a hub of {name}: {what} {most:g} {unit}", f"{figure.value:.0f} {unit}", figure.value <= most
            )
