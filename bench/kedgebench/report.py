"""Report: the measurements as text for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kedgebench.goals import Verdict
from kedgebench.results import Measure
from kedgebench.rivals import RIVALS

LEGEND = (
    "CPU time of the client's process (user and system) in µs, memory in KiB: the median over the rounds, half their "
    "spread, and how many times what Kedge needs."
)
COLUMNS = ("get", "get20", "list", "watch", "backlog", "memory")


def text(
    machine: Mapping[str, Any],
    measures: Mapping[str, Measure],
    verdicts: Iterable[Verdict],
    notes: Iterable[str],
) -> str:
    """Tables in Markdown, the machine above and the goals below."""
    parts = [
        _machine(machine),
        LEGEND,
        _table(measures),
        _queue(measures["queue"]),
        _exact(measures["exact"]),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in notes),
    ]
    return "\n\n".join(part for part in parts if part)


def data(
    machine: Mapping[str, Any],
    measures: Mapping[str, Measure],
    verdicts: Iterable[Verdict],
    notes: Iterable[str],
) -> dict[str, Any]:
    """The same for programs, every round of it."""
    return {
        "machine": dict(machine),
        "measures": {key: _measure(measure) for key, measure in measures.items()},
        "goals": [{"goal": v.goal, "measured": v.measured, "met": v.met} for v in verdicts],
        "notes": list(notes),
    }


def joined(first: Mapping[str, Any], second: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The data of two parts as one; of the machine, what the first said, and how loaded it was after the second."""
    if not first:
        return dict(second)
    return {
        "machine": {**first["machine"], f"load_after_{name}": second["machine"]["load"]},
        "measures": {**first["measures"], **second["measures"]},
        "goals": [*first["goals"], *second["goals"]],
        "notes": [*first["notes"], *second["notes"]],
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "title": measure.title,
        "unit": measure.unit,
        "contenders": {
            name: {
                "median": round(figure.value, 3),
                "spread": round(figure.spread, 3),
                "ratio": round(measure.ratio(name) or 0.0, 3),
                "rounds": [round(value, 3) for value in figure.rounds],
            }
            for name, figure in measure
        },
    }


def _machine(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['day']}, {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, {machine['python']}; load {machine['load_before']} before, {machine['load']} after. "
        f"kube-apiserver {machine['kubernetes']} over TLS on loopback; {machine['objects']} Deployments of "
        f"{machine['bytes_per_object']} bytes; the contender on {_core(machine)}; {machine['seconds']} s.\n{versions}."
    )


def _core(machine: Mapping[str, Any]) -> str:
    return "a core of its own" if machine["own_core"] else "any core"


def _table(measures: Mapping[str, Measure]) -> str:
    shown = [measures[key] for key in COLUMNS]
    head = ["", *(measure.title for measure in shown)]
    rows = [
        [entry.title, *(_cell(measure, name) for measure in shown)]
        for name, entry in RIVALS.items()
        if any(measure.of(name) for measure in shown)
    ]
    return markdown(head, rows)


def _cell(measure: Measure, name: str) -> str:
    figure, ratio = measure.of(name), measure.ratio(name)
    if figure is None:
        return "–"
    spread = f" ±{figure.spread:.0%}" if len(figure.rounds) > 1 else ""
    times = "" if name == measure.base or ratio is None else f", **{ratio:.1f}×**"
    return f"{_number(figure.value)}{spread}{times}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _queue(measure: Measure) -> str:
    rows = [
        [
            case,
            f"{figure.value:.2f} ±{figure.spread:.0%}",
            f"{1e3 / figure.value:,.0f} k/s",
            f"{measure.ratio(case):.1f}×",
        ]
        for case, figure in measure
    ]
    return markdown(["queue", "µs per key", "keys per second", "ratio"], rows) if rows else ""


def _exact(measure: Measure) -> str:
    return "\n".join(
        f"Added up object by object, {RIVALS[name].title} holds {figure.value:.2f} KiB per object."
        for name, figure in measure
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in table
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
