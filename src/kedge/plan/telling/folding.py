"""Folding: a story cut to as many lines as there is room for; what does not work is kept longest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.state import State
from kedge.plan.telling.places import Place
from kedge.plan.telling.story import Story


class Folded(Struct, frozen=True):
    """The clusters to show, and of those left out how many are in which state."""

    places: tuple[Place, ...]
    left_out: Mapping[State, int]


def fold(story: Story, lines: int | None) -> Folded:
    """First go the objects that are well, then the clusters that are, then whatever does not fit."""
    room = None if lines is None else lines - 1 - len(story.unpicked) - len(story.passed_over)
    places = story.places
    if room is not None and _lines(places) > room:
        places = tuple(_without_what_is_well(place) for place in places)
    if room is None or _lines(places) <= room:
        return Folded(places, {})
    kept = _as_many_as_fit(sorted(places, key=_is_well), room - len(State))
    names = {place.cluster for place in kept}
    return Folded(kept, Counter(place.state for place in places if place.cluster not in names))


def _lines(places: Sequence[Place]) -> int:
    return sum(1 + len(place.things) for place in places)


def _without_what_is_well(place: Place) -> Place:
    return replace(place, things=tuple(thing for thing in place.things if thing.state is not State.available))


def _is_well(place: Place) -> bool:
    return place.state is State.available


def _as_many_as_fit(places: Sequence[Place], room: int) -> tuple[Place, ...]:
    """At least one, whatever the room."""
    kept: list[Place] = []
    for place in places:
        if kept and _lines([*kept, place]) > room:
            break
        kept.append(place)
    return tuple(kept)
