"""Goals of the fourth part, held against what was measured."""

from __future__ import annotations

from kedgebench.goals import Verdict
from kedgebench.operator_goals import promises, release, rest
from kedgebench.zones.part import Part
from kedgebench.zones.sizes import ZONES, Sizes


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [
        *release(part, f"a release of {ZONES} zones of {sizes.pods} pods takes"),
        *rest(part, f"{sizes.groups} groups", "peak"),
        *promises(part, "pods of one zone at a time, and never too many of them"),
    ]
