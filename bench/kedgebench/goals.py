"""Goals: what was set out to be reached, held against what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kedgebench.results import KEDGE, Measure


@dataclass(frozen=True)
class Verdict:
    """A goal in words, what was measured, and whether that is enough."""

    goal: str
    measured: str
    met: bool


RATIOS = (
    ("get", "lightkube", 3.0, "CPU per GET at least 3 times less than lightkube"),
    ("get", "official", 6.0, "CPU per GET at least 6 times less than the official client"),
    ("watch", "lightkube", 2.0, "CPU per watch event, one by one, at least 2 times less than lightkube"),
    ("watch", "official", 15.0, "CPU per watch event, one by one, at least 15 times less than the official client"),
    ("backlog", "lightkube", 2.0, "CPU per watch event, when behind, at least 2 times less than lightkube"),
    ("backlog", "official", 15.0, "CPU per watch event, when behind, at least 15 times less than the official client"),
)
KIB_PER_OBJECT = 3.0


def judge(measures: Mapping[str, Measure]) -> list[Verdict]:
    """Every goal of which enough was measured."""
    verdicts = []
    for key, rival, wanted, goal in RATIOS:
        ratio = measures[key].ratio(rival)
        if ratio is not None:
            verdicts.append(Verdict(goal, f"{ratio:.1f} times", ratio >= wanted))
    held = measures["memory"].of(KEDGE)
    if held is not None:
        goal = f"at most {KIB_PER_OBJECT:g} KiB per cached object"
        verdicts.append(Verdict(goal, f"{held.value:.2f} KiB", held.value <= KIB_PER_OBJECT))
    return verdicts
