"""Making and deleting the pods of a workload, and telling of it as Kubernetes' controllers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api.meta import Object
from kedge.embedded.workloads.kinds import Pod
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import ApiError, NotFound


class PodWrites:
    """What one component does to pods, in one cluster."""

    def __init__(self, view: View, component: str) -> None:
        self._client = view.client
        self._events = view.events(component)

    async def create(self, owner: Object, body: Mapping[str, Any]) -> None:
        try:
            made = await self._client.create(Pod, body, manager=MANAGER)
        except ApiError as error:
            self._events.warning(owner, "FailedCreate", f"Error creating: {error.message}")
            raise
        self._events.normal(owner, "SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def delete(self, owner: Object, pod: Pod) -> None:
        """Delete exactly this pod; nothing is told of one that is gone already."""
        meta = pod.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except NotFound:
            return
        except ApiError as error:
            self._events.warning(owner, "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._events.normal(owner, "SuccessfulDelete", f"Deleted pod: {meta.name}")
