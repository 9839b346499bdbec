"""At rest: what a program takes while nobody wants anything of it, and what it asks of the API server even so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from controlplane.audit import is_write
from controlplane.cluster import Cluster
from kedgebench.program import Program


async def rested(cluster: Cluster, process: Program, user: str, idle: float) -> dict[str, Any]:
    """What a program takes in so many seconds of which nobody wants anything."""
    before, cpu = len(_asked_by(cluster, user)), process.cpu
    await asyncio.sleep(idle)
    events = _asked_by(cluster, user)[before:]
    return {
        "resident": process.resident,
        "start_peak": process.peak,
        "idle_cpu": (process.cpu - cpu) * 60.0 / idle,
        "requests": _by_verb(events),
        "writes": sum(map(is_write, events)),
    }


def _asked_by(cluster: Cluster, user: str) -> list[dict[str, Any]]:
    """The requests of a user so far."""
    return [event for event in cluster.audit_events() if event["user"].get("username") == user]


def _by_verb(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return dict(Counter(f"{event['verb']} {_asked_for(event)}" for event in events))


def _asked_for(event: Mapping[str, Any]) -> str:
    return str(event.get("objectRef", {}).get("resource") or event["requestURI"])
