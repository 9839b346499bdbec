"""Batch preview text: how previews of rollouts in batches are printed: batches, limits, gates, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kedge.cli.preview_text import print_each
from kedge.cli.render import draw, print_data, print_lines
from kedge.cli.safe_text import printable
from kedge.plan.previewing.rollout_preview import BatchPreview, RolloutPreview
from kedge.plan.text import counted


class RolloutsResult(Struct, frozen=True):
    """The previews of rollouts in batches."""

    rollouts: tuple[RolloutPreview, ...]

    @property
    def is_done(self) -> bool:
        """Whether every one of them goes to its end by what is known."""
        return all(one.is_done for one in self.rollouts)


def print_rollouts(result: RolloutsResult, form: str) -> None:
    """Print them."""
    if form != "text":
        return print_data(_as_data(result), form)
    return print_each(result.rollouts, _show)


def _as_data(result: RolloutsResult) -> dict[str, Any]:
    return {"done": result.is_done, "rollouts": [one.as_json() for one in result.rollouts]}


def _show(preview: RolloutPreview, out: Console) -> None:
    out.print(Text(printable(_title(preview)), "bold"))
    if preview.moves:
        print_lines([preview.moves], out)
    if preview.batches:
        draw(_batches(preview), out, indent=2)
    print_lines(_ending(preview), out)


def _title(preview: RolloutPreview) -> str:
    what = f"{preview.kind} {preview.path} to {preview.target}"
    if preview.has_ended:
        return f"{what}: it has ended, nothing would move"
    if preview.size is None:
        return f"{what}: its batches are not known"
    number = len(preview.batches)
    return f"{what}: {counted(preview.size, 'pod')} in {number} {'batch' if number == 1 else 'batches'}"


def _batches(preview: RolloutPreview) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("BATCH", "PODS", "GOAL", "AVAILABLE", "EXISTING", "NEEDS"):
        table.add_column(column, overflow="fold", no_wrap=column != "NEEDS")
    for batch in preview.batches:
        floor = "" if batch.floor is None else f">= {batch.floor}"
        ceiling = "" if batch.ceiling is None else f"<= {batch.ceiling}"
        table.add_row(str(batch.index), str(batch.pods), f"{batch.goal}/{preview.size}", floor, ceiling, _needs(batch))
    return table


def _needs(batch: BatchPreview) -> str:
    if batch.is_done:
        return "done already"
    return printable("; ".join(batch.gates) if batch.is_reached else "may not roll yet")


def _ending(preview: RolloutPreview) -> Iterator[str]:
    for why in preview.refused:
        yield f"would be refused: {why}"
    for why in preview.waits:
        yield f"would wait: {why}" if not preview.has_ended else why
    if preview.holds:
        yield preview.holds
