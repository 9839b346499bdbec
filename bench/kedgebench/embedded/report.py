"""Report: the second part as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kedgebench.embedded.part import ALONE, HTTPS, IN_PROCESS, PEER, Part, grown, how, members_named
from kedgebench.embedded.sizes import Sizes
from kedgebench.goals import Verdict
from kedgebench.report import markdown
from kedgebench.results import Measure

VERSIONS = ("aiohttp", "uvloop", "msgspec")
WEIGHTS = {
    "wire": "as JSON",
    "stored": "stored, resident",
    "stored_added_up": "stored, added up",
    "changed": "changed once, resident",
    "changed_added_up": "changed once, added up",
}


def text(machine: Mapping[str, Any], part: Part, sizes: Sizes, verdicts: Iterable[Verdict]) -> str:
    """Every table, the machine above, the goals and the notes below."""
    sections = [
        "## The embedded server and the simulator",
        machine_line(machine),
        how(sizes),
        table("µs of CPU per request", part.group("cost"), (ALONE, IN_PROCESS, HTTPS, PEER), ratio=PEER),
        table("requests per second, by the wall clock", part.group("rate"), (HTTPS, PEER)),
        table("watch fan-out, µs of CPU", part.group("fanout"), (IN_PROCESS, HTTPS, PEER), ratio=PEER),
        table("memory, KiB per object", part.group("weight"), WEIGHTS, WEIGHTS.values()),
        _resident(part, sizes),
        table("`kedge up`, the first time", part.group("up-first"), _sizes(sizes.first), unit=True),
        table("`kedge up`", part.group("up-warm"), _sizes(sizes.warm), unit=True),
        table("in virtual time, per CPU second", part.group("speed"), _sizes((sizes.few, sizes.many))),
        _growth(part, sizes),
        "\n".join(f"* {'met' if v.met else 'MISSED'}: {v.goal}: {v.measured}" for v in verdicts),
        "\n".join(f"* {note}" for note in part.notes),
    ]
    return "\n\n".join(section for section in sections if section)


def machine_line(machine: Mapping[str, Any]) -> str:
    """What it was measured on, and when."""
    versions = ", ".join(f"{name} {machine['versions'][name]}" for name in VERSIONS)
    return (
        f"{machine['day']}, {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, {machine['python']}; load {machine['load_before']} before, {machine['load']} after; "
        f"{machine['seconds']} s. {versions}."
    )


def table(
    title: str,
    measures: Sequence[Measure],
    columns: Iterable[str],
    heads: Iterable[str] | None = None,
    *,
    ratio: str = "",
    unit: bool = False,
) -> str:
    """A row for each measure, a column for each contender; with how many times its base the one named takes."""
    shown = [column for column in columns if any(measure.of(column) for measure in measures)]
    names = dict(zip(columns, heads or columns, strict=True))
    rows = [
        [f"{measure.title}, {measure.unit}" if unit else measure.title, *(_cell(measure, c, ratio) for c in shown)]
        for measure in measures
    ]
    return markdown([title, *(names[column] for column in shown)], rows)


def _cell(measure: Measure, column: str, ratio: str) -> str:
    figure, times = measure.of(column), measure.ratio(column)
    if figure is None:
        return "–"
    if figure.value <= 0:
        return "lost in the noise"
    spread = f" ±{figure.spread:.0%}" if len(figure.rounds) > 1 else ""
    return f"{_number(figure.value)}{spread}" + (f", **{times:.1f}×**" if column == ratio and times else "")


def _resident(part: Part, sizes: Sizes) -> str:
    """How much memory one member more takes: the difference between the two sizes, by member."""
    rows = []
    for measure in [*part.group("resident"), part.of("up-warm.resident")]:
        few, many = (measure.of(name) for name in _sizes((sizes.few, sizes.many)))
        if few and many:
            each = (many.value - few.value) / (sizes.many - sizes.few)
            title = "`kedge up`, ready, each with its door" if "up-" in measure.key else measure.title
            rows.append([title, _number(few.value), _number(many.value), f"{each:.2f}"])
    return markdown(["MiB of a fleet", *_sizes((sizes.few, sizes.many)), "per member more"], rows)


def _growth(part: Part, sizes: Sizes) -> str:
    few, many = _sizes((sizes.few, sizes.many))
    rows = []
    for measure in part.group("growth"):
        steps = part.of(measure.key.replace("embedded.growth", "growth-steps"))
        ratios = [f"{grown(found, few, many) or 0:.1f}×" for found in (measure, steps)]
        rows.append([measure.title, _cell(measure, few, ""), _cell(measure, many, ""), *ratios])
    return markdown([f"growth, {sizes.many // sizes.few} times the members; s of CPU", few, many, "CPU", "steps"], rows)


def _sizes(counts: Iterable[int]) -> list[str]:
    return [members_named(count) for count in counts]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
