"""Parts: what the benchmark consists of, beside the clients."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kedgebench.whole import Whole

_ROOMS = ("embedded", "fleet", "zones", "batches", "alignment")


def _whole(room: str) -> Whole[Any, Any]:
    sizes, part, goals, report = (
        import_module(f"kedgebench.{room}.{name}") for name in ("sizes", "part", "goals", "report")
    )
    return Whole(sizes.FULL, sizes.QUICK, part.Part, goals.judge, report.text)


PARTS: Mapping[str, Whole[Any, Any]] = {room: _whole(room) for room in _ROOMS}
