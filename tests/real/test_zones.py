"""A rollout group of three zones on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from controlplane.cluster import Cluster
from kedge.api.apps import StatefulSet
from kedge.api.core import Event
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.observed import GroupCaches
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.waiting import until, until_so

ZONES = ("ingester-zone-a", "ingester-zone-b", "ingester-zone-c")
PODS, AT_ONCE = 10, 2
pytestmark = pytest.mark.timeout(600)


def stateful_set(name: str, namespace: str, image: str = "app:1") -> dict[str, Any]:
    labels = {"name": name}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "500ms"}},
        "spec": {"containers": [{"name": "app", "image": image}], "terminationGracePeriodSeconds": 0},
    }
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": {ROLLOUT_GROUP: "ingester"},
        "annotations": {MAX_UNAVAILABLE: str(AT_ONCE)},
    }
    spec = {
        "replicas": PODS,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return {"metadata": meta, "spec": spec}


class Recorder:
    """Sees every event of every pod, and says when too many were not ready at once, or in two zones."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.wrong: list[str] = []
        self.worst = 0
        self.judges = False

    async def follow(self, client: Client, namespace: str) -> None:
        while True:
            async with client.watch(Pod, namespace, initial_events=True) as events:
                async for event in events:
                    self._take(event)

    def _take(self, event: Any) -> None:
        pod = getattr(event, "object", None)  # a bookmark has none
        if not isinstance(pod, Pod):
            return
        if event.type == "DELETED":
            self.pods.pop(pod.metadata.name, None)
        else:
            self.pods[pod.metadata.name] = pod
        if self.judges:
            self._judge()

    def _judge(self) -> None:
        lacking = {zone: count for zone in ZONES if (count := PODS - self.ready(zone))}
        self.worst = max(self.worst, *lacking.values(), 0)
        if len(lacking) > 1 or any(count > AT_ONCE for count in lacking.values()):
            self.wrong.append(str(lacking))

    def ready(self, zone: str, image: str = "") -> int:
        found = [pod for name, pod in self.pods.items() if name.startswith(f"{zone}-") and _is_ready(pod)]
        return sum(not image or (pod.spec.containers or ())[0].image == image for pod in found)

    def all_run(self, image: str) -> bool:
        return all(self.ready(zone, image) == PODS for zone in ZONES)


def _is_ready(pod: Pod) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None


class Group:
    """A group that is ready, and who watches it."""

    def __init__(self, client: Client, namespace: str, recorder: Recorder) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder

    async def release(self, image: str) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        for name in ZONES:
            await self.client.patch(StatefulSet, name, MergePatch(body), self.namespace)

    async def statuses(self) -> list[StatefulSet]:
        return list((await self.client.list(StatefulSet, self.namespace)).items)


@pytest.fixture
async def group(full_cluster: Cluster) -> AsyncIterator[Group]:
    namespace = await full_cluster.fresh_namespace("zones")
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client, recorder = Client(HttpsTransport(connection), limiter=Limiter(rate=0)), Recorder()
    following = asyncio.create_task(recorder.follow(client, namespace))
    for name in ZONES:
        await client.create(StatefulSet, stateful_set(name, namespace))
    await until(lambda: recorder.all_run("app:1"), within=90)
    recorder.judges = True
    yield Group(client, namespace, recorder)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    await client.close()


@asynccontextmanager
async def operator(full_cluster: Cluster, namespace: str) -> AsyncIterator[None]:
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    async with Manager(component="operator", rng=Random(1)) as manager:
        cluster = await manager.connect("cluster", HttpsTransport(connection), limiter=Limiter(rate=0))
        manager.add_controller(Groups(cluster, GroupCaches(cluster, (namespace,)), clock=manager.clock).controller)
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


@pytest.mark.core
async def test_a_release_goes_through_three_zones_one_at_a_time(
    group: Group, full_cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    async with operator(full_cluster, group.namespace):
        begun = time.perf_counter()
        await group.release("app:2")
        await until(lambda: group.recorder.all_run("app:2"), within=90)
        record_property("told", f"3 zones of {PODS} pods, {AT_ONCE} at once: {time.perf_counter() - begun:.1f} s")

        async def are_current() -> bool:
            statuses = [one.status for one in await group.statuses()]
            return all(one.current_revision == one.update_revision for one in statuses)

        await until_so(are_current)
    assert group.recorder.wrong == []
    assert group.recorder.worst == AT_ONCE
    events = [
        event for event in (await group.client.list(Event, group.namespace)).items if event.reason == "DeletingPods"
    ]
    assert {event.involved_object.name for event in events} == set(ZONES)


async def test_a_bad_release_stops_in_the_first_zone_and_its_fix_goes_on(group: Group, full_cluster: Cluster) -> None:
    async with operator(full_cluster, group.namespace):
        await group.release("app:bad")
        await until(lambda: group.recorder.ready(ZONES[0]) == PODS - AT_ONCE)

        async def is_said() -> bool:
            events = (await group.client.list(Event, group.namespace)).items
            waits = [event for event in events if event.reason == "RolloutWaits"]
            return any("ImagePullBackOff" in event.message for event in waits)

        await until_so(is_said)
        assert [group.recorder.ready(zone, "app:1") for zone in ZONES] == [PODS - AT_ONCE, PODS, PODS]
        await group.release("app:3")
        await until(lambda: group.recorder.all_run("app:3"), within=90)
    assert group.recorder.wrong == []
