"""Staged runs, with a process that dies after any one of its writes: what comes after it ends where it would have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from controllers.hub.staging import APPROVAL, Staging, runs_of, stage
from controllers.hub.test_works_crashing import Mortal, either
from kedge.api.binding import ClusterResourceBinding
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import CLUSTER
from kedge.api.reasons import SUCCEEDED
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from support.fleets import client_of, fleet_cluster, managed
from support.virtual import run

CLUSTERS = {"a": "one", "b": "two", "c": "two", "d": "two"}
STAGES = (stage("one", afterStageTasks=[APPROVAL]), stage("two", maxConcurrency=2))


@asynccontextmanager
async def process(cluster: EmbeddedCluster, writes: int) -> AsyncIterator[Mortal]:
    way = Mortal(cluster.transport(), writes)
    async with client_of(cluster) as client, managed() as manager:
        hub = await manager.connect("hub", way)
        manager.add_controller(runs_of(hub, client, CLUSTER, Dialect.seed).controller)
        yield way


async def watchdog(cluster: EmbeddedCluster, writes: int, over: asyncio.Event) -> list[str]:
    """Run a process that dies, then one that does not, until it is over; gives what the first one wrote."""
    async with process(cluster, writes) as first:
        await either(first.dead, over)
    async with process(cluster, -1):
        await over.wait()
    return first.wrote


class Moves:
    """The order in which clusters were given resources 1, and how many at once were not available with them."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.order: list[str] = []
        self.most = 0
        self._moving: dict[str, bool] = {}
        cluster.server.store.subscribe(self._follow)

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource.plural != CLUSTER.binding.resource.plural or change.type == "DELETED":
            return
        binding = msgspec.json.decode(change.version.body, type=ClusterResourceBinding)
        if binding.spec.resource_snapshot_name != "crp-1-snapshot":
            return
        name = binding.spec.target_cluster
        if name not in self.order:
            self.order.append(name)
        self._moving[name] = not any(one.type == "Available" for one in binding.status.conditions)
        self.most = max(self.most, sum(self._moving.values()))


async def story(placed: Staging) -> None:
    await placed.fleet(CLUSTERS, *STAGES)
    await placed.bind("z", state="Unscheduled", resourceSnapshotName="crp-0-snapshot")
    await placed.start()
    while await placed.says(SUCCEEDED) == "":
        for name, index in (await placed.given()).items():
            if index == "1":
                await placed.arrive(name)
            if index == "-":
                await placed.let_binding_go(name)
        for name in await placed.requests():
            await placed.approve(name)
        await placed.rest(1.0)


async def told(writes: int) -> tuple[str, Moves, list[str], list[str]]:
    async with fleet_cluster() as cluster, client_of(cluster) as client:
        placed, moves = Staging(client, CLUSTER), Moves(cluster)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watchdog(cluster, writes, over))
            try:
                async with asyncio.timeout(300):
                    await story(placed)
            finally:
                over.set()
        return await placed.says(SUCCEEDED), moves, sorted(await placed.all()), running.result()


@pytest.mark.parametrize("writes", range(1, 26))
def test_a_crash_after_any_write_changes_nothing_in_the_end(writes: int) -> None:
    says, moves, left, _ = run(told(writes))
    assert says == "True/UpdateRunSucceeded"
    assert moves.order[0] == "a"
    assert sorted(moves.order) == ["a", "b", "c", "d"]
    assert moves.order[-1] == "d"
    assert moves.most <= 2
    assert left == ["a", "b", "c", "d"]


def test_without_a_crash_there_are_no_more_writes_than_that() -> None:
    """So that the crashes above come after each of them."""
    _, _, _, wrote = run(told(1000))
    assert 15 <= len(wrote) < 26
