"""Placement status: what a placement selected, and what became of it on each cluster."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import Schema
from kedge.api.meta import Value


class EnvelopeType(StrEnum):
    """What kind of object wraps others."""

    config_map = "ConfigMap"
    cluster_resource_envelope = "ClusterResourceEnvelope"
    resource_envelope = "ResourceEnvelope"


_V1_HAS_NO_CONFIG_MAPS = Schema(
    versions=("v1",), default=None, enum=(EnvelopeType.cluster_resource_envelope, EnvelopeType.resource_envelope)
)


class EnvelopeIdentifier(Value, frozen=True, gc=False):
    """Which object wrapped this one."""

    name: str
    """The envelope's name."""
    namespace: str | None = None
    """The envelope's namespace, if it has one."""
    type: Annotated[EnvelopeType, Schema(default=EnvelopeType.config_map), _V1_HAS_NO_CONFIG_MAPS] = (
        EnvelopeType.config_map
    )
    """What kind of object the envelope is."""


class ResourceIdentifier(Value, frozen=True, gc=False):
    """Which object is meant."""

    version: str
    """The version of its API."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    group: str = ""
    """The group of its API; empty for the core group."""
    namespace: str | None = None
    """Its namespace, if it has one."""
    envelope: EnvelopeIdentifier | None = None
    """The object it was wrapped in, if any."""


class FailedPlacement(ResourceIdentifier, frozen=True, kw_only=True, gc=False):
    """An object that could not be placed, or does not work."""

    condition: Condition
    """What is wrong with it."""


class PatchDetail(Value, frozen=True, gc=False):
    """One field that differs between hub and member."""

    path: str
    """Where, as a JSON pointer."""
    value_in_member: str | None = None
    """What the member has; absent if nothing."""
    value_in_hub: str | None = None
    """What the hub has; absent if nothing."""


class DriftedPlacement(ResourceIdentifier, frozen=True, kw_only=True, gc=False):
    """An object that was changed on the member after it was placed."""

    observation_time: datetime
    """When the drift was last seen."""
    target_cluster_observed_generation: Annotated[int, Schema(format="int64")]
    """The generation of the object on the member."""
    first_drifted_observed_time: datetime
    """When the drift was first seen."""
    observed_drifts: tuple[PatchDetail, ...] = ()
    """Which fields differ."""


class DiffedPlacement(ResourceIdentifier, frozen=True, kw_only=True, gc=False):
    """An object on the member that differs from the hub's and was left alone."""

    observation_time: datetime
    """When the difference was last seen."""
    first_diffed_observed_time: datetime
    """When the difference was first seen."""
    target_cluster_observed_generation: Annotated[int | None, Schema(format="int64")] = None
    """The generation of the object on the member; absent if there is none."""
    observed_diffs: tuple[PatchDetail, ...] = ()
    """Which fields differ."""


class NamespacedName(Value, frozen=True, gc=False):
    """An object by its namespace and name."""

    name: str
    """Its name."""
    namespace: str
    """Its namespace."""


AT_MOST_100 = Schema(max_items=100)


class ClusterPlacementStatus(Value, frozen=True, gc=False):
    """What became of a placement on one cluster; without a name, why there is no further cluster."""

    cluster_name: str = ""
    """Which cluster."""
    observed_resource_index: str | None = None
    """The index of the resources this speaks of."""
    applicable_resource_overrides: tuple[NamespacedName, ...] = ()
    """Overrides of namespaced resources that hold here."""
    applicable_cluster_resource_overrides: tuple[str, ...] = ()
    """Overrides of cluster-wide resources that hold here."""
    failed_placements: Annotated[tuple[FailedPlacement, ...], AT_MOST_100] = ()
    """Objects that could not be placed, or do not work; the first hundred."""
    drifted_placements: Annotated[tuple[DriftedPlacement, ...], AT_MOST_100] = ()
    """Objects that were changed on the member; the first hundred."""
    diffed_placements: Annotated[tuple[DiffedPlacement, ...], AT_MOST_100] = ()
    """Objects that differ and were left alone; the first hundred."""
    conditions: tuple[Condition, ...] = ()
    """How far the placement has got on this cluster."""


class PlacementStatus(Value, frozen=True, gc=False):
    """What a placement selected, and what became of it."""

    selected_resources: tuple[ResourceIdentifier, ...] = ()
    """The objects that were selected."""
    observed_resource_index: str | None = None
    """The index of the resources this status speaks of."""
    placement_statuses: tuple[ClusterPlacementStatus, ...] = ()
    """What became of the placement, cluster by cluster."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """How far the placement has got as a whole."""
