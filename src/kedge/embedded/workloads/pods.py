"""Pods: what can be said of one, and how one is made from a template. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from kedge.api.condition import TRUE, find_condition
from kedge.api.meta import OwnerReference
from kedge.embedded.workloads.kinds import Pod, PodCondition, Template

READY = "Ready"
FINISHED = ("Succeeded", "Failed")


def is_finished(pod: Pod) -> bool:
    """Whether it ran to its end, well or not."""
    return pod.status.phase in FINISHED


def is_terminating(pod: Pod) -> bool:
    """Whether it is on its way out, and not at its end yet."""
    return pod.metadata.deletion_timestamp is not None and not is_finished(pod)


def is_active(pod: Pod) -> bool:
    """Whether it counts: neither at its end nor on its way out."""
    return pod.metadata.deletion_timestamp is None and not is_finished(pod)


def ready_condition(pod: Pod) -> PodCondition | None:
    return find_condition(pod.status.conditions, READY)


def is_ready(pod: Pod) -> bool:
    condition = ready_condition(pod)
    return condition is not None and condition.status == TRUE


def ready_since(pod: Pod) -> datetime | None:
    """When it became ready, if it is and says so."""
    condition = ready_condition(pod)
    return condition.last_transition_time if condition is not None and condition.status == TRUE else None


def becomes_available(pod: Pod, min_ready_seconds: int) -> datetime | None:
    """When it will have been ready for so long, or has been; None if it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + timedelta(seconds=min_ready_seconds)


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether it is ready, and has been for long enough."""
    if min_ready_seconds == 0:
        return is_ready(pod)
    due = becomes_available(pod, min_ready_seconds)
    return due is not None and due <= now


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """In how many seconds the next of these pods becomes available by time alone; None if none will."""
    dues = (becomes_available(pod, min_ready_seconds) for pod in pods)
    later = [(due - now).total_seconds() for due in dues if due is not None and due > now]
    return min(later, default=None)


def restarts(pod: Pod) -> int:
    """How often the container that restarted most did."""
    return max((int(status.get("restartCount", 0)) for status in pod.status.container_statuses), default=0)


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
