"""Workload cells: table cells of pods and workloads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kedge.embedded.store import part
from kedge.embedded.tables.cell_text import (
    NONE,
    Cells,
    age,
    age_of,
    duration,
    joined_or_none,
    labels_text,
    name_of,
    parse_time,
    selector_or_none,
)
from kedge.kube.codec import Untyped


def deployment(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name_of(obj), ready, *counts, age_of(obj, now), *_containers(spec), selector_or_none(spec.get("selector"))]


def replica_set(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(obj), *counts, age_of(obj, now), *_containers(spec), selector_or_none(spec.get("selector"))]


def replication_controller(obj: Untyped, now: datetime) -> Cells:
    spec = part(obj, "spec")
    return [*replica_set({**obj, "spec": {**spec, "selector": None}}, now)[:-1], labels_text(spec.get("selector"))]


def stateful_set(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age_of(obj, now), *_containers(spec)]


def daemon_set(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [status.get(name, 0) for name in (*names, "numberAvailable")]
    nodes = labels_text(part(part(spec, "template"), "spec").get("nodeSelector"))
    return [name_of(obj), *counts, nodes, age_of(obj, now), *_containers(spec), selector_or_none(spec.get("selector"))]


def job(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    done, parallel = status.get("succeeded", 0), spec.get("parallelism") or 0
    wanted = spec.get("completions")
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    took = _took(status, now)
    shown = [name_of(obj), _job_status(obj), completions, took, age_of(obj, now)]
    return [*shown, *_containers(spec), selector_or_none(spec.get("selector"))]


def cron_job(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    inner = part(part(spec, "jobTemplate"), "spec")
    first = [name_of(obj), spec.get("schedule", ""), spec.get("timeZone") or NONE, str(bool(spec.get("suspend")))]
    return [
        *first,
        len(status.get("active") or ()),
        last,
        age_of(obj, now),
        *_containers(inner),
        selector_or_none(inner.get("selector")),
    ]


def controller_revision(obj: Untyped, now: datetime) -> Cells:
    owner = next((one for one in obj["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"
    return [name_of(obj), controller, obj.get("revision", 0), age_of(obj, now)]


def pod_template(obj: Untyped, _now: datetime) -> Cells:
    return [name_of(obj), *_containers(obj), labels_text(part(part(obj, "template"), "metadata").get("labels"))]


def pod(obj: Untyped, now: datetime) -> Cells:
    spec, status = part(obj, "spec"), part(obj, "status")
    containers = [*_restartable(spec), *(spec.get("containers") or ())]
    reason, ready, restarts = _pod_state(obj, now)
    wide = [status.get("podIP"), spec.get("nodeName"), status.get("nominatedNodeName")]
    shown = [name_of(obj), f"{ready}/{len(containers)}", reason, restarts, age_of(obj, now)]
    return [*shown, *(value or NONE for value in wide), _gates(spec, status)]


def pod_marks(obj: Untyped) -> dict[str, Any]:
    """What the row of a pod that is over says of it."""
    said = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = part(obj, "status").get("phase")
    if phase not in said:
        return {}
    return {"conditions": [{"type": "Completed", "status": "True", "reason": phase, "message": said[phase]}]}


def _pod_state(obj: Untyped, now: datetime) -> tuple[str, int, str]:
    """What a pod is doing, how many of its containers are ready, and how often they were started again."""
    status = part(obj, "status")
    reason = status.get("reason") or status.get("phase", "")
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    initial = status.get("initContainerStatuses") or []
    beginning = _initial_reason(obj, initial)
    if beginning and conditions.get("Initialized", {}).get("status") != "True":
        reason, ready, counted = beginning, 0, initial
    else:
        counted = status.get("containerStatuses") or []
        ready = sum(1 for one in counted if one.get("ready") and "running" in part(one, "state"))
        reason = _running_reason(reason, counted, conditions)
    return _as_it_ends(obj, reason), ready, _restarts(counted, now)


def _as_it_ends(obj: Untyped, reason: str) -> str:
    status = part(obj, "status")
    if not obj["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _initial_reason(obj: Untyped, initial: list[Untyped]) -> str:
    """What a pod does whose init containers are not through yet; empty if they are."""
    total = len(part(obj, "spec").get("initContainers") or ())
    for index, one in enumerate(initial):
        state = part(one, "state")
        over = part(state, "terminated")
        if "terminated" in state and over.get("exitCode", 0) == 0:
            continue
        if "terminated" in state:
            return f"Init:{_ended(over)}"
        waiting = part(state, "waiting").get("reason", "")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{total}"
    return ""


def _running_reason(reason: str, statuses: list[Untyped], conditions: dict[str, Untyped]) -> str:
    runs = False
    for one in reversed(statuses):
        state = part(one, "state")
        if waiting := part(state, "waiting").get("reason"):
            reason = waiting
        elif "terminated" in state:
            reason = _ended(state["terminated"])
        elif one.get("ready") and "running" in state:
            runs = True
    if reason == "Completed" and runs:
        return "Running" if conditions.get("Ready", {}).get("status") == "True" else "NotReady"
    return reason


def _ended(terminated: Untyped) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: Iterable[Untyped], now: datetime) -> str:
    counted = list(statuses)
    total = sum(one.get("restartCount", 0) for one in counted)
    ends = [part(part(one, "lastState"), "terminated").get("finishedAt") for one in counted]
    last = max((end for end in ends if end), default=None)
    return f"{total} ({age(last, now)} ago)" if total and last else str(total)


def _gates(spec: Untyped, status: Untyped) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    true = {one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate['conditionType'] in true)}/{len(gates)}"


def _restartable(spec: Untyped) -> list[Untyped]:
    return [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]


def _job_status(obj: Untyped) -> str:
    true = {one["type"] for one in part(obj, "status").get("conditions") or () if one.get("status") == "True"}
    for kind in ("Complete", "Failed"):
        if kind in true:
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if kind in true), "Running")


def _took(status: Untyped, now: datetime) -> str:
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else now
    return duration(int((end - parse_time(status["startTime"])).total_seconds()))


def _containers(spec: Untyped) -> list[str]:
    """The names and images of a template's containers."""
    found = part(part(spec, "template"), "spec").get("containers") or ()
    return [
        joined_or_none((one["name"] for one in found), ""),
        joined_or_none((one.get("image", "") for one in found), ""),
    ]
