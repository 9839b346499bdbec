"""Pod trouble: why a pod does not start, or does not stay up, as far as the pod itself says it.

A workload only says how many of its pods are available. Its pods say why: `ImagePullBackOff`, `CrashLoopBackOff`,
`CreateContainerConfigError`, `Unschedulable`. A pod that is merely starting is in no trouble until that has taken long:
then it is slow. What a program printed before it ended is not repeated: it may hold anything, passwords too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, Observed, find_condition, is_true
from kedge.api.meta import ObjectMeta, Value
from kedge.plan.availability.verdict import Verdict, because

SLOW_AFTER: Final = timedelta(seconds=30)
"""How long a pod may take to become ready before that is worth a word."""
TEMPLATE_HASH: Final = "pod-template-hash"
CRASH_LOOP: Final = "CrashLoopBackOff"
RESTARTED: Final = "Restarted"
"""Of a container that runs again after it ended, and is not ready yet."""
_STARTING: Final = ("", "ContainerCreating", "PodInitializing")
_TAKE_TURNS: Final = {"ErrImagePull": "pull", "ImagePullBackOff": "pull", CRASH_LOOP: "crash", RESTARTED: "crash"}
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class Waiting(Value, frozen=True, gc=False):
    """What a container waits for."""

    reason: str = ""
    message: str = ""


class Terminated(Value, frozen=True, gc=False):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""


class ContainerState(Value, frozen=True, gc=False):
    """What a container does, unless it runs."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Value, frozen=True, gc=False):
    """How a container is doing."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Value, frozen=True, gc=False):
    """How a pod is doing."""

    phase: str = ""
    conditions: tuple[Observed, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Workload(Struct, frozen=True, gc=False):
    """Whose pod it is."""

    group: str
    kind: str
    namespace: str
    name: str


class PodTrouble(Struct, frozen=True, gc=False):
    """What is wrong with one pod. `revision` is the owner that made it: the ReplicaSet of a Deployment.

    `since` is when a pod that is merely slow began to be.
    """

    workload: Workload
    revision: str
    pod: str
    created: datetime | None
    reason: str
    message: str = ""
    container: str = ""
    since: datetime | None = None

    def is_shown(self, now: datetime) -> bool:
        """Whether it is worth a word: what is slow once it has been for long enough, everything else at once."""
        return self.since is None or now - self.since >= SLOW_AFTER

    def is_like(self, other: PodTrouble | None) -> bool:
        """Whether it is the same trouble of the same pod. Pulling an image and waiting to pull it again take turns."""
        if other is None or self == other:
            return self == other
        kind = _TAKE_TURNS.get(self.reason)
        same_place = (self.pod, self.container) == (other.pod, other.container)
        return same_place and kind is not None and kind == _TAKE_TURNS.get(other.reason)

    def __str__(self) -> str:
        where = f"pod {self.pod}, container {self.container}" if self.container else f"pod {self.pod}"
        return f"{where}: {self.reason}{because(self.message)}"


def trouble_of(meta: ObjectMeta, status: PodStatus) -> PodTrouble | None:
    """What is wrong with a pod; None if nothing is, if it is on its way out, or if it is nobody's."""
    if meta.deletion_timestamp is not None:
        return None
    wrong = _of_scheduling(status) or _of_containers(status)
    found = wrong or _of_readiness(status)
    owner = _owner(meta) if found else None
    if found is None or owner is None:
        return None
    reason, message, container = found
    workload, revision = owner
    since = None if wrong else _slow_since(meta, status)
    return PodTrouble(workload, revision, meta.name, meta.creation_timestamp, reason, message, container, since)


def explained(verdict: Verdict, troubles: Iterable[PodTrouble], now: datetime) -> Verdict:
    """The verdict on a workload, with the trouble of one of its pods as the cause of its not being available."""
    cause = None if verdict.available else _cause([one for one in troubles if one.is_shown(now)])
    return replace(verdict, message=f"{verdict.message.rstrip('.')}: {cause}") if cause else verdict


def _cause(troubles: list[PodTrouble]) -> PodTrouble | None:
    """The trouble to name: not of a slow pod if another is worse, of the newest revision, of the first by name."""
    known = [one for one in troubles if one.since is None] or troubles
    newest = max(known, key=lambda one: (one.created or _LONG_AGO, one.revision), default=None)
    return min((one for one in known if one.revision == newest.revision), key=_by_pod) if newest else None


def _by_pod(trouble: PodTrouble) -> str:
    return trouble.pod


def _of_scheduling(status: PodStatus) -> tuple[str, str, str] | None:
    found = find_condition(status.conditions, "PodScheduled")
    return (found.reason, found.message, "") if found and found.status == FALSE and found.reason else None


def _of_containers(status: PodStatus) -> tuple[str, str, str] | None:
    everyone = (*status.init_container_statuses, *status.container_statuses)
    for one in everyone:
        if found := _of_container(one):
            return (*found, one.name if len(everyone) > 1 else "")
    return None


def _of_readiness(status: PodStatus) -> tuple[str, str, str] | None:
    """What a pod that is not ready is at."""
    if is_true(status.conditions, "Ready"):
        return None
    waiting = (one.state.waiting for one in (*status.init_container_statuses, *status.container_statuses))
    starting = next((one.reason for one in waiting if one is not None and one.reason), "")
    ready = find_condition(status.conditions, "Ready")
    at = starting or (status.phase if status.phase == "Pending" else "NotReady")
    return at, ready.message if ready else "", ""


def _slow_since(meta: ObjectMeta, status: PodStatus) -> datetime:
    ready = find_condition(status.conditions, "Ready")
    return (ready.last_transition_time if ready else None) or meta.creation_timestamp or _LONG_AGO


def _of_container(status: ContainerStatus) -> tuple[str, str] | None:
    waiting, ended = status.state.waiting, status.last_state.terminated
    if waiting is not None and waiting.reason not in _STARTING:
        # The message of a crash loop says how long the next restart is put off, which is another time each time.
        return waiting.reason, _how(ended) if ended and waiting.reason == CRASH_LOOP else waiting.message
    if ended is not None and ended.exit_code and status.restart_count > 0 and not status.ready:
        return RESTARTED, _how(ended)
    return None


def _how(ended: Terminated) -> str:
    return f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else "")


def _owner(meta: ObjectMeta) -> tuple[Workload, str] | None:
    """The workload a pod belongs to, and who made it. A ReplicaSet is called as its Deployment, with a hash added."""
    owner = next((one for one in meta.owner_references if one.controller), None)
    if owner is None:
        return None
    group, slash, _ = owner.api_version.partition("/")
    workload = Workload(group if slash else "", owner.kind, meta.namespace or "", owner.name)
    suffix = f"-{meta.labels.get(TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        workload = replace(workload, kind="Deployment", name=owner.name.removesuffix(suffix))
    return workload, owner.name
