"""The life of a pod on a node: what comes next, after how long, and what its status says then. Pure.

    Pending -> Running, not ready -> Ready -> (pods of a Job) Succeeded; and, once deleted, gone

`next_stage` never names two stages, and a stage that was carried out is not named again: so a pod comes to rest unless
it is told to flap. A pod's annotations and image say what becomes of it:

    kedge.dev/ready-after: 2s         from running to ready; a Go duration; 200ms unless told
    kedge.dev/never-ready: "true"     not ready, and no longer ready if it was
    kedge.dev/crash-loop: "true"      not ready, its containers in CrashLoopBackOff
    kedge.dev/flap-every: 5s          no longer ready after so long; ready again as at first
    kedge.dev/complete-after: 2s      pods of a Job: from ready to succeeded; 200ms unless told
    kedge.dev/delete-after: 2s        from deleted to gone; at once unless told

An image with ":bad" in it cannot be pulled: such a pod stays Pending, in ImagePullBackOff. All of it may be changed
while the pod runs. The simulated nodes of the real control plane know the same words. Unlike these, a container whose
image is changed restarts: its pod is not ready, and becomes so as at first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins

from kedge.api.condition import FALSE, TRUE
from kedge.api.meta import controller_of
from kedge.api.pods import Container, ContainerStatus, Pod, PodCondition
from kedge.api.times import parse_duration
from kedge.embedded.workloads.pod_writes import as_written, with_condition
from kedge.plan.workloads import pods

NOT_READY = "ContainersNotReady"
PULL, CRASH = "ImagePullBackOff", "CrashLoopBackOff"
_NEW = ContainerStatus()
PREFIX = "kedge.dev/"
DEFAULT_SECONDS = 0.2


class Stage(StrEnum):
    """What becomes of a pod next."""

    runs = "runs"
    cannot_be_pulled = "cannot be pulled"
    is_ready = "is ready"
    is_no_longer_ready = "is no longer ready"
    crashes = "crashes"
    restarts = "restarts"
    completes = "completes"
    goes = "goes"


class Due(Struct, frozen=True):
    """A stage, and how many seconds after it became the next one."""

    stage: Stage
    after: float = 0.0


def next_stage(pod: Pod) -> Due | None:
    """What becomes of the pod if nobody does anything; None if nothing does."""
    if pod.metadata.deletion_timestamp is not None:
        return None if pod.metadata.finalizers else Due(Stage.goes, seconds_told(pod, "delete-after", 0.0))
    match pod.status.phase:
        case "Pending" | "":
            return _start(pod)
        case "Running":
            return _next_of_running(pod)
    return None


def _start(pod: Pod) -> Due | None:
    if not has_bad_image(pod):
        return Due(Stage.runs)
    return None if _waits_for(pod, PULL) else Due(Stage.cannot_be_pulled)


def _next_of_running(pod: Pod) -> Due | None:
    if _changed_images(pod):
        return Due(Stage.restarts)
    if has_bad_image(pod):
        return None
    if is_told(pod, "crash-loop"):
        return None if _waits_for(pod, CRASH) else Due(Stage.crashes)
    never = is_told(pod, "never-ready")
    if not pods.is_ready(pod):
        return None if never else Due(Stage.is_ready, seconds_told(pod, "ready-after", DEFAULT_SECONDS))
    if never:
        return Due(Stage.is_no_longer_ready)
    if belongs_to_a_job(pod):
        return Due(Stage.completes, seconds_told(pod, "complete-after", DEFAULT_SECONDS))
    if flaps(pod):
        return Due(Stage.is_no_longer_ready, seconds_told(pod, "flap-every", DEFAULT_SECONDS))
    return None


def _changed_images(pod: Pod) -> frozenset[str]:
    """The containers that run another image than they are to run."""
    wanted = {one.name: one.image for one in pod.spec.containers or ()}
    running = ((one.name, one.image) for one in pod.status.container_statuses if one.image)
    return frozenset(name for name, image in running if wanted.get(name, image) != image)


def _waits_for(pod: Pod, reason: str) -> bool:
    waiting = (status.state.waiting for status in pod.status.container_statuses)
    return any(one is not None and one.reason == reason for one in waiting)


def status_after(stage: Stage, pod: Pod, now: datetime, *, host: str, address: str) -> dict[str, Any]:
    """What changes in the pod's status. `host` and `address` are where it runs, if it begins to."""
    match stage:
        case Stage.runs:
            return _running(pod, now, host, address)
        case Stage.cannot_be_pulled:
            begun = {"phase": "Pending", "startTime": _written(now), "conditions": _not_ready(pod, now, begins=True)}
            return {**begun, "containerStatuses": _containers(pod, _cannot_be_pulled)}
        case Stage.is_ready:
            return _ready(pod, now)
        case Stage.crashes:
            crashed = [_crashed(status, now) for status in _containers(pod, lambda _: _runs_since(now))]
            return {"conditions": _not_ready(pod, now), "containerStatuses": crashed}
        case Stage.restarts:
            return {"conditions": _not_ready(pod, now), "containerStatuses": _restarted(pod, now)}
        case Stage.completes:
            ended = _not_ready(pod, now, reason="PodCompleted")
            return {"phase": "Succeeded", "conditions": ended, "containerStatuses": _completed(pod, now)}
        case _:
            return {
                "conditions": _not_ready(pod, now),
                "containerStatuses": _containers(pod, lambda _: _runs_since(now)),
            }


