"""Placements as controllers of the hub see them that do not care what became of them."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_status import PlacementStatus
from kedge.api.twins import Twins
from kedge.controllers.hub.followed import followed
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change

_NOTHING = PlacementStatus()


def without_status(placement: ClusterResourcePlacement) -> ClusterResourcePlacement:
    """The same placement, saying nothing of its clusters: of a thousand of them that is most of it."""
    return replace(placement, status=_NOTHING)


def wanted_placements(hub: Cluster, twins: Twins) -> Cache[ClusterResourcePlacement]:
    """What users want of every placement: one cache for all who need no more."""
    return followed(hub, twins.placement, transform=without_status)


def asks_for_more(change: Change[ClusterResourcePlacement]) -> bool:
    """Whether a placement came, went, or asks for something else: not for a change of status alone."""
    return _asked(change.old) != _asked(change.new)


def _asked(placement: ClusterResourcePlacement | None) -> object:
    if placement is None:
        return None
    meta = placement.metadata
    return meta.uid, meta.generation, meta.deletion_timestamp, meta.finalizers, meta.annotations
