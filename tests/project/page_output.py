"""Whether what was printed is what a page shows: the same lines in the same order, but for what differs every time."""

from __future__ import annotations

import re

_ANY = "…"
_VARIES = {
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z| UTC)?": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z| UTC)?",
    r"(?<=pod )\w+-\w+-\w+": r"[\w-]+",  # the end of a pod's name
    r"\+?(?:\d+(?:\.\d+)?(?:ms|[smhd]))+\b": r"\+?(?:\d+(?:\.\d+)?(?:ms|[smhd]))+",  # ages and durations
    r"\d+\.\d+ s\b": r"\d+\.\d+ s",
    r"https://127\.0\.0\.1:\d+": r"https://127\.0\.0\.1:\d+",
    r"  +": r"\s+",  # the columns of a table
    _ANY: ".*",
}
_PARTS = re.compile("|".join(f"({part})" for part in _VARIES))


def pattern(line: str) -> re.Pattern[str]:
    """What a line like this one looks like."""
    text, patterns = line.strip(), list(_VARIES.values())
    found, end = [], 0
    for match in _PARTS.finditer(text):
        found += [re.escape(text[end : match.start()]), patterns[(match.lastindex or 1) - 1]]
        end = match.end()
    return re.compile("".join([*found, re.escape(text[end:])]))


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first shown line that was not printed after those before it."""
    lines = iter(printed.splitlines())
    for line in shown:
        wanted = pattern(line)
        if not any(wanted.search(candidate) for candidate in lines):
            return line
    return None
