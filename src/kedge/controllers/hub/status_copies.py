"""Status copies: a ClusterResourcePlacement's status, copied into the one namespace it places, for those who can
read only that (`statusReportingScope: NamespaceAccessible`).

The copy goes before the status itself, so that what the placement says of its copy is true when it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kedge.api.condition import FALSE, TRUE
from kedge.api.meta import OwnerReference
from kedge.api.placement import ClusterResourcePlacement, ClusterResourcePlacementStatus, StatusReportingScope
from kedge.api.placement_status import PlacementStatus
from kedge.api.reasons import STATUS_SYNC_FAILED, STATUS_SYNC_SUCCEEDED, STATUS_SYNCED
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.errors import AlreadyExists, ApiError, Conflict, ServerError, TooManyRequests, as_conflict
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.findings import Finding

MANAGER: Final = "kedge-status"


class NamespaceStatuses:
    """The copies on one hub."""

    def __init__(self, hub: Cluster, *, clock: Clock) -> None:
        self._client = hub.client
        self._clock = clock
        self._copies = hub.cache(ClusterResourcePlacementStatus)
        self.source: Source = hub.watch(self._copies, to=_original)

    async def keep(self, placement: ClusterResourcePlacement, status: PlacementStatus) -> Finding | None:
        """Make the copy equal to this status; gives what is to be said of that, if a copy is wanted."""
        if placement.spec.status_reporting_scope != StatusReportingScope.namespace_accessible:
            return None
        namespaces = {one.name for one in status.selected_resources if one.kind == "Namespace" and not one.group}
        if len(namespaces) != 1:
            return _failed(f"The status goes into the one namespace that is placed, and there are {len(namespaces)}")
        (namespace,) = namespaces
        try:
            await self._copy(placement, namespace, status)
        except (Conflict, TooManyRequests, ServerError):
            raise
        except ApiError as error:
            return _failed(f"The status cannot be written into namespace {namespace}: {error.message}")
        message = f"The status can be read in namespace {namespace}"
        return Finding(STATUS_SYNCED, TRUE, STATUS_SYNC_SUCCEEDED, message)

    async def _copy(self, placement: ClusterResourcePlacement, namespace: str, status: PlacementStatus) -> None:
        name = placement.metadata.name
        copy = self._copies.get(name, namespace)
        if copy is None:
            await self._create(placement, namespace, status)
        elif copy.source_status != status:
            body = {"sourceStatus": status_patch(copy.source_status, status), "lastUpdatedTime": self._now()}
            await self._client.amend(ClusterResourcePlacementStatus, copy.metadata, body, manager=MANAGER)

    async def _create(self, placement: ClusterResourcePlacement, namespace: str, status: PlacementStatus) -> None:
        kind, meta = placement.resource, placement.metadata
        owner = OwnerReference(
            api_version=kind.api_version,
            kind=kind.kind,
            name=meta.name,
            uid=meta.uid,
            controller=True,
            block_owner_deletion=True,
        )
        body: dict[str, Any] = {
            "metadata": {"name": meta.name, "namespace": namespace, "ownerReferences": [owner]},
            "sourceStatus": status,
            "lastUpdatedTime": self._now(),
        }
        try:
            await self._client.create(ClusterResourcePlacementStatus, body, manager=MANAGER)
        except AlreadyExists as error:
            raise as_conflict(error) from error

    def _now(self) -> Any:
        return self._clock.now().replace(microsecond=0)


def _failed(message: str) -> Finding:
    return Finding(STATUS_SYNCED, FALSE, STATUS_SYNC_FAILED, message)


def _original(seen: WatchedObject[ClusterResourcePlacementStatus]) -> Iterable[Key]:
    return (Key(seen.cluster, None, seen.meta.name),)


def status_patch(old: PlacementStatus, new: PlacementStatus) -> dict[str, Any]:
    """The merge patch that makes new of old; a list that did not change is not sent."""
    fields = {
        "conditions": (old.conditions, new.conditions),
        "observedResourceIndex": (old.observed_resource_index, new.observed_resource_index),
        "selectedResources": (old.selected_resources, new.selected_resources),
        "placementStatuses": (old.placement_statuses, new.placement_statuses),
    }
    return {name: after or None for name, (before, after) in fields.items() if before != after}
