"""Works, with a process that dies after any one of its writes: what comes after it ends where it would have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kedge.api.fleet import WORK_CLEANUP, member_namespace
from kedge.api.placement_kinds import CLUSTER
from kedge.api.reasons import APPLIED, APPLY_IN_PROGRESS, AVAILABLE, NOT_ALL_TRACKABLE, WORK_UNTRACKABLE
from kedge.api.work import Work
from kedge.controllers.hub.works import Works
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.errors import NotFound
from kedge.kube.transport import Request, Response
from support.fleets import client_of, fleet_cluster, managed
from support.placed import NAMESPACE, Placed, config_map
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so


class Mortal:
    """A way to an API that is cut for good after so many writes."""

    def __init__(self, inner: InProcessTransport, writes: int) -> None:
        self._inner = inner
        self._left = writes
        self.dead = asyncio.Event()
        self.wrote: list[str] = []

    async def send(self, request: Request, *, timeout: float) -> Response:
        response = await self._inner.send(request, timeout=timeout)
        if request.method != "GET" and response.status < 300 and "/events" not in request.path:
            self.wrote.append(f"{request.method} {request.path}")
            self._left -= 1
            if self._left == 0:
                self._inner.disconnect("the process is gone")
                self.dead.set()
                await asyncio.sleep(10_000)  # the answer never arrives
        return response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@asynccontextmanager
async def process(cluster: EmbeddedCluster, writes: int) -> AsyncIterator[Mortal]:
    way = Mortal(cluster.transport(), writes)
    async with managed() as manager:
        hub = await manager.connect("hub", way)
        manager.add_controller(Works(hub, CLUSTER, clock=LoopClock()).controller)
        yield way


async def watchdog(cluster: EmbeddedCluster, writes: int, over: asyncio.Event) -> list[str]:
    """Run a process that dies, then one that does not, until it is over; gives what the first one wrote."""
    async with process(cluster, writes) as first:
        await either(first.dead, over)
    async with process(cluster, -1):
        await over.wait()
    return first.wrote


async def either(one: asyncio.Event, other: asyncio.Event) -> None:
    while not (one.is_set() or other.is_set()):
        await asyncio.sleep(0.1)


async def story(placed: Placed) -> list[object]:
    """A binding gets resources, then others, then goes; gives what was seen on the way."""
    await placed.place()
    name = await placed.bind("a")
    await placed.point(name, await placed.snapshot(0, (NAMESPACE,), (config_map("one"),)))
    await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
    for part in (None, 0):
        await placed.take_up("a", part)
        await placed.report("a", part, reason=NOT_ALL_TRACKABLE)
    first = await placed.until_binding(name, AVAILABLE, WORK_UNTRACKABLE)
    await asyncio.sleep(100)
    await placed.point(name, await placed.snapshot(1, (NAMESPACE, config_map("two"))))
    await until_so(lambda: is_leaving(placed, 0))
    await placed.let_go("a", 0)
    await until_so(lambda: is_at(placed, 2))
    await placed.report("a", reason=NOT_ALL_TRACKABLE)
    second = await placed.until_binding(name, AVAILABLE, WORK_UNTRACKABLE)
    assert first is not None
    assert second is not None
    assert (second.last_transition_time - first.last_transition_time).total_seconds() >= 100
    work, binding = await placed.work("a"), await placed.binding(name)
    seen = [work.spec.workload.manifests, binding.metadata.finalizers]
    await placed.unbind(name)
    await until_so(lambda: is_leaving(placed, None))
    assert WORK_CLEANUP in (await placed.binding(name)).metadata.finalizers
    await placed.let_go("a")
    await until_so(lambda: is_unbound(placed, name))
    left = (await placed.client.list(Work, member_namespace("a"))).items
    return [*seen, [one.metadata.name for one in left]]


async def is_leaving(placed: Placed, part: int | None) -> bool:
    return (await placed.work("a", part)).metadata.deletion_timestamp is not None


async def is_at(placed: Placed, generation: int) -> bool:
    return (await placed.work("a")).metadata.generation == generation


async def is_unbound(placed: Placed, name: str) -> bool:
    try:
        await placed.binding(name)
    except NotFound:
        return True
    return False


async def told(writes: int) -> tuple[list[object], list[str]]:
    async with fleet_cluster() as cluster, client_of(cluster) as client:
        placed = Placed(client)
        await placed.join("a")
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watchdog(cluster, writes, over))
            try:
                seen = await story(placed)
            finally:
                over.set()
        return seen, running.result()


@pytest.mark.parametrize("writes", range(1, 16))
def test_a_crash_after_any_write_changes_nothing_in_the_end(writes: int) -> None:
    seen, _ = run(told(writes))
    assert seen == [(NAMESPACE, config_map("two")), ("kubernetes-fleet.io/scheduler-crb-cleanup", WORK_CLEANUP), []]


def test_without_a_crash_there_are_no_more_writes_than_that() -> None:
    """So that the crashes above come after each of them."""
    _, wrote = run(told(1000))
    assert 8 <= len(wrote) < 16
