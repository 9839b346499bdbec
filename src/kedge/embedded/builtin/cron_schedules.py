"""Cron schedules: whether the schedule of a CronJob can be parsed, and what to say if not.

The five fields of cron with lists, ranges, steps and names, and words such as `@hourly`. Of time zones only the area is
checked: the list of them all is a file, and validation reads none.
"""

from __future__ import annotations

import re

_WORDS = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_NO_ZONE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"

_ZONE = re.compile(
    r"(Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)/.+"
    r"|UTC|UCT|Universal|Zulu|Greenwich|GMT([+-]?0)?|CET|EET|MET|WET|[EHM]ST|EST5EDT|CST6CDT|MST7MDT|PST8PDT|Factory"
    r"|Cuba|Egypt|Eire|GB|GB-Eire|Hongkong|Iceland|Iran|Israel|Jamaica|Japan|Kwajalein|Libya|NZ|NZ-CHAT|Navajo|PRC"
    r"|Poland|Portugal|ROC|ROK|Singapore|Turkey|W-SU"
)


def may_be_time_zone(name: str) -> bool:
    """Whether it may be the name of a time zone."""
    return _ZONE.fullmatch(name) is not None


def schedule_problem(text: str) -> str:
    """What is wrong with a schedule; empty if it is valid."""
    if "TZ" in text:
        return _NO_ZONE
    if text.startswith("@"):
        return _word_problem(text)
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    found = (_field_problem(part, *field) for part, field in zip(parts, _FIELDS, strict=True))
    return next((problem for problem in found if problem), "")


def _word_problem(text: str) -> str:
    if text in _WORDS or re.fullmatch(r"@every ([0-9.]+(ns|us|µs|ms|s|m|h))+", text):
        return ""
    return f"unrecognized descriptor: {text}"


def _field_problem(text: str, low: int, high: int, names: dict[str, int]) -> str:
    return next((why for part in text.split(",") if (why := _range_problem(part, low, high, names))), "")


def _range_problem(text: str, low: int, high: int, names: dict[str, int]) -> str:
    span, *steps = text.split("/")
    ends = [] if span in ("*", "?") else span.split("-")
    if len(steps) > 1:
        return f"too many slashes: {text}"
    if len(ends) > 2:
        return f"too many hyphens: {text}"
    for word in [*ends, *steps]:
        if word.lower() not in names and not word.isdecimal():
            return f'failed to parse int from {word}: strconv.Atoi: parsing "{word}": invalid syntax'
    numbers = [names.get(word.lower(), -1) if word.lower() in names else int(word) for word in ends] or [low]
    if numbers[0] < low:
        return f"beginning of range ({numbers[0]}) below minimum ({low}): {text}"
    if numbers[-1] > high:
        return f"end of range ({numbers[-1]}) above maximum ({high}): {text}"
    if numbers[0] > numbers[-1]:
        return f"beginning of range ({numbers[0]}) beyond end of range ({numbers[-1]}): {text}"
    return f"step of range should be a positive number: {text}" if steps == ["0"] else ""
