"""Binding preview text: how previews of bindings are printed: which cluster moves when, bounds, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kedge.cli.preview_text import print_each
from kedge.cli.render import draw, print_data, print_lines
from kedge.cli.safe_text import printable
from kedge.plan.previewing.binding_preview import BindingPreview, ClusterPreview
from kedge.plan.text import counted


class BindingsResult(Struct, frozen=True):
    """The previews of bindings."""

    bindings: tuple[BindingPreview, ...]
    failing: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether every pod gets there."""
        return all(one.is_done for one in self.bindings)


def print_bindings(result: BindingsResult, form: str) -> None:
    """Print them."""
    if form != "text":
        data = [one.as_json() for one in result.bindings]
        return print_data({"done": result.is_done, "failing": result.failing, "bindings": data}, form)
    failing = f"new pods are taken never to be available, as told: {', '.join(result.failing)}"
    return print_each(result.bindings, _show, *([failing] if result.failing else []))


def _show(preview: BindingPreview, out: Console) -> None:
    out.print(Text(printable(_title(preview)), "bold"))
    if any(one.begins for one in preview.clusters):
        draw(_clusters(preview), out, indent=2)
    print_lines(_ending(preview), out)


def _title(preview: BindingPreview) -> str:
    what = f"{preview.kind} {preview.path}, {preview.resource}"
    if not preview.is_aligned and not preview.is_done:
        return f"{what}: nothing would be written"
    if not preview.is_aligned:
        return f"{what}: it is copied to each cluster at once, and nothing is aligned"
    moves = sum(one.moves for one in preview.clusters)
    if not any(one.begins for one in preview.clusters):
        return f"{what}: nothing would be written"
    return f"{what}: {counted(moves, 'pod')} would move, in {counted(preview.waves, 'wave')}"


def _clusters(preview: BindingPreview) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("WAVES", "CLUSTER", "PODS", "MOVE", "AT ONCE"):
        table.add_column(column, overflow="fold", no_wrap=True)
    for one in preview.clusters:
        if one.begins is not None:
            table.add_row(_waves(one), printable(one.name), str(one.pods), str(one.moves), _at_once(one))
    return table


def _waves(one: ClusterPreview) -> str:
    return f"{one.begins}-{one.ends}" if one.ends is not None and one.ends != one.begins else str(one.begins)


def _at_once(one: ClusterPreview) -> str:
    return f"at most {one.granted.unavailable} unavailable, {one.granted.surge} extra"


def _ending(preview: BindingPreview) -> Iterator[str]:
    if preview.is_aligned:
        yield from _bounds(preview)
    yield from preview.problems
    if preview.is_done or not preview.is_aligned:
        return
    yield "not where they should be, in the end:"
    for one in preview.clusters:
        if one.why:
            yield f"  {one.name}: {one.why}"
    if not any(one.why for one in preview.clusters) and preview.why and not preview.problems:
        yield f"  {preview.why}"


def _bounds(preview: BindingPreview) -> Iterator[str]:
    yield f"{_floor(preview)}; {_ceiling(preview)}; whatever clusters have not reported yet"


def _floor(preview: BindingPreview) -> str:
    wanted = f"{preview.fewest} of {counted(preview.replicas, 'pod')}"
    if not preview.pods:
        return "no pod is there yet that could be missed"
    if preview.sure >= preview.fewest:
        return f"never under {wanted} available"
    return f"{wanted} have to be available, and only {preview.sure} are sure to be, by what is there already"


def _ceiling(preview: BindingPreview) -> str:
    if preview.highest > preview.most:
        return f"never over {counted(preview.highest, 'pod')}, as many as there may be already"
    return f"never over {counted(preview.most, 'pod')}"
