"""Callers: who asks, and what follows from it.

What they may do is not asked yet: whoever is known may do everything.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kedge.api.resource import Resource
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest

_READ: Final = {(one.resource.group, one.resource.kind) for one in (ApprovalRequest, ClusterApprovalRequest)}
"""Kinds of which everybody is told: who wrote an approval is who approved."""


class Caller(Struct, frozen=True):
    """One client of a server. `agent` is the program it says it is (its User-Agent)."""

    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    agent: str = "kedge"
    sees_owners: bool = True  # is told who owns which field: `managedFields`, which most programs throw away

    def sees_owners_of(self, resource: Resource) -> bool:
        """Whether it is told who owns which field of objects of a kind."""
        return self.sees_owners or (resource.group, resource.kind) in _READ


WITHIN = Caller(sees_owners=False)  # programs in the same process
