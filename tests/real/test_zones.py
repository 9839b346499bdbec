"""A rollout group of three zones on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from controlplane.cluster import Cluster
from kedge.api.core import Event
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.observed import GroupCaches
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from real.zone_group import AT_ONCE, PODS, ZONES, Group, ready_group
from support.waiting import until, until_so

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def group(full_cluster: Cluster) -> AsyncIterator[Group]:
    async with ready_group(full_cluster) as found:
        yield found


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
        await until_so(group.are_current)
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
