"""Pod facts: whose a pod is, of which revision, whether it is ready and available, and why it is not.

A workload only counts its pods. A pod itself says why it does not start, or does not stay up: `ImagePullBackOff`,
`CrashLoopBackOff`, `CreateContainerConfigError`, `Unschedulable`. One that is merely starting says what it waits for,
and since when. What a program printed before it ended is not repeated: it may hold anything, passwords too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, find_condition, is_true
from kedge.api.meta import ObjectMeta, controller_of
from kedge.api.pods import ContainerStatus, Pod, PodCondition, PodStatus, Terminated

READY: Final = "Ready"
ENDED: Final = ("Succeeded", "Failed")
TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_LABELS: Final = (TEMPLATE_HASH, "controller-revision-hash")
CRASH_LOOP: Final = "CrashLoopBackOff"
RESTARTED: Final = "Restarted"
"""Of a container that runs again after it ended, and is not ready yet."""
STUCK_REASONS: Final = frozenset(
    {
        CRASH_LOOP,
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "Unschedulable",
    }
)
"""Reasons that do not pass by themselves."""
_STARTING: Final = ("", "ContainerCreating", "PodInitializing")
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class PodWorkload(Struct, frozen=True, gc=False):
    """Whose pod it is."""

    group: str
    kind: str
    namespace: str
    name: str


class PodOwner(Struct, frozen=True, gc=False):
    """The workload of a pod, and what made the pod: of a Deployment its ReplicaSet, of others the workload itself."""

    workload: PodWorkload
    maker: str


class NotReady(Struct, frozen=True, gc=False):
    """Why a pod is not ready. `container` is named if the pod has several; `since` is set if it is merely slow."""

    reason: str
    message: str = ""
    container: str = ""
    since: datetime | None = None


def is_finished(pod: Pod) -> bool:
    """Whether it ran to its end, well or not."""
    return pod.status.phase in ENDED


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
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def revision_of(meta: ObjectMeta) -> str:
    """The label that says of which revision of its workload a pod is; empty if it has none."""
    return next((meta.labels[label] for label in REVISION_LABELS if label in meta.labels), "")


def owner_of(meta: ObjectMeta) -> PodOwner | None:
    """Whose pod it is; None if nobody's. A ReplicaSet is called as its Deployment, with a hash added."""
    owner = controller_of(meta)
    if owner is None:
        return None
    group, slash, _ = owner.api_version.partition("/")
    workload = PodWorkload(group if slash else "", owner.kind, meta.namespace or "", owner.name)
    suffix = f"-{meta.labels.get(TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        workload = replace(workload, kind="Deployment", name=owner.name.removesuffix(suffix))
    return PodOwner(workload, owner.name)


def why_not_ready(meta: ObjectMeta, status: PodStatus) -> NotReady | None:
    """Why a pod is not ready; None if it is."""
    return _scheduling_problem(status) or _container_problem(status) or _slow(meta, status)


def stuck_reason(pod: Pod) -> str:
    """Why it cannot become ready, if that does not pass by itself; else empty."""
    found = why_not_ready(pod.metadata, pod.status)
    return found.reason if found is not None and found.reason in STUCK_REASONS else ""


def _scheduling_problem(status: PodStatus) -> NotReady | None:
    found = find_condition(status.conditions, "PodScheduled")
    return NotReady(found.reason, found.message) if found and found.status == FALSE and found.reason else None


def _container_problem(status: PodStatus) -> NotReady | None:
    everyone = (*status.init_container_statuses, *status.container_statuses)
    for one in everyone:
        if found := _problem_of(one):
            return replace(found, container=one.name if len(everyone) > 1 else "")
    return None


def _problem_of(status: ContainerStatus) -> NotReady | None:
    waiting, ended = status.state.waiting, status.last_state.terminated
    if waiting is not None and waiting.reason not in _STARTING:
        # The message of a crash loop says how long the next restart is put off, which is another time each time.
        how = _exit_text(ended) if ended and waiting.reason == CRASH_LOOP else waiting.message
        return NotReady(waiting.reason, how)
    if ended is not None and ended.exit_code and status.restart_count > 0 and not status.ready:
        return NotReady(RESTARTED, _exit_text(ended))
    return None


def _exit_text(ended: Terminated) -> str:
    return f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")


def _slow(meta: ObjectMeta, status: PodStatus) -> NotReady | None:
    """What a pod that is not ready waits for, and since when it is not."""
    if is_true(status.conditions, READY):
        return None
    waiting = (one.state.waiting for one in (*status.init_container_statuses, *status.container_statuses))
    starting = next((one.reason for one in waiting if one is not None and one.reason), "")
    ready = find_condition(status.conditions, READY)
    since = (ready.last_transition_time if ready else None) or meta.creation_timestamp or _LONG_AGO
    reason = starting or (status.phase if status.phase == "Pending" else "NotReady")
    return NotReady(reason, ready.message if ready else "", since=since)
