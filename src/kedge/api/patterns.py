"""Patterns: regular expressions as Kubernetes reads them (RE2), carried out by Python's own engine.

`compiled` reads what both share, and translates where they differ silently: `$` is the very end, classes such as `\\d`
are ASCII, `\\z` and POSIX classes exist. What Python cannot read is refused (`BadPattern`), never taken for another
pattern. Not promised: RE2's linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PIECES = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?|\[:\w+:\]|.", re.DOTALL)


class BadPattern(ValueError):
    """Not a regular expression, or not one that can be carried out here."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to `search`."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(str(error)) from None


def _translated(pattern: str) -> str:
    parts: list[str] = []
    in_class = False
    at = 0
    while at < len(pattern):
        piece, at = _piece(pattern, at, in_class)
        if in_class:
            in_class = piece != "]"
            parts.append(_inside_class(piece))
        else:
            in_class = piece.startswith("[")
            parts.append(_outside_class(piece))
    return "".join(parts)


def _piece(pattern: str, at: int, in_class: bool) -> tuple[str, int]:
    if in_class and (posix := re.compile(r"\[:\w+:\]").match(pattern, at)):
        return posix.group(), posix.end()
    if in_class and pattern[at] != "\\":
        return pattern[at], at + 1
    found = _PIECES.match(pattern, at)
    assert found is not None
    return found.group(), found.end()


def _inside_class(piece: str) -> str:
    if piece.startswith("[:"):
        return _POSIX.get(piece[2:-2], piece)
    return r"\[" if piece == "[" else piece


def _outside_class(piece: str) -> str:
    if piece in ("$", r"\z"):
        return r"\Z"
    if piece.startswith(r"\Q"):
        return re.escape(piece[2:].removesuffix(r"\E"))
    return piece
