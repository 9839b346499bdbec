"""Phrases: a placement, a cluster and an object in a line; the whole in sentences, or cut to so many lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.placed_objects import PlacedObject
from kedge.plan.explaining.story import Story
from kedge.plan.state import State
from kedge.plan.text import counted, listed, of_all

_QUEUED = (State.waiting, State.next)
"""Where what there is on a cluster is not what is rolled out."""


def summary(story: Story) -> str:
    """A placement in a line; why it is not done only where no cluster will say so."""
    is_told = any(place.state is not State.available for place in story.places) or story.unpicked
    why = "" if story.is_done or story.state is State.paused or (is_told and not _is_deleted(story)) else story.why
    return ": ".join(part for part in (f"{_clusters_text(story)}{_held_text(story)}", why) if part)


def _clusters_text(story: Story) -> str:
    if not story.wanted:
        return "on no cluster"
    if not story.index:
        return f"on {of_all(story.up, story.wanted, 'cluster')}"
    if story.done == story.wanted:
        return f"revision {story.index}, available on {of_all(story.done, story.wanted, 'cluster')}"
    on = of_all(story.updated, story.wanted, "cluster")
    return f"revision {story.index} on {on}, {story.up} of {story.wanted} available"


def _is_deleted(story: Story) -> bool:
    return story.state is State.leaving


def _held_text(story: Story) -> str:
    return (", rolled back" if story.pinned else "") + (", paused" if story.is_paused else "")


def separate_doubt(story: Story) -> str:
    """Why what is told may be old, where the story itself does not say so already."""
    return "" if story.doubt == story.why else story.doubt


def state_text(story: Story) -> str:
    """Where a placement stands in a few words, also whether it is held."""
    held = _held_text(story)
    return f"{story.state}{held.removesuffix(', paused') if story.state is State.paused else held}"


def of_place(place: ClusterPlace, *, many: bool = False) -> str:
    """A cluster's part in it; what its objects say is left to them."""
    told = [_has(place), _does(place, many=many)]
    why = "" if place.state is State.available or _is_told_by_things(place) else place.why
    return ": ".join(part for part in (", ".join(word for word in told if word), why) if part)


def _has(place: ClusterPlace) -> str:
    return f"revision {place.index}" if place.index else ""


def _does(place: ClusterPlace, *, many: bool) -> str:
    match place.state:
        case State.available:
            return "available" if not place.index else ""
        case State.moving:
            return "not available yet"
        case State.waiting:
            return _standing(place) + ("wait" if many else "waits")
        case State.next:
            return _standing(place) + ("are next" if many else "is next")
        case State.unknown:
            return "not known whether available"
        case State.leaving:
            return "to be cleared"
        case other:
            return str(other)


def _standing(place: ClusterPlace) -> str:
    """How it is with the revision that it still has."""
    if place.is_up or not place.index:
        return ""
    return "not available, and " if place.is_down else "not known whether available, and "


def _is_told_by_things(place: ClusterPlace) -> bool:
    return place.state not in _QUEUED and any(thing.why for thing in place.things if thing.state is not State.available)


def of_thing(thing: PlacedObject) -> str:
    """What is said of an object, without saying again which it is."""
    failed = "failed" if thing.state is State.failed else ""
    why = thing.why.removeprefix(thing.what).lstrip(": ")
    return ": ".join(part for part in (failed, why) if part)


def explained(story: Story) -> list[str]:
    """Why everything is where it is: a sentence for all clusters of which the same is to be said."""
    lines = [f"{story.title}: {summary(story)}"]
    for _, same in groupby(sorted(story.places, key=_grouping_key), key=_grouping_key):
        lines += _sentences(list(same))
    lines += [f"no cluster: {why}" for why in (*story.unpicked, *story.passed_over)]
    lines += [doubt] if (doubt := separate_doubt(story)) else []
    return [*lines, *_advice(story)]


def explained_place(place: ClusterPlace) -> list[str]:
    """Everything about one cluster."""
    return [f"{place.cluster}: {of_place(place)}", *(_of_thing_there(thing) for thing in place.things)]


def _sentences(places: list[ClusterPlace]) -> list[str]:
    first = places[0]
    who = listed((place.cluster for place in places), most=10)
    bad = [thing for thing in first.things if thing.state is not State.available and first.state not in _QUEUED]
    return [f"{who}: {of_place(first, many=len(places) > 1)}", *map(_of_thing_there, bad)]


def _grouping_key(place: ClusterPlace) -> tuple[object, ...]:
    """The same for clusters of which the same is said; those that hold others up come first."""
    told = "" if place.state in _QUEUED else repr(place.things)
    return (
        place.state in (State.available, *_QUEUED),
        place.state,
        place.index,
        place.is_up,
        place.is_down,
        place.why,
        told,
    )


def _of_thing_there(thing: PlacedObject) -> str:
    is_sentence = thing.why.startswith(f"{thing.what} ") and thing.state is not State.failed
    return f"  {thing.why}" if is_sentence else f"  {thing.what}: {of_thing(thing) or thing.state}"


def _advice(story: Story) -> Iterable[str]:
    """What there is to do: about a rollout that stands still behind a cluster, or one that is held."""
    states = {place.state for place in story.places}
    if story.is_paused:
        yield f"It is paused: `kedge resume {story.path}` lets it go on."
    if story.pinned:
        yield f"It is rolled back to revision {story.pinned}: `kedge unpin {story.path}` lets it go on to the newest."
    if not _held_text(story) and story.state is State.waiting and states & {State.moving, State.failed}:
        stuck = sum(place.state in (State.moving, State.failed) for place in story.places)
        them = "it" if stuck == 1 else "them"
        yield (
            f"{counted(stuck, 'cluster')} hold{'s' if stuck == 1 else ''} up the rest: a revision that works reaches "
            f"{them} at once, and so does `kedge rollback {story.path}`."
        )


# Cut to as many lines as there is room for


class Folded(Struct, frozen=True):
    """The clusters to show, and of those left out how many are in which state."""

    places: tuple[ClusterPlace, ...]
    left_out: Mapping[State, int]


def fold(story: Story, lines: int | None) -> Folded:
    """What works goes first: objects, then clusters; then whatever does not fit."""
    room = None if lines is None else lines - 1 - len(story.unpicked) - len(story.passed_over)
    places = story.places
    if room is not None and _lines(places) > room:
        places = tuple(_without_what_is_well(place) for place in places)
    if room is None or _lines(places) <= room:
        return Folded(places, {})
    kept = _as_many_as_fit(sorted(places, key=_is_well), room - len(State))
    names = {place.cluster for place in kept}
    return Folded(kept, Counter(place.state for place in places if place.cluster not in names))


def _lines(places: Sequence[ClusterPlace]) -> int:
    return sum(1 + len(place.things) for place in places)


def _without_what_is_well(place: ClusterPlace) -> ClusterPlace:
    return replace(place, things=tuple(thing for thing in place.things if thing.state is not State.available))


def _is_well(place: ClusterPlace) -> bool:
    return place.state is State.available


def _as_many_as_fit(places: Sequence[ClusterPlace], room: int) -> tuple[ClusterPlace, ...]:
    """At least one, whatever the room."""
    kept: list[ClusterPlace] = []
    for place in places:
        if kept and _lines([*kept, place]) > room:
            break
        kept.append(place)
    return tuple(kept)
