"""Quiet: no warnings in the log while what goes wrong is told in words of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(level: int = logging.CRITICAL) -> Iterator[None]:
    """Log nothing below this level meanwhile."""
    log = logging.getLogger("kedge")
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)
