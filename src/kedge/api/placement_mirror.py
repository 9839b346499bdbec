"""ClusterResourcePlacementStatus: a placement's status, readable in the namespace it places."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from msgspec import field

from kedge.api.markers import AGE, Column, Definition, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.placement import CATEGORIES, GROUP
from kedge.api.placement_status import PlacementStatus
from kedge.api.resource import Resource


class ClusterResourcePlacementStatus(Value, frozen=True, gc=False):
    """The status of the ClusterResourcePlacement of the same name, for those who can read this namespace only."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterResourcePlacementStatus", "clusterresourceplacementstatuses"
    )
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1"), Version("v1beta1", storage=True)),
        short_names=("crps",),
        categories=CATEGORIES,
        columns=(
            Column("Resource-Index", ".sourceStatus.observedResourceIndex"),
            Column("Last-Updated", ".lastUpdatedTime"),
            AGE,
        ),
    )
    source_status: PlacementStatus
    """The placement's status."""
    last_updated_time: datetime
    """When it was copied."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
