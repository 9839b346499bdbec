"""PodDisruptionBudgets say the same with our controller as with kube-controller-manager, while pods come and go."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from kedge.api.resource import Resource
from kedge.embedded.workloads.budgets import Budgets
from kedge.embedded.workloads.everything import Parts
from kedge.embedded.workloads.jobs import Jobs
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from real.histories import Histories, as_told
from support.recording.api import RealApi
from support.stage import PODS, Stage, embedded_stage, is_ready
from support.virtual import run

BUDGETS = untyped(Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"))
SETS = untyped(Resource("apps", "v1", "StatefulSet", "statefulsets"))
JOBS = untyped(Resource("batch", "v1", "Job", "jobs"))
PARTS: Parts = (("statefulset", StatefulSets), ("job", Jobs), ("disruption", Budgets))

ROWS: Mapping[str, tuple[dict[str, Any], str]] = {
    "so many must stay": ({"minAvailable": 2}, "pods=3 ready ready ready delete pods=1"),
    "a share must stay": ({"minAvailable": "50%"}, "pods=3 ready ready ready delete pods=4"),
    "so many may go": ({"maxUnavailable": 1}, "pods=3 ready ready ready delete pods=1"),
    "a share may go": ({"maxUnavailable": "40%"}, "pods=3 ready ready ready pods=0"),
    "it changes": ({"minAvailable": 1}, "pods=2 ready ready min=2 min=0"),
    "pods of nobody": ({"minAvailable": 1}, "bare ready"),
    "pods of nobody, by share": ({"maxUnavailable": 1}, "bare ready"),
    "pods of a Job, by share": ({"maxUnavailable": 1}, "job ready"),
}

State: TypeAlias = tuple[str, ...]


@pytest.fixture(scope="module")
def histories(without_nodes_api: RealApi, request: pytest.FixtureRequest) -> Histories:
    """Every row as kube-controller-manager goes through it."""
    return Histories(without_nodes_api, ROWS, played, request)


@pytest.mark.timeout(400)  # the first row waits for all of them to be played on the real one
@pytest.mark.parametrize("row", ROWS)
def test_a_budget_says_the_same_as_with_kubernetes(histories: Histories, row: str) -> None:
    spec, steps = ROWS[row]
    ours = run(played(embedded_stage(PARTS), spec, steps))
    for step, here, there in zip(("created", *steps.split()), as_told(ours), histories.of(row), strict=True):
        assert here == there, f"after {step}"


async def played(opening: AbstractAsyncContextManager[Stage], spec: dict[str, Any], steps: str) -> list[State]:
    async with opening as stage:
        body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
        await stage.client.create(BUDGETS, body, stage.namespace)
        states = [await stage.at_rest(lambda: look(stage))]
        for step in steps.split():
            await take(stage, step)
            states.append(await stage.at_rest(lambda: look(stage)))
        return states


async def take(stage: Stage, step: str) -> None:
    what, _, value = step.partition("=")
    pod = {"containers": [{"name": "main", "image": "a"}]}
    meta = {"name": "web", "labels": {"app": "web"}}
    match what:
        case "pods":
            await scale(stage, int(value), {"metadata": {"labels": {"app": "web"}}, "spec": pod})
        case "bare":
            await stage.client.create(PODS, {"metadata": meta, "spec": pod}, stage.namespace)
        case "job":
            template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod, "restartPolicy": "Never"}}
            await stage.client.create(
                JOBS, {"metadata": {"name": "web"}, "spec": {"template": template}}, stage.namespace
            )
        case "ready":
            waiting = [pod["metadata"]["name"] for pod in await stage.all(PODS) if not is_ready(pod)]
            await stage.say_of_pod(waiting[0], "Running", ready=True)
        case "delete":
            await stage.client.delete(PODS, (await stage.all(PODS))[0]["metadata"]["name"], stage.namespace)
        case "min":
            patch = MergePatch({"spec": {"minAvailable": int(value)}})
            await stage.client.patch(BUDGETS, "web", patch, stage.namespace)
        case _:
            raise AssertionError(f"no such step: {step}")
    wanted = int(value) if what == "pods" else None
    await stage.at_rest(lambda: settled(stage, wanted))


async def scale(stage: Stage, replicas: int, template: dict[str, Any]) -> None:
    """So many pods, all at once, of a StatefulSet."""
    if await stage.all(SETS):
        await stage.client.patch(SETS, "web", MergePatch({"spec": {"replicas": replicas}}), stage.namespace)
        return
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, "podManagementPolicy": "Parallel"}
    body = {"metadata": {"name": "web"}, "spec": {**spec, "serviceName": "", "replicas": replicas}}
    await stage.client.create(SETS, body, stage.namespace)


async def settled(stage: Stage, wanted: int | None) -> int | None:
    """How many pods there are, once they are as many as are wanted."""
    sets = await stage.all(SETS)
    count = len(await stage.all(PODS))
    if not sets:
        return count
    return count if count == (sets[0]["spec"]["replicas"] if wanted is None else wanted) else None


async def look(stage: Stage) -> State | None:
    found: Untyped = await stage.client.get(BUDGETS, "web", stage.namespace)
    status, pods = found.get("status", {}), await stage.all(PODS)
    broken = any(one["reason"] == "SyncFailed" for one in status.get("conditions", ()))
    healthy = sum(map(is_ready, pods))
    if not broken and (status.get("observedGeneration"), status.get("currentHealthy")) != (
        found["metadata"]["generation"],
        healthy,
    ):
        return None
    counts = {key: value for key, value in sorted(status.items()) if key not in ("conditions", "disruptedPods")}
    said = [
        {key: value for key, value in sorted(one.items()) if key != "lastTransitionTime"}
        for one in status["conditions"]
    ]
    return (str(counts), *map(str, said))
