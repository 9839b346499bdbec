"""Making and deleting the pods of a workload, and telling of it as Kubernetes' controllers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api.meta import Object, OwnerReference
from kedge.api.pods import Pod, Template
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


def from_template(
    template: Template, owner: OwnerReference, namespace: str | None, *, name: str = "", generate_name: str = ""
) -> dict[str, Any]:
    """The pod to create, with a name or with the beginning of one, which belongs to its owner."""
    meta = template.get("metadata") or {}
    kept = {part: meta[part] for part in ("labels", "annotations", "finalizers") if meta.get(part)}
    named = {"name": name} if name else {"generateName": generate_name}
    return {
        "metadata": {**named, "namespace": namespace, **kept, "ownerReferences": [owner]},
        "spec": template.get("spec") or {},
    }
