"""Goals of the sixth part, held against what was measured."""

from __future__ import annotations

from kedgebench.alignment.part import Part
from kedgebench.alignment.sizes import Sizes
from kedgebench.goals import Verdict
from kedgebench.operator_goals import promises
from kedgebench.results import KEDGE

OVERHEAD = 1.25
DECISION = 10.0  # milliseconds
PENDING = 1.0


def judge(part: Part, sizes: Sizes) -> list[Verdict]:
    """Every goal of which enough was measured."""
    found = []
    for key, goal, most, unit in (
        (
            "rolling.overhead",
            f"a release over {sizes.members} clusters takes at most {OVERHEAD:g} times that on one",
            OVERHEAD,
            "times",
        ),
        ("deciding.wall", f"a decision on {sizes.clusters} clusters takes at most {DECISION:g} ms", DECISION, "ms"),
        ("rolling.pending", "at most one write to a cluster for each acknowledgement", PENDING, "writes"),
    ):
        measure = part.of(key)
        figure = measure.of(KEDGE) if measure is not None else None
        if figure is not None:
            found.append(Verdict(goal, f"{figure.value:.3g} {unit}", figure.value <= most))
    return [*found, *promises(part, "never too few pods ready and never too many there, over all clusters")]
