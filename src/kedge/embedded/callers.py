"""Callers: who asks, and what follows from it.

What they may do is not asked yet: whoever is known may do everything.
"""

from __future__ import annotations

from msgspec import Struct


class Caller(Struct, frozen=True):
    """One client of a server. `agent` is the program it says it is (its User-Agent)."""

    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    agent: str = "kedge"
    sees_owners: bool = True  # is told who owns which field: `managedFields`, which most programs throw away


WITHIN = Caller(sees_owners=False)  # programs in the same process
