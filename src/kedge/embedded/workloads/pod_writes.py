"""Writing pods: one made from a template, its conditions set, made and deleted with the events of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import find_condition
from kedge.api.meta import Object, OwnerReference
from kedge.api.pods import Pod, PodCondition, Template
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import ApiError, NotFound

Conditions = tuple[PodCondition, ...]


def with_condition(conditions: Conditions, new: PodCondition, now: datetime) -> Conditions:
    """The conditions with this one: in the place of the one of its type, or before the others.

    While the status stays the same, so does the time of its last change.
    """
    old = find_condition(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else now.replace(microsecond=0)
    new = replace(new, last_transition_time=since)
    if old is None:
        return (new, *conditions)
    return tuple(new if one.type == new.type else one for one in conditions)


def as_written(conditions: Iterable[PodCondition]) -> list[dict[str, Any]]:
    """As the API writes them: a probe nobody made is told, too."""
    return [{"lastProbeTime": None, **to_builtins(one)} for one in conditions]


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
