"""Whole: the fifth part from beginning to end, printed, and as data in the form of the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedgebench import machine
from kedgebench.batches import goals, report
from kedgebench.batches.part import Part
from kedgebench.batches.sizes import FULL, QUICK
from kedgebench.progress import Progress
from kedgebench.report import data


async def measure(about: Mapping[str, Any], progress: Progress, *, quick: bool) -> dict[str, Any]:
    """Measure, print, and give the numbers."""
    sizes = QUICK if quick else FULL
    part, begun = Part(sizes, progress), progress.elapsed
    before = machine.load()
    await part.everything()
    progress.end()
    if quick:
        part.notes.append("a quick run: too short to believe any of it")
    found = {**about, "load_before": before, "load": machine.load(), "seconds": round(progress.elapsed - begun)}
    verdicts = goals.judge(part, sizes)
    print(f"\n{report.text(found, part, sizes, verdicts)}", flush=True)
    return data(found, part.measures, verdicts, part.notes)
