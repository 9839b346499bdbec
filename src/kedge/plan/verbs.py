"""Verbs: the answer to a command that changes something, as data: a patch to write and a message to print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class VerbAnswer(Struct, frozen=True):
    """The answer to a command: a message, and a merge patch of the object, which may be empty."""

    message: str
    patch: Mapping[str, Any] = {}
    is_refused: bool = False
    """Whether the command is refused: then nothing is written."""


def refused(message: str) -> VerbAnswer:
    """A refusal, and why."""
    return VerbAnswer(message, is_refused=True)
