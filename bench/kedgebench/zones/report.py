"""Report: the fourth part as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedgebench.embedded.report import machine_line, table
from kedgebench.goals import Verdict
from kedgebench.results import KEDGE
from kedgebench.zones.part import PEER, Part, how
from kedgebench.zones.sizes import Sizes


def text(machine: Mapping[str, Any], part: Part, sizes: Sizes, verdicts: Iterable[Verdict]) -> str:
    """Every table, the machine above, the goals and the notes below."""
    sections = [
        "## Zones",
        machine_line(machine),
        how(sizes),
        table("a release of one group", part.group("release"), [KEDGE, PEER], unit=True),
        table(f"{sizes.groups} groups", part.group("rest"), [KEDGE], unit=True),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in part.notes),
    ]
    return "\n\n".join(section for section in sections if section)
