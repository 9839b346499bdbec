"""Twins: every kind around a placement exists twice, cluster-wide and in a namespace, and behaves the same.

for twins in TWINS:
    manager.add_controller(Scheduler(hub, twins, ...).controller)
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.binding import ClusterResourceBinding, ResourceBinding
from kedge.api.placement import ClusterResourcePlacement, ResourcePlacement
from kedge.api.snapshot import (
    ClusterResourceSnapshot,
    ClusterSchedulingPolicySnapshot,
    ResourceSnapshot,
    SchedulingPolicySnapshot,
)

Placement: TypeAlias = ClusterResourcePlacement | ResourcePlacement
PolicySnapshot: TypeAlias = ClusterSchedulingPolicySnapshot | SchedulingPolicySnapshot
Snapshot: TypeAlias = ClusterResourceSnapshot | ResourceSnapshot
Binding: TypeAlias = ClusterResourceBinding | ResourceBinding


class Twins(Struct, frozen=True):
    """The kinds around one kind of placement."""

    placement: type[Placement]
    policy_snapshot: type[PolicySnapshot]
    resource_snapshot: type[Snapshot]
    binding: type[Binding]

    @property
    def prefix(self) -> str:
        """What the types of a placement's own conditions begin with."""
        return self.placement.resource.kind

    @property
    def name(self) -> str:
        """For names of controllers: the plural of the placement."""
        return self.placement.resource.plural


CLUSTER: Final = Twins(
    ClusterResourcePlacement, ClusterSchedulingPolicySnapshot, ClusterResourceSnapshot, ClusterResourceBinding
)
NAMESPACED: Final = Twins(ResourcePlacement, SchedulingPolicySnapshot, ResourceSnapshot, ResourceBinding)
TWINS: Final = (CLUSTER, NAMESPACED)
