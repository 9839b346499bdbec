"""Orphaned approvals: deletes requests for approval whose run is gone.

    OrphanedApprovals(hub, kinds).controller

A run takes its requests along when it goes. One that a slow server makes only after that would stay for ever, and be
taken for its own by the next run of that name. What users made themselves is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.fleet import IS_LATEST_APPROVAL, TARGET_RUN
from kedge.api.placement_kinds import Approval, PlacementKinds
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.controllers.hub.caches import APPROVALS, RUN, RUNS, named, trusted_cache
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject


class OrphanedApprovals:
    """The requests of runs of one kind."""

    def __init__(self, hub: Cluster, kinds: PlacementKinds) -> None:
        self._client = hub.client
        self._kinds = kinds
        self._runs = trusted_cache(hub, kinds.run, indexes=RUNS)
        self._approvals = trusted_cache(hub, kinds.approval, indexes=APPROVALS)
        sources: list[Source] = [
            hub.watch(self._approvals, when=lambda change: change.old is None),
            hub.watch(self._runs, to=self._asked_by, when=lambda change: change.new is None),
        ]
        self.controller = Controller(f"orphaned requests of {kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        request = self._approvals.get(key.name, key.namespace)
        if request is None or request.metadata.deletion_timestamp is not None or not _is_asked_by_a_run(request):
            return Outcome.done
        if not await self._has_run(request.metadata.labels[TARGET_RUN], key.namespace):
            await self._client.remove(self._kinds.approval, request.metadata)
        return Outcome.done

    async def _has_run(self, name: str, namespace: str | None) -> bool:
        """That there is none is a reason to delete: so the server is asked, should the cache not know it yet."""
        if self._runs.get(name, namespace) is not None:
            return True
        try:
            await self._client.get(self._kinds.run, name, namespace)
        except NotFound:
            return False
        return True

    def _asked_by(self, seen: WatchedObject[ClusterStagedUpdateRun]) -> Iterable[Key]:
        for request in self._approvals.by(RUN, named(seen.meta.namespace, seen.meta.name)):
            yield Key(seen.cluster, request.metadata.namespace, request.metadata.name)


def _is_asked_by_a_run(request: Approval) -> bool:
    labels = request.metadata.labels
    return TARGET_RUN in labels and IS_LATEST_APPROVAL in labels
