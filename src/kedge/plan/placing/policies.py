"""Policies: how many clusters a policy asks for, and the hash that identifies a policy.

The number of clusters that PickN takes is not part of the policy's hash: one more or one fewer is no new policy, and is
noted beside it (kubefleet.md §1.6).
"""

from __future__ import annotations

import base64

from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.plan.digest import digest


def policy_hash(policy: PlacementPolicy | None) -> str:
    """The hash of a policy, in base64 as JSON writes bytes."""
    plain = None if policy is None else replace(policy, number_of_clusters=None)
    return base64.b64encode(digest(plain).encode()).decode()


def number_of_clusters(policy: PlacementPolicy | None) -> str | None:
    """How many clusters PickN takes, as it is noted beside the policy; None for other types."""
    if policy is None or policy.placement_type != PlacementType.pick_n or policy.number_of_clusters is None:
        return None
    return str(policy.number_of_clusters)


def is_ignored(policy: PlacementPolicy | None, dialect: Dialect) -> bool:
    """Whether this policy is not acted on: KubeFleet ignores a PickFixed that names no cluster."""
    return dialect is Dialect.kubefleet and names_no_cluster(policy)


def names_no_cluster(policy: PlacementPolicy | None) -> bool:
    """Whether this is a PickFixed that names no cluster."""
    return policy is not None and policy.placement_type is PlacementType.pick_fixed and not policy.cluster_names


def wanted_number(policy: PlacementPolicy | None) -> int:
    """How many clusters a policy asks for; 0 if it takes all that match."""
    if policy is None or policy.placement_type == PlacementType.pick_all:
        return 0
    if policy.placement_type == PlacementType.pick_n:
        return policy.number_of_clusters or 0
    return len(policy.cluster_names)


def wants_no_cluster(policy: PlacementPolicy | None) -> bool:
    """Whether a policy wants no cluster at all."""
    takes_all = policy is None or policy.placement_type == PlacementType.pick_all
    return not takes_all and not wanted_number(policy)
