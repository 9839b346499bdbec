"""Render: stories as trees, tables and sentences, and data as JSON and YAML; on a terminal and off one.

Text is printed as `safe_text` says, since members write part of it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TextIO

import click
import msgspec
import yaml
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kedge.cli.safe_text import escape_json, printable
from kedge.plan.aligning.binding_story import BindingStory
from kedge.plan.batching.rollout_story import RolloutStory
from kedge.plan.explaining.history import Revision
from kedge.plan.explaining.phrases import Folded, fold, of_place, of_thing, separate_doubt, state_text, summary
from kedge.plan.explaining.story import Story
from kedge.plan.staging.run_story import RunStory
from kedge.plan.state import State
from kedge.plan.text import age
from kedge.plan.zoning.group_story import GroupStory

_WIDE: Final = 4096  # off a terminal nothing is wrapped
_NAMED: Final = 10
_MARKS: Final = {
    State.available: ("✔", "+", "green"),
    State.moving: ("…", "~", "cyan"),
    State.next: ("›", ">", "cyan"),
    State.waiting: ("◌", ".", "yellow"),
    State.failed: ("✘", "!", "red"),
    State.unknown: ("?", "?", "magenta"),
    State.leaving: ("−", "-", "dim"),
    State.paused: ("‖", "=", "yellow"),
    State.rolled_back: ("↶", "<", "yellow"),
}


def console(file: TextIO | None = None) -> Console:
    """Where to print: in colour and as wide as the terminal; plain and unwrapped where there is no terminal."""
    out = file or sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the others
    found = Console(file=out, highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(file=out, highlight=False, markup=False, emoji=False, width=_WIDE)


def can_draw(where: Console) -> bool:
    """Whether characters beyond ASCII can be printed there."""
    return where.encoding.startswith("utf")


def tree(story: Story, *, lines: int | None = None, drawn: bool = True) -> Tree:
    """A placement, its clusters, and what is on them, in no more than this many lines."""
    folded = fold(story, lines)
    root = Tree(line_of(story.state, story.title, summary(story), drawn))
    for place in folded.places:
        branch = root.add(line_of(place.state, place.cluster, of_place(place), drawn))
        for thing in place.things:
            branch.add(line_of(thing.state, thing.what, of_thing(thing), drawn))
    for why in (*story.unpicked, *story.passed_over):
        root.add(line_of(State.waiting, "no cluster", why, drawn))
    for line in _left_out(folded):
        root.add(Text(line, "dim"))
    if doubt := separate_doubt(story):
        root.add(Text(printable(doubt), "red"))
    return root


def _left_out(folded: Folded) -> list[str]:
    return [f"and {number} more: {state}" for state, number in folded.left_out.items()]


def line_of(state: State, what: str, about: str, drawn: bool) -> Text:
    """A line of a tree: the state as a mark, what it is about, and what there is to say."""
    mark, ascii_mark, colour = _MARKS[state]
    text = Text.assemble((f"{mark if drawn else ascii_mark} ", colour), (printable(what), "bold"))
    return text.append(f"  {printable(about)}") if about else text


def placements_table(stories: Iterable[Story]) -> Table:
    """One line for each placement."""
    table = _table("NAME", "REVISION", "DONE", "STATE", "WHY")
    for story in stories:
        state = Text(state_text(story), _MARKS[story.state][2])
        table.add_row(
            story.path,
            story.index,
            f"{story.done}/{story.wanted}",
            state,
            "" if story.is_done else printable(story.why),
        )
    return table


def runs_table(stories: Iterable[RunStory]) -> Table:
    """One line for each run."""
    table = _table("RUN", "PLACEMENT", "REVISION", "DONE", "STATE", "WHY")
    for story in stories:
        state = Text(story.word, _MARKS[story.state][2])
        why = "" if story.is_done else printable(story.why)
        table.add_row(story.path, story.placement, story.index, f"{story.done}/{story.wanted}", state, why)
    return table


def groups_table(stories: Iterable[GroupStory]) -> Table:
    """One line for each rollout group."""
    table = _table("GROUP", "ZONES", "UPDATED", "READY", "STATE", "WHY")
    for story in stories:
        state = Text(story.state.value, _MARKS[story.state][2])
        updated, ready = f"{story.updated}/{story.pods}", f"{story.ready}/{story.pods}"
        table.add_row(story.path, str(len(story.zones)), updated, ready, state, printable(story.why))
    return table


def rollouts_table(stories: Iterable[RolloutStory]) -> Table:
    """One line for each rollout in batches."""
    table = _table("ROLLOUT", "KIND", "TARGET", "BATCH", "READY", "STATE", "WHY")
    for story in stories:
        state = Text(story.state.value, _MARKS[story.state][2])
        ready = f"{story.ready}/{story.size}" if story.size is not None else ""
        why = printable(story.doubt or story.why)
        table.add_row(story.path, story.kind, printable(story.target), story.batch, ready, state, why)
    return table


def bindings_table(stories: Iterable[BindingStory]) -> Table:
    """One line for each binding."""
    table = _table("BINDING", "RESOURCE", "CLUSTERS", "UPDATED", "AVAILABLE", "PODS", "IN FLIGHT", "STATE", "WHY")
    for story in stories:
        state = Text(story.state.value, _MARKS[story.state][2])
        numbers = (
            [
                f"{story.total('updated')}/{story.goal}",
                f"{story.total('available')} (>= {story.fewest})",
                f"{story.total('pods')} (<= {story.most})",
                f"{story.in_flight} of {story.budget}",
            ]
            if story.is_aligned
            else [""] * 4
        )
        table.add_row(
            story.path, printable(story.resource), str(len(story.clusters)), *numbers, state, printable(story.why)
        )
    return table


def history_table(known: Sequence[Revision], now: datetime) -> Table:
    """One line for each revision."""
    table = _table("REVISION", "AGE", "DIGEST", "IS", "CLUSTERS")
    for revision in known:
        marks = [word for word, said in (("newest", revision.is_newest), ("pinned", revision.is_pinned)) if said]
        made = age(now - revision.made) if revision.made is not None else ""
        more = [f"and {len(revision.clusters) - _NAMED} more"] if len(revision.clusters) > _NAMED else []
        clusters = ", ".join([*revision.clusters[:_NAMED], *more])
        table.add_row(str(revision.index), made, revision.digest, " ".join(marks), clusters)
    return table


def draw(what: RenderableType, out: Console | None = None, *, indent: int = 0) -> None:
    """Print it; off a terminal without trailing blanks."""
    out = out or console()
    with out.capture() as drawn:
        out.print(Padding(what, (0, 0, 0, indent), expand=False))
    lines = drawn.get().splitlines()
    out.file.write("".join(f"{line if out.is_terminal else line.rstrip()}\n" for line in lines))
    out.file.flush()


def print_lines(lines: Iterable[str], where: Console | None = None) -> None:
    """Print sentences, a line each."""
    out = where or console()
    for line in lines:
        out.print(printable(line), soft_wrap=True)


def print_data(value: Any, form: str) -> None:
    """Print a value as JSON, or as YAML if that is the form."""
    plain = msgspec.to_builtins(value)
    if form == "yaml":
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(escape_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in ("WHY", "CLUSTERS"))
    return table
