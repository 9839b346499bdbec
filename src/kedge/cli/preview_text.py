"""Preview text: how a preview is printed: waves, times, the worst case, and what would not move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kedge.cli.render import console, draw, print_data, print_lines
from kedge.plan.previewing.durations import Durations, ExpectedDuration
from kedge.plan.previewing.placement_preview import Move, MoveKind, PlacementPreview, StagePreview, StuckCluster, Wave
from kedge.plan.text import counted, listed, natural

_NAMED = 12
T = TypeVar("T")


class PreviewResult(Struct, frozen=True):
    """The result of a preview, and what it assumed."""

    taken: datetime
    expected: tuple[PlacementPreview, ...]
    worst: tuple[PlacementPreview, ...]
    times: Durations
    within: float
    changes: bool = True

    @property
    def is_done(self) -> bool:
        """Whether every placement gets the change."""
        return all(course.is_done for course in self.expected)


def print_preview(result: PreviewResult, form: str) -> None:
    """Print it."""
    if form != "text":
        return print_data(_as_data(result), form)
    worst = {course.path: course for course in result.worst}
    return print_each(result.expected, partial(_show, result, worst))


def print_each(previews: Iterable[T], show: Callable[[T, Console], None], *lines: str) -> None:
    """Print previews one below the other, then these lines, and that nothing was written."""
    out = console()
    for number, one in enumerate(previews):
        if number:
            out.print()
        show(one, out)
    print_lines(lines, out)
    out.print(Text("\nThis is a preview: nothing was written to any cluster.", "dim"))


def _as_data(result: PreviewResult) -> dict[str, Any]:
    worst = {course.path: course for course in result.worst}
    placements = [
        {
            **course.as_json(),
            "worst": worst[course.path].ends if course.path in worst else None,
            "takes": _takes(result, course),
        }
        for course in result.expected
    ]
    return {
        "takenAt": msgspec.to_builtins(result.taken),
        "within": result.within,
        "done": result.is_done,
        "placements": placements,
    }


def _takes(result: PreviewResult, course: PlacementPreview) -> dict[str, Any]:
    names = dict.fromkeys(move.cluster for move in course.moves)
    return {name: msgspec.to_builtins(result.times.of(name)) for name in names}


# For people


def _show(result: PreviewResult, worst: Mapping[str, PlacementPreview], course: PlacementPreview, out: Console) -> None:
    out.print(Text(_title(course), "bold"))
    if course.stages:
        draw(_stages(course.stages), out, indent=2)
    if course.moves:
        draw(_waves(course), out, indent=2)
    print_lines(
        [*_ending(result, course, worst.get(course.path)), *_left(course), *_assumed_times(result, course)], out
    )


def _title(course: PlacementPreview) -> str:
    revision = f" to revision {course.revision}" if course.revision else ""
    if not course.moves:
        return f"{course.title}: no cluster would move"
    clusters = len({move.cluster for move in course.moves})
    return f"{course.title}: {counted(clusters, 'cluster')} would move{revision}"


def _waves(course: PlacementPreview) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("WAVE", "FROM", "TO", "CLUSTERS"):
        table.add_column(column, overflow="fold", no_wrap=column != "CLUSTERS")
    for number, wave in enumerate(course.waves, 1):
        end = "never" if wave.ends is None else _after(wave.ends)
        table.add_row(str(number), _after(wave.begins), end, _clusters(wave, course.moves))
    return table


def _clusters(wave: Wave, moves: Sequence[Move]) -> str:
    """The clusters of a wave; removed and added ones are marked."""
    what = {(move.cluster, move.at >= wave.begins): move.what for move in moves}
    named = [_with(name, what.get((name, True), MoveKind.changed)) for name in wave.clusters]
    return listed(named, most=_NAMED)


def _with(name: str, what: MoveKind) -> str:
    return name if what is MoveKind.changed else f"{name} ({what})"


def _stages(stages: Sequence[StagePreview]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("STAGE", "FROM", "TO", "CLUSTERS", "WAITS"):
        table.add_column(column, overflow="fold", no_wrap=column not in ("CLUSTERS", "WAITS"))
    for stage in stages:
        waits = [
            f"{wait.what} until {_after(wait.ends) if wait.ends is not None else 'somebody sees to it'}"
            for wait in stage.waits
        ]
        begins, ends = (_after(at) if at is not None else "never" for at in (stage.begins, stage.ends))
        table.add_row(stage.name, begins, ends, listed(stage.clusters, most=_NAMED), "; ".join(waits))
    return table


def _ending(result: PreviewResult, course: PlacementPreview, worst: PlacementPreview | None) -> Iterator[str]:
    if course.is_done and course.ends is not None:
        if course.moves:
            at = result.taken + timedelta(seconds=course.ends)
            yield f"ends after {span(course.ends)}, at {at:%Y-%m-%d %H:%M:%S} UTC{_at_worst(worst)}"
        else:
            yield "everything is where it should be"
        return
    moved = f"after {span(course.last_move)}" if course.moves else "from the beginning"
    yield f"does not end within {span(result.within)}: it stands still {moved}"
    if course.why:
        yield f"  {course.why}"


def _at_worst(worst: PlacementPreview | None) -> str:
    if worst is None:
        return ""
    if worst.ends is None:
        return "; at worst, with clusters as slow as their workloads may be, not in that time"
    return f"; at worst after {span(worst.ends)}, with clusters as slow as their workloads may be"


def _left(course: PlacementPreview) -> Iterator[str]:
    """The clusters that did not get the change, grouped by the reason."""
    if course.stays or course.unpicked:
        yield "not where they should be, in the end:"
    stays = sorted(course.stays, key=lambda stay: (not stay.moved, _why(stay), natural(stay.cluster)))
    for (moved, why), same in groupby(stays, key=lambda stay: (stay.moved, _why(stay))):
        names = listed((stay.cluster for stay in same), most=_NAMED)
        yield f"  {names}: {'moved, and ' if moved else ''}{why}"
    for why in course.unpicked:
        yield f"  no cluster: {why}"


def _why(stay: StuckCluster) -> str:
    """The reason without the name of the cluster, so that equal reasons can be grouped."""
    return stay.why.removeprefix(f"{stay.cluster} ")


def _assumed_times(result: PreviewResult, course: PlacementPreview) -> Iterator[str]:
    """How long clusters were assumed to take, and how that is known."""
    names = dict.fromkeys(move.cluster for move in course.moves if move.what is not MoveKind.removed)
    known = {name: result.times.of(name) for name in names}
    found = sorted(known, key=lambda name: (_known(known[name]), known[name].seconds, natural(name)))
    if found:
        yield "clusters are taken to be available"
    for (how, seconds), same in groupby(found, key=lambda name: (_known(known[name]), known[name].seconds)):
        yield f"  {span(seconds)} after they were given something new, {how}: {listed(same, most=_NAMED)}"


def _known(expected: ExpectedDuration) -> str:
    words = {
        "told": "as told",
        "measured": "as they were last time",
        "default": "since nothing is known (--ready-after tells)",
    }
    how = words.get(expected.source, f"the {expected.source}")
    return f"{how}, which was the first, and for each round in which pods are replaced" if expected.first else how


def _after(seconds: float) -> str:
    return f"+{span(seconds)}"


def span(seconds: float) -> str:
    """`45s`, `1m 30s`, `2h 5m`, `1d 2h`."""
    whole = round(seconds)
    for size, name, smaller, rest in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            left = whole % size // smaller
            return f"{whole // size}{name} {left}{rest}" if left else f"{whole // size}{name}"
    return f"{whole}s"
