"""Playing: says on a terminal how far a preview has come, should it take longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from kedge.cli.preview_text import span

_EVERY: Final = 0.5  # seconds
_CLEAR: Final = "\r\033[K"


@contextmanager
def playing(what: str, within: float) -> Iterator[Callable[[float], None]]:
    """Gives whom to tell how many seconds have been played. Says nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    spoken = time.monotonic()

    def says(played: float) -> None:
        nonlocal spoken
        if time.monotonic() - spoken >= _EVERY:
            spoken = time.monotonic()
            click.echo(f"{_CLEAR}playing {what}: {span(played)} of at most {span(within)}", err=True, nl=False)

    try:
        yield says
    finally:
        click.echo(_CLEAR, err=True, nl=False)
