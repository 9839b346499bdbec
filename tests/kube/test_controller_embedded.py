"""Read your own writes, on the embedded server, from seeds: nothing is written twice, whatever is late or lost."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import pytest

from kedge.api.core import ConfigMap, Namespace
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.limits import BackoffSteps, Limiter
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from support.virtual import run

OBJECTS, GOAL = 5, 8


class VirtualClock:
    def now(self) -> datetime:
        return datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)


class Counter:
    """Counts every ConfigMap up to the goal, one at a time, on nothing but what the cache shows."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.maps = cluster.cache(ConfigMap)
        self.written: list[tuple[str, int]] = []
        source = cluster.watch(self.maps)
        self.controller = Controller("counter", self.reconcile, [source], wait=BackoffSteps(0.005, 2.0))

    async def reconcile(self, key: Key) -> Outcome:
        seen = self.maps.get(key.name, key.namespace)
        if seen is None or int(seen.data["n"]) >= GOAL:
            return Outcome.done
        wanted = int(seen.data["n"]) + 1
        self.written.append((key.name, wanted))
        await self.cluster.client.patch(ConfigMap, key.name, MergePatch({"data": {"n": str(wanted)}}), key.namespace)
        return Outcome.again(after=0.01)


async def count(seed: int, *, faults: bool) -> Counter:
    rng = random.Random(seed)
    server = Server(clock=VirtualClock(), rng=random.Random(seed))
    transport = InProcessTransport(server, rng=random.Random(seed), delay=(0.0, 4.0), latency=(0.0, 0.05))
    client = Client(InProcessTransport(server, rng=random.Random(seed)))
    await client.create(Namespace, {"metadata": {"name": "shop"}})
    for n in range(OBJECTS):
        await client.create(ConfigMap, {"metadata": {"name": f"m{n}", "namespace": "shop"}, "data": {"n": "0"}})
    async with Manager(clock=VirtualClock(), rng=rng) as manager:
        counter = Counter(await manager.connect("hub", transport, limiter=Limiter(rate=0)))
        manager.add_controller(counter.controller)
        running = asyncio.create_task(manager.run(signals=False))
        for _ in range(20 if faults else 0):
            await asyncio.sleep(rng.uniform(0.0, 2.0))
            transport.disconnect("cut")
            await asyncio.sleep(rng.uniform(0.0, 1.0))
            transport.connect()
        await asyncio.sleep(300)
        found = await client.list(ConfigMap, "shop")
        assert {item.data["n"] for item in found.items} == {str(GOAL)}
        manager.stop()
        await running
    return counter


@pytest.mark.parametrize("seed", range(10))
def test_a_late_watch_makes_nobody_write_twice(seed: int) -> None:
    counter = run(count(seed, faults=False))
    assert len(counter.written) == len(set(counter.written)) == OBJECTS * GOAL


@pytest.mark.parametrize("seed", range(20))
def test_lost_answers_and_broken_watches_lose_no_count_and_never_count_back(seed: int) -> None:
    counter = run(count(seed, faults=True))
    for n in range(OBJECTS):
        tried = [value for name, value in counter.written if name == f"m{n}"]
        assert tried == sorted(tried)