def _running(pod: Pod, now: datetime, host: str, address: str) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": _written(now),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _not_ready(pod, now, begins=True),
        "containerStatuses": _containers(pod, lambda _: _runs_since(now)),
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [_begun(one, now) for one in pod.spec.init_containers]
    return status


def _ready(pod: Pod, now: datetime) -> dict[str, Any]:
    gates = [gate["conditionType"] for gate in pod.spec.readiness_gates]
    conditions = pod.status.conditions
    for type_ in (*reversed(gates), "ContainersReady", "Ready"):
        conditions = with_condition(conditions, PodCondition(type=type_, status=TRUE), now)
    return {
        "conditions": as_written(conditions),
        "containerStatuses": _containers(pod, lambda _: _runs_since(now, ready=True)),
    }


def _not_ready(pod: Pod, now: datetime, *, reason: str = NOT_READY, begins: bool = False) -> list[dict[str, Any]]:
    """The conditions of a pod that is not ready; of one that begins, also that nothing keeps it from starting."""
    conditions = pod.status.conditions
    for type_ in ("ContainersReady", "Ready"):
        conditions = with_condition(conditions, PodCondition(type=type_, status=FALSE, reason=reason), now)
    if begins:
        conditions = with_condition(conditions, PodCondition(type="Initialized", status=TRUE), now)
    return as_written(conditions)


# What containers say. Go writes a state nobody was in before as an empty one.


def _containers(pod: Pod, how: Callable[[Container], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A status for each container: `how` it is, and what it was restarted before."""
    before = {status.name: status for status in pod.status.container_statuses}
    return [_container(one, before.get(one.name, _NEW), how(one)) for one in pod.spec.containers or ()]


def _container(container: Container, before: ContainerStatus, how: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"restartCount": before.restart_count, "lastState": to_builtins(before.last_state)}
    return {"name": container.name, "image": container.image, "imageID": "", **kept, **how}


def _runs_since(now: datetime, *, ready: bool = False) -> dict[str, Any]:
    return {"ready": ready, "started": True, "state": {"running": {"startedAt": _written(now)}}}


def _cannot_be_pulled(container: Container) -> dict[str, Any]:
    waiting = {"reason": PULL, "message": f"Back-off pulling image {container.image}"}
    return {"ready": False, "started": False, "state": {"waiting": waiting}}


def _crashed(status: dict[str, Any], now: datetime) -> dict[str, Any]:
    waiting = {"reason": CRASH, "message": "back-off restarting failed container"}
    ended = {"exitCode": 1, "reason": "Error", "startedAt": _written(now), "finishedAt": _written(now)}
    return {
        **status,
        "started": False,
        "restartCount": status["restartCount"] + 1,
        "state": {"waiting": waiting},
        "lastState": {"terminated": ended},
    }


def _restarted(pod: Pod, now: datetime) -> list[dict[str, Any]]:
    """Every container as it is once those with another image were stopped and started, if they can be."""
    changed = _changed_images(pod)
    statuses = _containers(pod, lambda one: _cannot_be_pulled(one) if _is_bad(one.image) else _runs_since(now))
    again = {"lastState": {"terminated": _ended(now)}}
    return [
        {**one, **again, "restartCount": one["restartCount"] + 1} if one["name"] in changed else one for one in statuses
    ]


def _completed(pod: Pod, now: datetime) -> list[dict[str, Any]]:
    return _containers(pod, lambda _: {"ready": False, "started": False, "state": {"terminated": _ended(now)}})


def _begun(container: Container, now: datetime) -> dict[str, Any]:
    """An init container that has done its work, or goes on beside the others."""
    stays = container.restart_policy == "Always"
    state = {"running": {"startedAt": _written(now)}} if stays else {"terminated": _ended(now)}
    return _container(container, _NEW, {"ready": True, "started": stays, "state": state})


def _ended(now: datetime) -> dict[str, Any]:
    return {"exitCode": 0, "reason": "Completed", "startedAt": _written(now), "finishedAt": _written(now)}


def _written(now: datetime) -> str:
    text: str = to_builtins(now.replace(microsecond=0))
    return text


def is_told(pod: Pod, word: str) -> bool:
    """Whether the pod is told to do this."""
    return pod.metadata.annotations.get(PREFIX + word) == "true"


def seconds_told(pod: Pod, word: str, default: float) -> float:
    """How long the pod is told to take; the default if it is not told, or in no way that can be read."""
    text = pod.metadata.annotations.get(PREFIX + word)
    try:
        return default if text is None else max(0.0, parse_duration(text).total_seconds())
    except ValueError:
        return default


def flaps(pod: Pod) -> bool:
    return PREFIX + "flap-every" in pod.metadata.annotations


def has_bad_image(pod: Pod) -> bool:
    return any(_is_bad(container.image) for container in pod.spec.containers or ())


def _is_bad(image: str) -> bool:
    return ":bad" in image


def belongs_to_a_job(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "Job"
