"""Reserved namespaces: says on a ResourcePlacement in a namespace of the system why it is ignored.

    ReservedNamespaces(hub, clock=clock).controller

That is all a hub writes there: whoever wrote it may be a member. It is said once for each generation, so that nobody
keeps a hub busy by taking it away again.
"""

from __future__ import annotations

from typing import Final

from kedge.api.fleet import is_not_followed
from kedge.api.placement import ResourcePlacement
from kedge.controllers.hub.status_copies import status_patch
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import generation_changed
from kedge.plan.reporting.placement_status import not_followed_status
from kedge.plan.selecting.selectors import namespace_problem

MANAGER: Final = "kedge-status"


class ReservedNamespaces:
    """The placements of one hub that are left alone."""

    def __init__(self, hub: Cluster, *, clock: Clock) -> None:
        self._client = hub.client
        self._clock = clock
        self._placements = hub.cache(ResourcePlacement, only=is_not_followed)
        source = hub.watch(self._placements, when=generation_changed)
        self.controller = Controller("placements in reserved namespaces", self.reconcile, [source])

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or placement.metadata.deletion_timestamp is not None:
            return Outcome.done
        before, problem = placement.status, namespace_problem(placement)
        after = not_followed_status(placement, problem, self._clock.now())
        if after == before:
            return Outcome.done
        body = {"status": status_patch(before, after)}
        try:
            await self._client.amend(ResourcePlacement, placement.metadata, body, manager=MANAGER, subresource="status")
        except NotFound:
            return Outcome.done
        return Outcome.done
