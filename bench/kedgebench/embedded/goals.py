"""Goals of the second part, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from kedgebench.embedded.part import FLEET_OF_THE_GOAL, Part, grown, members_named
from kedgebench.embedded.sizes import Sizes
from kedgebench.goals import Verdict

SECONDS_UNTIL_READY = {"4 members": 3.0, "100 members": 20.0}
SECONDS_PER_DAY = 60.0
LINEAR = 1.2  # times as much as linear growth would be is still called linear: rounds differ by that


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [*_ready(part), *_day(part), *_growth(part, sizes)]


def _ready(part: Part) -> Iterator[Verdict]:
    for when in ("first", "warm"):
        for members, seconds in SECONDS_UNTIL_READY.items():
            found = part.of(f"up-{when}.wall").of(members)
            if found is not None:
                goal = f"`kedge up` with {members} ready within {seconds:g} s, {when} time"
                yield Verdict(goal.replace("warm time", "warm"), f"{found.value:.1f} s", found.value <= seconds)


def _day(part: Part) -> Iterator[Verdict]:
    found = part.of("day.cpu").of(members_named(FLEET_OF_THE_GOAL))
    if found is not None:
        goal = f"24 virtual hours of {FLEET_OF_THE_GOAL} idle members in less than {SECONDS_PER_DAY:g} s of CPU time"
        yield Verdict(goal, f"{found.value:.0f} s, reckoned from a shorter while", found.value < SECONDS_PER_DAY)


def _growth(part: Part, sizes: Sizes) -> Iterator[Verdict]:
    times = sizes.many / sizes.few
    for measure in part.group("growth"):
        ratio = grown(measure, members_named(sizes.few), members_named(sizes.many))
        if ratio is not None:
            goal = f"{measure.title}: {sizes.many} members cost at most {times * LINEAR:.3g} times what {sizes.few} do"
            yield Verdict(goal, f"{ratio:.1f} times", ratio <= times * LINEAR)
