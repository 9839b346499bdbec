"""Report: the fifth part as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kedgebench.batches.part import ARGO, BY_HAND, Part, how
from kedgebench.batches.sizes import Sizes
from kedgebench.embedded.report import machine_line, table
from kedgebench.goals import Verdict
from kedgebench.results import KEDGE


def text(machine: Mapping[str, Any], part: Part, sizes: Sizes, verdicts: Iterable[Verdict]) -> str:
    """Every table, the machine above, the goals and the notes below."""
    sections = [
        "## Batches",
        machine_line(machine),
        how(sizes),
        table("a release", part.group("release"), [BY_HAND, KEDGE, ARGO], unit=True),
        table(f"{sizes.rollouts} rollouts", part.group("rest"), [KEDGE], unit=True),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in part.notes),
    ]
    return "\n\n".join(section for section in sections if section)
