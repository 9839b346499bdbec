"""Showing: stories as trees, tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kedge.plan.telling.history import Revision
from kedge.plan.telling.story import Place, State, Story, Thing

_MARKS = {
    State.available: ("✔", "green"),
    State.moving: ("…", "cyan"),
    State.waiting: ("◌", "yellow"),
    State.failed: ("✘", "red"),
    State.unknown: ("?", "magenta"),
    State.leaving: ("−", "dim"),
    State.paused: ("‖", "yellow"),
}


def tree(story: Story) -> Tree:
    """A placement, its clusters, and what is on them."""
    root = Tree(_line(story.state, f"{story.kind} {_name(story)}", _summary(story)))
    for place in story.places:
        branch = root.add(_line(place.state, place.cluster, _of_place(place)))
        for thing in place.things:
            branch.add(_line(thing.state, thing.what, thing.why))
    for why in story.unpicked:
        root.add(_line(State.waiting, "no cluster", why))
    return root


def _line(state: State, what: str, about: str) -> Text:
    mark, colour = _MARKS[state]
    text = Text.assemble((f"{mark} ", colour), (what, "bold"))
    return text.append(f"  {about}") if about else text


def _name(story: Story) -> str:
    return f"{story.namespace}/{story.name}" if story.namespace else story.name


def _summary(story: Story) -> str:
    index = f"resources {story.index}, " if story.index else ""
    counted = f"{index}{story.available} of {story.wanted} clusters available"
    return counted if story.is_done or not story.why else f"{counted}: {story.why}"


def _of_place(place: Place) -> str:
    index = f"resources {place.index}, " if place.index else ""
    told = f"{index}{place.state}"
    return told if place.state is State.available or not place.why else f"{told}: {place.why}"


def placements_table(stories: Iterable[Story]) -> Table:
    """One line a placement."""
    table = Table(box=None, pad_edge=False)
    for column in ("NAMESPACE", "NAME", "RESOURCES", "AVAILABLE", "STATE", "WHY"):
        table.add_column(column, overflow="fold")
    for story in stories:
        colour = _MARKS[story.state][1]
        row = (story.namespace or "", story.name, story.index, f"{story.available}/{story.wanted}")
        table.add_row(*row, Text(story.state, colour), "" if story.is_done else story.why)
    return table


def explained(story: Story, cluster: str | None = None) -> list[str]:
    """Why things are where they are, a sentence each."""
    places = [place for place in story.places if cluster in (None, place.cluster)]
    lines = [] if cluster else [f"{story.kind} {_name(story)}: {_summary(story)}"]
    if story.pinned and not cluster:
        lines.append(f"It is rolled back to resources {story.pinned}; `kedge resume` goes to the newest.")
    for place in places:
        lines.append(f"{place.cluster}: {_of_place(place)}")
        lines += [f"  {thing.what}: {_of_thing(thing)}" for thing in place.things if _is_worth_saying(thing, cluster)]
    return lines if cluster else [*lines, *(f"not picked: {why}" for why in story.unpicked)]


def _of_thing(thing: Thing) -> str:
    return f"{thing.state}: {thing.why}" if thing.why else str(thing.state)


def _is_worth_saying(thing: Thing, cluster: str | None) -> bool:
    return cluster is not None or thing.state is not State.available


def history_table(known: Sequence[Revision], now: datetime) -> Table:
    """One line a version."""
    table = Table(box=None, pad_edge=False)
    for column in ("RESOURCES", "AGE", "DIGEST", "", "CLUSTERS"):
        table.add_column(column, overflow="fold")
    for revision in known:
        marks = [word for word, said in (("newest", revision.is_newest), ("pinned", revision.is_pinned)) if said]
        age = _age(now, revision.made)
        table.add_row(str(revision.index), age, revision.digest, " ".join(marks), " ".join(revision.clusters))
    return table


def _age(now: datetime, then: datetime | None) -> str:
    if then is None:
        return ""
    seconds = max(0, int((now - then).total_seconds()))
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{letter}"
    return f"{seconds}s"
