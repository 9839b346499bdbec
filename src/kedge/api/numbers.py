"""Numbers that may be percentages: `3` or `25%` of something.

On the wire an int or a string, and here too: a field holds what the user wrote, `resolve` says what it comes to.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

IntOrPercent: TypeAlias = int | str

_PERCENT: Final = re.compile(r"([0-9]+)%")


def resolve(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """What a value comes to, out of a total.

    Percentages are of the total and may exceed it. A number written as text counts as the number, since the patterns
    in use admit it. Refuses (ValueError) negative numbers and anything else.
    """
    if isinstance(value, int) and value >= 0:
        return value
    text = str(value)
    if text.isascii() and text.isdecimal():
        return int(text)
    percent = _PERCENT.fullmatch(text)
    if percent is None:
        raise ValueError(f"{value!r} is neither a number of at least 0 nor a percentage such as '25%'")
    share = int(percent[1]) * total
    return -(-share // 100) if round_up else share // 100
