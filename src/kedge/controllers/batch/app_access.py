"""App access: the Applications and the revisions of Applications that rollouts refer to, read each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.keys import COMPONENT_LABEL, NAME_LABEL, REVISION_LABEL
from kedge.api.oam.rollout_status import RollingState, RolloutStatus
from kedge.api.resource import Resource
from kedge.controllers.batch.located import FindRollouts, NotLocated
from kedge.controllers.batch.workloads import WorkloadAccess, in_short
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of, untyped
from kedge.kube.errors import NotFound
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.batching.records import target_ref
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.fields import Object, text
from kedge.plan.oam.app_revisions import AppRevision, app_revision
from kedge.plan.text import object_name

APPLICATION: Final = Application.resource
APP_REVISION: Final = ApplicationRevision.resource
_AT_START: Final = (None, RollingState.locating)


class AppAccess:
    """The Applications of one cluster."""

    def __init__(self, cluster: Cluster, workloads: WorkloadAccess, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = workloads.client
        self._workloads = workloads
        self._places: Sequence[str | None] = namespaces or (None,)

    def sources(self, resource: Resource, find: FindRollouts, names: Callable[[Any], Iterable[str]]) -> list[Source]:
        """What wakes rollouts: objects of this kind that they refer to, by name."""
        caches = [
            self._cluster.cache(metadata_of(resource), place, transform=in_short, optional=True)
            for place in self._places
        ]
        return [self._cluster.watch(cache, to=partial(_keys, find, names)) for cache in caches]

    async def application(self, name: str, namespace: str) -> Object | None:
        """An Application as it is now."""
        try:
            return await self._client.get(untyped(APPLICATION), name, namespace)
        except NotFound:
            return None

    async def revision(self, name: str, namespace: str) -> AppRevision | None:
        """A revision of an Application."""
        try:
            return app_revision(await self._client.get(ApplicationRevision, name, namespace))
        except NotFound:
            return None

    async def moved_to(self, status: RolloutStatus, namespace: str) -> tuple[str, str, str]:
        """Application, component and revision of the workload that a rollout moves to, or moved to last."""
        ref = target_ref(status, namespace)
        live = await self._workloads.get(ref) if ref is not None else None
        application, component, revision = (
            text(live, "metadata", "labels", label) for label in (NAME_LABEL, COMPONENT_LABEL, REVISION_LABEL)
        )
        return application, component, revision


def is_at_start(status: RolloutStatus) -> bool:
    """Whether it is still to be found out what moves."""
    return status.rolling_state in _AT_START


def missing(resource: Resource, name: str, namespace: str) -> NotLocated:
    """Something that a rollout refers to does not exist."""
    return NotLocated(waiting_for(object_name(resource.kind, namespace, name), BatchCode.missing))


def _keys(
    find: FindRollouts, names: Callable[[Any], Iterable[str]], seen: WatchedObject[PartialObject]
) -> Iterable[Key]:
    return [key for key, rollout in find(seen.meta.namespace or "") if seen.meta.name in names(rollout)]
