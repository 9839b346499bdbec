"""Goals of the third part, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from kedgebench.embedded.part import members_named
from kedgebench.fleet.part import PREVIEWS, Part, collecting, middle
from kedgebench.fleet.sizes import Sizes
from kedgebench.goals import Verdict

OVERHEAD = 1.2
SECONDS_TO_WORKS = 2.0
SECONDS_TO_AVAILABLE = 6.0
FLAT = 1.25  # times as much per cluster is still called flat: rounds differ by that
MIB = 400.0
SECONDS_TO_CATCH_UP = 15.0
SECONDS_FOR_STAGES = 5.0
SECONDS_FOR_PREVIEWS = (10.0, 90.0)
UNDELAYED = 1.2  # times as long as alone is still not delayed by others, on two cores


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [
        *_rolling(part, sizes),
        *_staged(part, sizes),
        *_placing(part, sizes),
        *_runs(part, sizes),
        *_previews(part, sizes),
        *_growth(part, sizes),
        *_standing(part),
    ]


def _rolling(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for collect in sizes.collects:
        name = collecting(collect)
        found = middle(part.of("rolling.overhead"), name)
        if found is not None:
            goal = f"a rolling update over {sizes.real} real members takes at most {OVERHEAD:g} times its critical path"
            yield Verdict(f"{goal}, {name}", f"{found:.2f} times", found <= OVERHEAD)


def _staged(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    found = middle(part.of("staged.overhead"), members_named(sizes.real))
    if found is not None:
        goal = f"a staged run over {sizes.real} real members takes at most {OVERHEAD:g} times its critical path"
        yield Verdict(goal, f"{found:.2f} times", found <= OVERHEAD)
    took = middle(part.of("stages.ConfigMap"), members_named(sizes.placing))
    if took is not None:
        goal = (
            f"a staged run over {sizes.placing} embedded members, nothing to wait for, within {SECONDS_FOR_STAGES:g} s"
        )
        yield Verdict(goal, f"{took:.1f} s", took <= SECONDS_FOR_STAGES)


def _runs(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    name = f"{sizes.runs} runs, {sizes.standing} members"
    alone, longest = middle(part.of("runs.alone"), name), middle(part.of("runs.longest"), name)
    if alone is not None and longest is not None:
        goal = f"of {sizes.runs} runs at once none takes more than {UNDELAYED:g} times one alone"
        yield Verdict(goal, f"{longest / alone:.2f} times", longest <= UNDELAYED * alone)


def _previews(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    for members, seconds in zip(sizes.previewed, SECONDS_FOR_PREVIEWS, strict=True):
        for case, title in PREVIEWS.items():
            found = middle(part.of(f"preview.{case}"), members_named(members))
            if found is not None:
                goal = f"a preview of {members} clusters, {title}, within {seconds:g} s"
                yield Verdict(goal, f"{found:.1f} s", found <= seconds)


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
