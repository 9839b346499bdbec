"""Jobs go through the same states with our controller as with kube-controller-manager.

The test plays kubelet: it says which pods run, succeed and fail, one at a time. Nobody schedules the pods, so that one
that is deleted is gone as soon as it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from kedge.api.resource import Resource
from kedge.embedded.workloads.jobs import TRACKING, Jobs
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Stage, embedded_stage, is_ready, masked
from support.virtual import run

JOBS = untyped(Resource("batch", "v1", "Job", "jobs"))

ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "one pod": ({}, "run succeed"),
    "one pod that fails": ({"backoffLimit": 0}, "run fail"),
    "several, some at a time": ({"parallelism": 2, "completions": 4}, "run succeed succeed run run succeed succeed"),
    "more at a time than needed": ({"parallelism": 5, "completions": 2}, "succeed succeed"),
    "the first success decides": ({"parallelism": 3}, "run run succeed succeed fail"),
    "failures are made up for": ({"backoffLimit": 2}, "fail cool run succeed"),
    "the others are stopped": ({"parallelism": 3, "completions": 3, "backoffLimit": 0}, "run succeed fail"),
    "suspended from the start": ({"parallelism": 2, "completions": 2, "suspend": True}, "resume run succeed succeed"),
    "suspended midway": ({"parallelism": 2, "completions": 3}, "run succeed suspend resume succeed succeed"),
    "less and more parallelism": (
        {"parallelism": 3, "completions": 9},
        "run parallelism=1 parallelism=2 parallelism=0 parallelism=1 succeed",
    ),
    "out of time": ({"activeDeadlineSeconds": 8}, "run late"),
    "a pod that somebody deletes": ({"backoffLimit": 3}, "run lose succeed"),
}

State: TypeAlias = tuple[str, ...]


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """Every row as kube-controller-manager goes through it."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(400)  # the first row waits for all of them to be played on the real one
@pytest.mark.parametrize("row", ROWS)
def test_a_job_goes_through_the_same_states_as_with_kubernetes(histories: Histories, row: str) -> None:
    spec, steps = ROWS[row]
    ours = run(played(embedded_stage([("job", Jobs)]), spec, steps))
    for step, here, there in zip(
        ("created", *steps.split(), "told", "shapes"), as_told(ours), histories.of(row), strict=True
    ):
        assert here == there, f"after {step}"


async def played(opening: AbstractAsyncContextManager[Stage], spec: dict[str, Any], steps: str) -> list[State]:
    """The states at rest: after creation, after each step; then what was told, and what pods look like."""
    async with opening as stage:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}
        template = {"metadata": {"labels": {"app": "sum"}}, "spec": pod}
        await stage.client.create(
            JOBS, {"metadata": {"name": "sum"}, "spec": {**spec, "template": template}}, stage.namespace
        )
        states = [await stage.at_rest(lambda: look(stage))]
        for step in steps.split():
            await take(stage, step)
            states.append(await stage.at_rest(lambda: look(stage)))
        told = await stage.at_rest(lambda: stage.events_of("Job", {r"sum-\w{5}\b": "<pod>"}))
        return [*states, tuple(told), await shapes(stage)]


async def take(stage: Stage, step: str) -> None:
    what, _, value = step.partition("=")
    match what:
        case "run":
            await say_of_one(stage, "Running", ready=True)
        case "succeed":
            await say_of_one(stage, "Succeeded")
        case "fail":
            await say_of_one(stage, "Failed")
        case "lose":  # Kubernetes waits before it replaces the pod, as after a failure; ours does not
            await stage.client.delete(PODS, await first(stage), stage.namespace)
            await stage.at_rest(lambda: has_active(stage))
        case "cool":
            await stage.at_rest(lambda: has_active(stage))
        case "late":
            await stage.at_rest(lambda: is_failed(stage))
        case "suspend" | "resume":
            await change(stage, {"suspend": what == "suspend"})
        case "parallelism":
            await change(stage, {"parallelism": int(value)})
        case _:
            raise AssertionError(f"no such step: {step}")


async def change(stage: Stage, spec: dict[str, Any]) -> None:
    await stage.client.patch(JOBS, "sum", MergePatch({"spec": spec}), stage.namespace)


async def say_of_one(stage: Stage, phase: str, *, ready: bool = False) -> None:
    name = await first(stage, unready=ready)
    await stage.say_of_pod(name, phase, ready=ready)


async def first(stage: Stage, *, unready: bool = False) -> str:
    """A pod that is not over: one that is ready before others, unless those are asked for that are not."""
    active = [pod for pod in await stage.all(PODS) if is_active(pod)]
    in_order = sorted(active, key=lambda pod: is_ready(pod) == unready)
    return str(in_order[0]["metadata"]["name"])


async def has_active(stage: Stage) -> bool | None:
    return any(is_active(pod) for pod in await stage.all(PODS)) or None


async def is_failed(stage: Stage) -> bool | None:
    found = await stage.client.get(JOBS, "sum", stage.namespace)
    return any(one["type"] == "Failed" for one in found.get("status", {}).get("conditions", ())) or None


async def look(stage: Stage) -> State | None:
    """The Job and its pods; None while what the Job says is not yet true of its pods."""
    found = await stage.client.get(JOBS, "sum", stage.namespace)
    pods = await stage.all(PODS)
    status = found.get("status", {})
    if not is_true(found, status, pods):
        return None
    counts = {key: value for key, value in sorted(status.items()) if key != "conditions" and not key.endswith("Time")}
    times = [key for key in sorted(status) if key.endswith("Time")]
    said = [
        f"{one['type']}={one['status']} {one.get('reason')}: {one.get('message')}"
        for one in status.get("conditions", ())
    ]
    return ("pods " + " ".join(sorted(map(in_short, pods))), str(counts), str(times), *said)


def is_true(found: Untyped, status: Untyped, pods: Sequence[Untyped]) -> bool:
    uncounted = status.get("uncountedTerminatedPods", {})
    over = [pod for pod in pods if pod.get("status", {}).get("phase") in ("Succeeded", "Failed")]
    untracked = all(TRACKING not in pod["metadata"].get("finalizers", ()) for pod in over)
    active = [pod for pod in pods if is_active(pod)]
    counted = (status.get("active", 0), status.get("ready", 0)) == (len(active), sum(map(is_ready, active)))
    leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    gone = status.get("terminating", 0) == len(leaving)
    suspended = found["spec"].get("suspend", False) or "startTime" in status
    return not uncounted and untracked and counted and gone and "ready" in status and suspended


def is_active(pod: Untyped) -> bool:
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not over and "deletionTimestamp" not in pod["metadata"]


def in_short(pod: Untyped) -> str:
    tracked = "*" if TRACKING in pod["metadata"].get("finalizers", ()) else ""
    return f"{pod.get('status', {}).get('phase') or 'Pending'}{'+' if is_ready(pod) else ''}{tracked}"


async def shapes(stage: Stage) -> State:
    uid = (await stage.client.get(JOBS, "sum", stage.namespace))["metadata"]["uid"]
    return tuple(sorted(masked(shape(pod), {r"sum-\w{5}\b": "<pod>", uid: "<uid>"}) for pod in await stage.all(PODS)))


def shape(pod: Untyped) -> str:
    meta = pod["metadata"]
    owners = [sorted(owner.items()) for owner in meta["ownerReferences"]]
    return str([meta["name"], meta["generateName"], sorted(meta["labels"].items()), meta.get("finalizers"), owners])
