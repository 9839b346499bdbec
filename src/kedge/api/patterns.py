r"""Patterns: regular expressions as Kubernetes reads them, carried out by RE2, in time linear in the text.

    compiled("^(a+)+$").search(text)

What RE2 does not read is refused (`BadPattern`), and so is what would need more memory than a pattern may have. Go's
reader, which Kubernetes uses, differs in `\C` alone, which it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

LARGEST = 8 << 20
"""How many bytes a pattern may take, unless told otherwise: what RE2 itself has chosen."""
SMALL = 1 << 20
"""The same for a pattern that users write."""


class BadPattern(ValueError):
    """Not a regular expression, or too large a one."""


class Match(Protocol):
    """Where a pattern was found."""

    def group(self) -> str: ...

    def groups(self) -> tuple[str | None, ...]:
        """What each group found; None for one that took no part."""
        ...


class Pattern(Protocol):
    """A regular expression that is ready to be used."""

    programsize: int
    """How many instructions it takes: matching costs at most that many for each character."""
    groups: int
    """How many groups it has."""

    def search(self, text: str) -> Match | None: ...

    def finditer(self, text: str) -> Iterator[Match]: ...


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Pattern:
    """The pattern, ready to `search`. Kept: for patterns that come from few, such as schemas."""
    return fresh(pattern, most=LARGEST)


@lru_cache(maxsize=64)
def bounded(pattern: str) -> Pattern:
    """The pattern, ready to `search`: for those that users write into objects. It must be small, and few are kept."""
    return fresh(pattern, most=SMALL)


def fresh(pattern: str, *, most: int) -> Pattern:
    """The pattern, which may take this many bytes, and is not kept for long."""
    import re2  # noqa: PLC0415 - many processes never need it

    options = re2.Options()
    options.max_mem = most
    options.log_errors = False  # they are raised
    try:
        found: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        raise BadPattern(_words(error)) from None
    return found


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
