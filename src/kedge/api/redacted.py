"""Redacted: values that hold secrets, and never show them."""

from __future__ import annotations

from typing import Any


class Redacted:
    """Mixed into Structs that hold secrets: printing one, or a traceback that shows one, tells only its type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []
