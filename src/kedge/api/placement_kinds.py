"""PlacementKinds: every kind around a placement exists twice, cluster-wide and in a namespace, and behaves the same.

for kinds in PLACEMENT_KINDS:
    manager.add_controller(Scheduler(hub, kinds, ...).controller)
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast

from msgspec import Struct

from kedge.api.binding import ClusterResourceBinding, ResourceBinding
from kedge.api.placement import ClusterResourcePlacement, ResourcePlacement
from kedge.api.snapshot import (
    ClusterResourceSnapshot,
    ClusterSchedulingPolicySnapshot,
    ResourceSnapshot,
    SchedulingPolicySnapshot,
)
from kedge.api.staged import (
    ApprovalRequest,
    ClusterApprovalRequest,
    ClusterStagedUpdateRun,
    ClusterStagedUpdateStrategy,
    StagedUpdateRun,
    StagedUpdateStrategy,
)

Placement: TypeAlias = ClusterResourcePlacement | ResourcePlacement
PolicySnapshot: TypeAlias = ClusterSchedulingPolicySnapshot | SchedulingPolicySnapshot
Snapshot: TypeAlias = ClusterResourceSnapshot | ResourceSnapshot
Binding: TypeAlias = ClusterResourceBinding | ResourceBinding
Strategy: TypeAlias = ClusterStagedUpdateStrategy | StagedUpdateStrategy
Run: TypeAlias = ClusterStagedUpdateRun | StagedUpdateRun
Approval: TypeAlias = ClusterApprovalRequest | ApprovalRequest


class PlacementKinds(Struct, frozen=True):
    """The kinds around one kind of placement.

    Declared as the cluster-wide ones, which have the same attributes: of a union of two types a checker makes, where a
    function is generic, what they have in common, and that is nothing.
    """

    placement: type[ClusterResourcePlacement]
    policy_snapshot: type[ClusterSchedulingPolicySnapshot]
    resource_snapshot: type[ClusterResourceSnapshot]
    binding: type[ClusterResourceBinding]
    strategy: type[ClusterStagedUpdateStrategy]
    run: type[ClusterStagedUpdateRun]
    approval: type[ClusterApprovalRequest]

    @property
    def prefix(self) -> str:
        """What the types of a placement's own conditions begin with."""
        return self.placement.resource.kind

    @property
    def name(self) -> str:
        """For names of controllers: the plural of the placement."""
        return self.placement.resource.plural


CLUSTER: Final = PlacementKinds(
    ClusterResourcePlacement,
    ClusterSchedulingPolicySnapshot,
    ClusterResourceSnapshot,
    ClusterResourceBinding,
    ClusterStagedUpdateStrategy,
    ClusterStagedUpdateRun,
    ClusterApprovalRequest,
)
NAMESPACED: Final = PlacementKinds(
    cast("type[ClusterResourcePlacement]", ResourcePlacement),
    cast("type[ClusterSchedulingPolicySnapshot]", SchedulingPolicySnapshot),
    cast("type[ClusterResourceSnapshot]", ResourceSnapshot),
    cast("type[ClusterResourceBinding]", ResourceBinding),
    cast("type[ClusterStagedUpdateStrategy]", StagedUpdateStrategy),
    cast("type[ClusterStagedUpdateRun]", StagedUpdateRun),
    cast("type[ClusterApprovalRequest]", ApprovalRequest),
)
PLACEMENT_KINDS: Final = (CLUSTER, NAMESPACED)
