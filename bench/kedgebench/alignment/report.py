"""Report: the sixth part as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedgebench.alignment.part import Part, how
from kedgebench.alignment.sizes import Sizes
from kedgebench.embedded.report import machine_line, table
from kedgebench.goals import Verdict
from kedgebench.results import KEDGE


def text(machine: Mapping[str, Any], part: Part, sizes: Sizes, verdicts: Iterable[Verdict]) -> str:
    """Every table, the machine above, the goals and the notes below."""
    sections = [
        "## Alignment",
        machine_line(machine),
        how(sizes),
        table(f"a release of {sizes.pods} pods", part.group("rolling"), [KEDGE], unit=True),
        table("one decision", part.group("deciding"), [KEDGE], unit=True),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in part.notes),
    ]
    return "\n\n".join(section for section in sections if section)
