"""Verbs: what comes of asking for a change, as data. Who asks writes it, and says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Answer(Struct, frozen=True):
    """What is said to a verb, and what is written for it: a merge patch of the object, which may be nothing."""

    message: str
    patch: Mapping[str, Any] = {}
    is_refused: bool = False
    """Then nothing is written."""


def refused(message: str) -> Answer:
    """No, and why."""
    return Answer(message, is_refused=True)
