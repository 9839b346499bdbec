"""Policies: how one policy is told from another.

How many clusters PickN takes is not part of it: to take one more or one fewer is no new policy, and is written beside
it (kubefleet.md §1.6).
"""

from __future__ import annotations

import base64

from msgspec.structs import replace

from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.plan.digest import digest


def policy_hash(policy: PlacementPolicy | None) -> str:
    """What tells this policy from others, as bytes in JSON."""
    plain = None if policy is None else replace(policy, number_of_clusters=None)
    return base64.b64encode(digest(plain).encode()).decode()


def number_of_clusters(policy: PlacementPolicy | None) -> str | None:
    """How many clusters PickN takes, as it is noted beside the policy; None for other types."""
    if policy is None or policy.placement_type != PlacementType.pick_n or policy.number_of_clusters is None:
        return None
    return str(policy.number_of_clusters)
