"""CloneSets of ours on a real control plane: its API server takes the CRD, and its scheduler and nodes run the pods.

They are changed by hand, and by rollouts of component revisions. Whoever watches the pods themselves judges the limits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from controlplane.cluster import Cluster
from kedge.api.crds import kruise_crds
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import Rollout
from kedge.api.pods import Pod
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.everything import add_workloads
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import Invalid
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.plan.workloads import pods
from real.component_shop import AT_ONCE, HALVES, Shop, open_shop
from real.component_shop import PODS as REPLICAS
from support.waiting import until_so

DEFINITIONS = kruise_crds()  # here: it reads files


class Judge:
    """Sees every event of every pod, and remembers the least that were ready and the most that there were."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.least, self.most = REPLICAS, 0
        self.judges = False

    async def follow(self, client: Client, namespace: str) -> None:
        while True:
            async with client.watch(Pod, namespace, initial_events=True) as events:
                async for event in events:
                    self.take(event)

    def take(self, event: Any) -> None:
        """See one event of the watch."""
        pod = getattr(event, "object", None)  # a bookmark has none
        if not isinstance(pod, Pod):
            return
        if event.type == "DELETED":
            self.pods.pop(pod.metadata.name, None)
        else:
            self.pods[pod.metadata.name] = pod
        if self.judges:
            active = [one for one in self.pods.values() if pods.is_active(one)]
            self.least = min(self.least, sum(map(pods.is_ready, active)))
            self.most = max(self.most, len(active))


class Clones:
    """One CloneSet on the cluster."""

    def __init__(self, cluster: Cluster, client: Client, namespace: str, judge: Judge) -> None:
        self.cluster = cluster
        self.client = client
        self.namespace = namespace
        self.judge = judge

    async def create(self, **strategy: Any) -> None:
        labels = {"app": "web"}
        pod = {"containers": [{"name": "main", "image": "app:1"}], "terminationGracePeriodSeconds": 0}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": "web", "namespace": self.namespace}
        await self.client.create(CloneSet, {"metadata": meta, "spec": {**spec, "updateStrategy": strategy}})

    async def change(self, image: str = "", **strategy: Any) -> None:
        containers = [{"name": "main", "image": image}]
        new = {"template": {"spec": {"containers": containers}}} if image else {}
        body = {"spec": {**new, "updateStrategy": strategy}}
        await self.client.patch(CloneSet, "web", MergePatch(body), self.namespace)

    async def get(self) -> CloneSet:
        return await self.client.get(CloneSet, "web", self.namespace)

    async def runs(self, new: int) -> None:
        """Wait until so many pods are new, all are available, and the status says so."""

        async def holds() -> bool:
            found = await self.get()
            said = found.status
            seen = said.observed_generation == found.metadata.generation
            counted = (said.replicas, said.available_replicas, said.updated_replicas, said.updated_ready_replicas)
            return seen and counted == (REPLICAS, REPLICAS, new, new)

        await until_so(holds, within=90)

    async def kubectl(self, *words: str) -> str:
        return await self.cluster.kubectl("-n", self.namespace, *words)


@pytest.fixture
async def clones(full_cluster: Cluster) -> AsyncIterator[Clones]:
    async with clone_sets(full_cluster) as found:
        yield found


@asynccontextmanager
async def clone_sets(cluster: Cluster) -> AsyncIterator[Clones]:
    """A namespace of the cluster, with the CRD and its controller, which is there before the CRD."""
    namespace = await cluster.fresh_namespace("clones")
    transport = HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))
    async with Manager(rng=Random(1)) as manager:
        connected = await manager.connect("full", transport, limiter=Limiter(rate=0))
        add_workloads(manager, connected, [("cloneset", CloneSets)])
        running = asyncio.create_task(manager.run(signals=False))
        judge = Judge()
        following = asyncio.create_task(judge.follow(connected.client, namespace))
        await cluster.kubectl("apply", "-f", "-", input=json.dumps(DEFINITIONS[0]))
        await cluster.kubectl("wait", "--for=condition=Established", "crd/clonesets.apps.kruise.io", "--timeout=60s")
        try:
            yield Clones(cluster, connected.client, namespace, judge)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            await cluster.kubectl("delete", "crd/clonesets.apps.kruise.io")  # returns when it is gone
            manager.stop()
            await running


