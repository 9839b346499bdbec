"""Wait: what a unit waits for, as data. The scope writes the sentence, last, and decides nothing on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from kedge.plan.moving.unit import Proof


class Code(StrEnum):
    """What the kernel itself makes units wait for. Scopes have further codes of their own."""

    no_room = "NoRoom"
    """As many units as may hold something do."""
    in_turn = "InTurn"
    """Units are added so many at a time, and those added last are not proven yet."""
    budget_spent = "BudgetSpent"
    """As many units as may be unavailable are, or cannot be told from such."""
    allowance_spent = "AllowanceSpent"
    """What moving the unit costs is not left of the allowance."""
    revision_unproven = "RevisionUnproven"
    """As many units as may hold a revision that nobody has proven do."""


class Blocker(Struct, frozen=True):
    """A unit or a gate that is waited for, and what is known of it."""

    key: str
    proof: Proof | None = None
    """None of what is no unit."""
    since: datetime | None = None
    """Since when that is known of it."""
    until: datetime | None = None
    """When time alone will do, if that is what it takes."""
    reported: str = ""
    """What it reports of itself, in its own words."""


class Wait(Struct, frozen=True):
    """What one unit waits for."""

    unit: str
    code: str
    numbers: Mapping[str, int] = {}
    blockers: tuple[Blocker, ...] = ()
