"""Goals of the fifth part, held against what was measured."""

from __future__ import annotations

from kedgebench.batches.part import Part
from kedgebench.batches.sizes import Sizes
from kedgebench.goals import Verdict
from kedgebench.operator_goals import promises, release, rest


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    return [
        *release(part, f"{sizes.pods} pods in {sizes.batches} batches take"),
        *rest(part, f"{sizes.rollouts} rollouts", "start_peak"),
        *promises(part, "never too few pods, and never too many"),
    ]
