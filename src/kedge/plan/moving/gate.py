"""Gate: something beside the budget that has to open before units move: a person, time, or proof that still holds.

gate = combined([timed("canary", since, timedelta(hours=1), now), while_proven("canary", units)])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from kedge.plan.moving.unit import Unit
from kedge.plan.moving.wait import Blocker, Wait


class GateCode(StrEnum):
    """What the gates of the kernel wait for. Scopes have further codes of their own."""

    time = "Time"
    proof_lost = "ProofLost"


class Open(Struct, frozen=True):
    """Units may pass."""


class Closed(Struct, frozen=True):
    """No unit may pass."""

    waits: tuple[Wait, ...]
    """What for; never empty."""
    until: datetime | None = None
    """When time alone will change something; None if it will not."""


Gate: TypeAlias = Open | Closed


def combined(gates: Iterable[Gate]) -> Gate:
    """Open if all are; else it waits for all that the closed ones wait for, and until the first of their times."""
    closed = [gate for gate in gates if isinstance(gate, Closed)]
    if not closed:
        return Open()
    times = [gate.until for gate in closed if gate.until is not None]
    return Closed(tuple(wait for gate in closed for wait in gate.waits), min(times, default=None))


def timed(unit: str, since: datetime, duration: timedelta, now: datetime, reported: str = "") -> Gate:
    """Opens when a time has passed since then. `reported` is that time as its user wrote it."""
    until = since + duration
    if now >= until:
        return Open()
    wait = Wait(
        unit, GateCode.time, {"seconds": int(duration.total_seconds())}, (Blocker(unit, None, since, until, reported),)
    )
    return Closed((wait,), until)


def while_proven(unit: str, units: Iterable[Unit], reported: Mapping[str, str] | None = None) -> Gate:
    """Open only while these units are proven: proof can be lost. `reported` is what units report, by their keys."""
    lost = [one for one in units if not one.is_proven]
    if not lost:
        return Open()
    times = [one.proven_at for one in lost if one.proven_at is not None]
    told = reported or {}
    blockers = tuple(
        Blocker(one.counted_as, one.proof, one.since, one.proven_at, told.get(one.key, "")) for one in lost
    )
    return Closed((Wait(unit, GateCode.proof_lost, {"lost": len(lost)}, blockers),), min(times, default=None))
