"""Report: the third part as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedgebench.embedded.part import members_named
from kedgebench.embedded.report import machine_line, table
from kedgebench.fleet.part import STRETCHES, Part, collecting, how
from kedgebench.fleet.sizes import Sizes
from kedgebench.goals import Verdict


def text(machine: Mapping[str, Any], part: Part, sizes: Sizes, verdicts: Iterable[Verdict]) -> str:
    """Every table, the machine above, the goals and the notes below."""
    placed = [measure for stretch in (*STRETCHES, "stages") for measure in part.group(stretch)]
    grown = [measure for group in ("growth", "writes", "largest") for measure in part.group(group)]
    standing, runs = part.group("standing"), part.group("runs")
    sections = [
        "## The fleet",
        machine_line(machine),
        how(sizes),
        table("a rolling update, real members", part.group("rolling"), [*map(collecting, sizes.collects)], unit=True),
        table("a staged run, real members", part.group("staged"), [members_named(sizes.real)], unit=True),
        table("embedded members", placed, [members_named(sizes.placing)], unit=True),
        table("many runs", runs, [name for name, _ in runs[0]] if runs else [], unit=True),
        table("previews", part.group("preview"), [*map(members_named, sizes.previewed)], unit=True),
        table("per cluster", grown, [*map(members_named, sizes.grown)], unit=True),
        table("a hub of its own", standing, [name for name, _ in standing[0]] if standing else [], unit=True),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in part.notes),
    ]
    return "\n\n".join(section for section in sections if section)
