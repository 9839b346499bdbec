"""Bad days: pods that die at the wrong moment, on both backends, judged by what runs on the members."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet import kinds
from fleet.bed import MEMBERS, SECONDS, Backend, Bed
from fleet.seeds import placement
from fleet.story import PLACEMENT, deployment, is_so, set_image
from fleet.traces import Untyped
from fleet.watching import Happening, image, watched
from kedge.api.dialect import Dialect

pytestmark = pytest.mark.timeout(SECONDS)

THREE = MEMBERS[:3]
_SELECTOR = {"group": "", "kind": "Namespace", "version": "v1", "name": "test-ns"}
_PICKED = {"placementType": "PickFixed", "clusterNames": list(THREE)}


def rolling(**policy: object) -> Untyped:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    return placement({"resourceSelectors": [_SELECTOR], "policy": policy or _PICKED, "strategy": strategy})


async def placed(bed: Bed, spec: Untyped) -> None:
    await bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}})
    await bed.apply(deployment("app:1", replicas=3))
    await bed.apply(spec)


@asynccontextmanager
async def one_pod_lost(bed: Bed, member: str) -> AsyncIterator[None]:
    """A while in which one pod of a member is gone, and there is no room for another."""
    await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": True}}, on=member)
    pods = [pod for pod in await bed.all(kinds.PODS, member) if pod["metadata"]["namespace"] == "test-ns"]
    await bed.clients[member].delete(kinds.PODS, pods[0]["metadata"]["name"], "test-ns")
    try:
        yield
    finally:
        await bed.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": None}}, on=member)


async def is_broken(bed: Bed, member: str) -> bool:
    """Whether the hub knows that a member does not work."""
    (found,) = [one for one in await bed.all(kinds.BINDINGS) if one["spec"]["targetCluster"] == member]
    conditions = found.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("Available", "False") for one in conditions)


async def rollout_message(bed: Bed, member: str) -> str:
    (found,) = [one for one in await bed.all(kinds.BINDINGS) if one["spec"]["targetCluster"] == member]
    (said,) = [one for one in found["status"]["conditions"] if one["type"] == "RolloutStarted"]
    return str(said["message"])


def test_a_bad_release_does_not_creep_to_clusters_that_lose_a_pod_and_a_fix_reaches_all(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[list[Happening], str]:
        await placed(bed, rolling())
        await bed.until(lambda: is_so(bed, "Available"))
        async with watched(bed, kinds.DEPLOYMENTS, *THREE) as seen:
            await set_image(bed, "app:bad")
            await bed.until(lambda: is_broken(bed, "cluster-1"))
            async with one_pod_lost(bed, "cluster-2"), one_pod_lost(bed, "cluster-3"):
                await bed.until(lambda: is_broken(bed, "cluster-2"))
                await bed.until(lambda: is_broken(bed, "cluster-3"))
                await bed.wait_and_see()
                said = await rollout_message(bed, "cluster-2")
            await set_image(bed, "app:2")
            await bed.until(lambda: is_so(bed, "Available"))
            return seen, said

    seen, said = backend.play(play, Dialect.seed)
    assert {one.where for one in seen if image(one) == "app:bad"} == {"cluster-1"}
    assert {one.where for one in seen if image(one) == "app:2"} == set(THREE)
    assert said.startswith(f"cluster-2 waits: {PLACEMENT}-1-snapshot works nowhere yet, at most 1 cluster may have it")


def test_a_placement_that_wants_more_clusters_than_there_are_is_updated(backend: Backend) -> None:
    async def play(bed: Bed) -> list[Happening]:
        await placed(bed, rolling(placementType="PickN", numberOfClusters=7))
        await bed.until(lambda: is_so(bed, "Available"))
        async with watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as seen:
            await set_image(bed, "app:2")
            await bed.until(lambda: has_everywhere(bed, "app:2"))
            return seen

    seen = backend.play(play, Dialect.seed)
    assert {one.where for one in seen if image(one) == "app:2"} == set(MEMBERS)


async def has_everywhere(bed: Bed, wanted: str) -> bool:
    found = [await bed.get(kinds.DEPLOYMENTS, "web", "test-ns", on=member) for member in MEMBERS]
    return all(one["spec"]["template"]["spec"]["containers"][0]["image"] == wanted for one in found)


STRATEGY = {
    "apiVersion": "placement.kubernetes-fleet.io/v1",
    "kind": "ClusterStagedUpdateStrategy",
    "metadata": {"name": "soak"},
    "spec": {
        "stages": [
            {
                "name": "west",
                "labelSelector": {"matchLabels": {"loc": "west"}},
                "maxConcurrency": 2,
                "afterStageTasks": [{"type": "TimedWait", "waitTime": "5s"}],
            },
            {"name": "east", "labelSelector": {"matchLabels": {"loc": "east"}}},
        ]
    },
}
RUN = {
    "apiVersion": "placement.kubernetes-fleet.io/v1",
    "kind": "ClusterStagedUpdateRun",
    "metadata": {"name": "soaked"},
    "spec": {"placementName": PLACEMENT, "stagedRolloutStrategyName": "soak", "state": "Run"},
}


def test_a_stage_that_falls_over_while_it_soaks_holds_up_the_next(backend: Backend) -> None:
    async def play(bed: Bed) -> tuple[list[Happening], str, int]:
        await placed(bed, placement({"resourceSelectors": [_SELECTOR], "strategy": {"type": "External"}}))
        await bed.apply(STRATEGY)
        async with watched(bed, kinds.DEPLOYMENTS, *MEMBERS) as seen:
            await bed.apply(RUN)
            await bed.until(lambda: has_settled(bed, "west"))
            async with one_pod_lost(bed, "cluster-1"):
                await bed.until(lambda: is_broken(bed, "cluster-1"))
                await asyncio.sleep(7)  # the wait is over
                await bed.wait_and_see()
                moved = len({one.where for one in seen})
                said = (await bed.condition(kinds.RUNS, "soaked", "Progressing"))["message"]
            await bed.until(lambda: has_succeeded(bed))
            return seen, said, moved

    seen, said, moved = backend.play(play, Dialect.seed)
    assert moved == 2
    assert "stage west is done, and cluster-1 is not available any more: Deployment test-ns/web has 2 of 3" in said
    assert {one.where for one in seen} == set(MEMBERS)


async def has_settled(bed: Bed, stage: str) -> bool:
    status = (await bed.get(kinds.RUNS, "soaked")).get("status", {})
    clusters = [
        one for found in status.get("stagesStatus", ()) if found["stageName"] == stage for one in found["clusters"]
    ]
    return bool(clusters) and all(
        any(said["type"] == "Succeeded" for said in one.get("conditions", ())) for one in clusters
    )


async def has_succeeded(bed: Bed) -> bool:
    return bool((await bed.condition(kinds.RUNS, "soaked", "Succeeded")).get("status") == "True")