async def test_a_set_goes_forward_by_its_partition_and_back(clones: Clones) -> None:
    await clones.create(maxUnavailable=AT_ONCE, maxSurge=1, partition="100%")
    await clones.runs(REPLICAS)
    first = (await clones.get()).status.current_revision
    clones.judge.judges = True
    await clones.change("app:2")
    await clones.runs(0)
    for partition, new in ((4, 2), ("50%", 3), (5, 1), (1, 5), (6, 0), (2, 4)):
        await clones.change(partition=partition)
        await clones.runs(new)
        said = (await clones.get()).status
        assert said.expected_updated_replicas == new
        assert said.current_revision == first != said.update_revision
    await clones.change(partition=0)
    await clones.runs(REPLICAS)
    said = (await clones.get()).status
    assert said.current_revision == said.update_revision != first
    assert clones.judge.least >= REPLICAS - AT_ONCE
    assert clones.judge.most <= REPLICAS + 1
    shown = (await clones.kubectl("get", "clone")).splitlines()
    assert shown[0].split() == ["NAME", "DESIRED", "UPDATED", "UPDATED_READY", "READY", "TOTAL", "AGE"]
    assert shown[1].split()[:6] == ["web", *[str(REPLICAS)] * 5]
    await clones.kubectl("scale", "clonesets/web", "--replicas=2")

    async def is_scaled() -> bool:
        return (await clones.get()).status.replicas == 2

    await until_so(is_scaled)


async def test_pods_are_updated_in_place(clones: Clones) -> None:
    await clones.create(type="InPlaceIfPossible", maxUnavailable=AT_ONCE)
    await clones.runs(REPLICAS)
    before = set(clones.judge.pods)
    clones.judge.judges = True
    await clones.change("app:2", partition=3)
    await clones.runs(3)
    await clones.change(partition=6)
    await clones.runs(0)
    await clones.change(partition=0)
    await clones.runs(REPLICAS)
    after = (await clones.client.list(Pod, clones.namespace)).items
    assert {pod.metadata.name for pod in after} == before
    assert {(pod.spec.containers or ())[0].image for pod in after} == {"app:2"}
    assert REPLICAS - AT_ONCE <= clones.judge.least < REPLICAS
    assert clones.judge.most == REPLICAS


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        ({"maxUnavailable": 0, "maxSurge": "0%"}, "should not both be less than 1"),
        ({"type": "InPlaceOnly", "maxSurge": 1}, "can not be used with type InPlaceOnly"),
        ({"partition": "half"}, "partition"),
    ],
)
async def test_what_makes_no_sense_is_refused(clones: Clones, strategy: dict[str, Any], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        await clones.create(**strategy)


# Rollouts of component revisions


@pytest.fixture
async def shop(clones: Clones) -> AsyncIterator[Shop]:
    """Three revisions of a component, and a rollout that has brought in the first."""
    async with open_shop(clones.cluster, floor=REPLICAS - AT_ONCE, ceiling=REPLICAS) as found:
        for number in (1, 2, 3):
            await found.component(number, "CloneSet")
        await found.rollout("web-v1", targetSize=REPLICAS)
        await found.until_in("web-v1", "rolloutSucceed")
        await found.until_pods(v1=REPLICAS)
        found.recorder.judges = True
        yield found
        assert found.recorder.wrong == []
        found.recorder.judges = False
        await found.client.delete(CloneSet, "web", found.namespace)


async def _until_half(shop: Shop) -> None:
    """Bring in the second revision, up to the first of two batches."""
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v1=3, v2=3)


async def test_a_rollout_stops_after_a_batch_and_goes_forward_and_back_midway(shop: Shop) -> None:
    await _until_half(shop)
    await shop.to(paused=True)
    await until_so(lambda: _is_seen(shop))
    await shop.until_pods(v1=3, v2=3)
    await shop.to("web-v3", paused=False, batchPartition=1)
    await shop.until_in("web-v3", "rolloutSucceed")
    await shop.until_pods(v1=0, v2=0, v3=REPLICAS)
    with pytest.raises(Invalid, match="cannot be modified without changing the target"):
        await shop.to(rolloutBatches=[{"replicas": 1}, {"replicas": "80%"}])
    await shop.to("web-v2", batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v2=3, v3=3)
    await shop.to("web-v3", batchPartition=1)
    await shop.until_in("web-v3", "rolloutSucceed")
    await shop.until_pods(v2=0, v3=REPLICAS)


async def _is_seen(shop: Shop) -> bool:
    """Whether the operator has looked at the rollout since it was changed."""
    found = await shop.client.get(Rollout, "web", shop.namespace)
    return found.status.observed_generation == found.metadata.generation


@pytest.mark.parametrize("reverts", [True, False])
async def test_a_rollout_that_is_deleted_midway_is_taken_back_or_leaves_its_pods(shop: Shop, reverts: bool) -> None:
    await _until_half(shop)
    await shop.to(revertOnDelete=reverts)
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout), within=90)
    await shop.until_pods(v1=REPLICAS if reverts else 3, v2=0 if reverts else 3)
    live = await shop.client.get(CloneSet, "web", shop.namespace)
    assert "kedge.dev/rolled-by" not in live.metadata.annotations
    assert live.spec.update_strategy.paused is not reverts  # what is left half way stands still
