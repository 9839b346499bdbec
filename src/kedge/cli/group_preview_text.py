"""Group preview text: how previews of rollout groups are printed: waves of pods, times, and what would not move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kedge.cli.preview_text import print_each, span
from kedge.cli.render import draw, print_data, print_lines
from kedge.plan.previewing.durations import Durations, ExpectedDuration
from kedge.plan.previewing.group_preview import GroupPreview, PodMove, PodMoveKind
from kedge.plan.text import counted, listed, of_all

_NAMED: Final = 12


class GroupsResult(Struct, frozen=True):
    """The previews of rollout groups, and what they assumed."""

    taken: datetime
    groups: tuple[GroupPreview, ...]
    times: tuple[Durations, ...]
    within: float

    @property
    def is_done(self) -> bool:
        """Whether every pod gets there."""
        return all(group.is_done for group in self.groups)


def print_groups(result: GroupsResult, form: str) -> None:
    """Print them."""
    if form != "text":
        return print_data(_as_data(result), form)
    return print_each(zip(result.groups, result.times, strict=True), partial(_show, result))


def _as_data(result: GroupsResult) -> dict[str, Any]:
    groups = [
        {**group.as_json(), "takes": {zone: msgspec.to_builtins(times.of(zone)) for zone in _zones(group)}}
        for group, times in zip(result.groups, result.times, strict=True)
    ]
    return {
        "takenAt": msgspec.to_builtins(result.taken),
        "within": result.within,
        "done": result.is_done,
        "groups": groups,
    }


# For people


def _show(result: GroupsResult, one: tuple[GroupPreview, Durations], out: Console) -> None:
    group, times = one
    out.print(Text(_title(group), "bold"))
    if group.moves:
        draw(_waves(group), out, indent=2)
    print_lines([*_ending(result, group), *_left(group), *_assumed_times(group, times)], out)


def _title(group: GroupPreview) -> str:
    counts = {kind: len({move.pod for move in group.moves if move.what is kind}) for kind in PodMoveKind}
    words = {
        PodMoveKind.replaced: "would be replaced",
        PodMoveKind.added: "would be added",
        PodMoveKind.removed: "would be removed",
        PodMoveKind.starting: "would become ready",
    }
    said = [
        f"{of_all(count, group.pods, 'pod') if kind is PodMoveKind.replaced else counted(count, 'pod')} {words[kind]}"
        for kind, count in counts.items()
        if count
    ]
    nothing = "no pod would move" if group.zones else "no StatefulSet would be left in it"
    return f"rollout group {group.path}: {', '.join(said) or nothing}"


def _waves(group: GroupPreview) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("WAVE", "FROM", "TO", "ZONE", "PODS"):
        table.add_column(column, overflow="fold", no_wrap=column != "PODS")
    for number, wave in enumerate(group.waves, 1):
        end = "never" if wave.ends is None else f"+{span(wave.ends)}"
        pods = listed((_pod(move) for move in wave.pods), most=_NAMED)
        table.add_row(str(number), f"+{span(wave.begins)}", end, wave.zone, pods)
    return table


def _pod(move: PodMove) -> str:
    return move.pod if move.what is PodMoveKind.replaced else f"{move.pod} ({move.what})"


def _ending(result: GroupsResult, group: GroupPreview) -> Iterator[str]:
    if group.ends is not None and group.moves:
        at = result.taken + timedelta(seconds=group.ends)
        yield f"ends after {span(group.ends)}, at {at:%Y-%m-%d %H:%M:%S} UTC"
    elif group.ends is not None:
        if group.zones:
            yield "every pod is updated and ready"
    else:
        moved = f"after {span(group.last_move)}" if group.moves else "from the beginning"
        yield f"does not end within {span(result.within)}: it stands still {moved}"


def _left(group: GroupPreview) -> Iterator[str]:
    """The zones that do not get there, and why."""
    if group.stays:
        yield "not where they should be, in the end:"
    for stay in group.stays:
        outdated = f" ({of_all(stay.outdated, stay.pods, 'pod')} outdated)" if stay.outdated else ""
        yield f"  {stay.zone}{outdated}: {stay.why}"
    yield from group.problems


def _assumed_times(group: GroupPreview, times: Durations) -> Iterator[str]:
    """How long pods were assumed to take, and how that is known."""
    known = {zone: times.of(zone) for zone in _zones(group) if zone not in times.failing}
    for expected, same in groupby(sorted(known, key=lambda zone: _known(known[zone])), key=lambda zone: known[zone]):
        where = f": {listed(same, most=_NAMED)}" if len(set(known.values())) > 1 else ""
        yield f"pods are taken to be ready {span(expected.seconds)} after they are created, {_known(expected)}{where}"
    if failing := [zone for zone in _zones(group) if zone in times.failing]:
        yield f"new pods are taken never to be ready, as told: {listed(failing, most=_NAMED)}"


def _known(expected: ExpectedDuration) -> str:
    words = {"told": "as told", "default": "since nothing is known (--ready-after tells)"}
    return words.get(expected.source, f"the {expected.source}")


def _zones(group: GroupPreview) -> list[str]:
    """The zones with pods that have to become ready."""
    return list(dict.fromkeys(move.zone for move in group.moves if move.what is not PodMoveKind.removed))
