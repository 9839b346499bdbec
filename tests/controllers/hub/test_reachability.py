"""A member that is not heard is shown as such, with its last heartbeat; on an embedded hub in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from kedge.api import reasons
from kedge.api.cluster import MemberCluster
from kedge.controllers.hub.reachability import Reachability
from kedge.kube.patches import MergePatch
from support.fleets import Book, client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run


def play(scene: Callable[[Book], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport())
            manager.add_controller(Reachability(hub, clock=LoopClock()).controller)
            await scene(Book(client))

    run(main())


async def heartbeat(book: Book, joined: str = "True") -> datetime:
    now = LoopClock().now().replace(microsecond=0)
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Joined", "status": joined, "reason": "Said", "message": "", "lastTransitionTime": at}
    agent = {"type": "MemberAgent", "lastReceivedHeartbeat": at, "conditions": [condition]}
    patch = MergePatch({"status": {"agentStatus": [agent]}})
    await book.client.patch(MemberCluster, "cluster-1", patch, subresource="status")
    return now


def test_a_silent_member_is_shown_with_its_last_heartbeat_and_no_more_when_it_is_heard_again() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        last = await heartbeat(book)
        await asyncio.sleep(43)
        assert await book.condition("cluster-1", "Healthy") is None
        await asyncio.sleep(3)
        unhealthy = await book.condition("cluster-1", "Healthy")
        assert unhealthy is not None
        assert (unhealthy.status, unhealthy.reason) == ("False", reasons.MEMBER_UNREACHABLE)
        assert last.strftime("%Y-%m-%dT%H:%M:%SZ") in unhealthy.message
        await heartbeat(book)
        await asyncio.sleep(1)
        assert await book.condition("cluster-1", "Healthy") is None

    play(scene)


def test_a_member_that_is_heard_costs_no_write() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        for _ in range(20):
            await heartbeat(book)
            before = (await book.member("cluster-1")).metadata.resource_version
            await asyncio.sleep(15)
            assert (await book.member("cluster-1")).metadata.resource_version == before

    play(scene)


def test_a_member_that_stays_silent_is_written_once() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        await heartbeat(book)
        await asyncio.sleep(60)
        before = (await book.member("cluster-1")).metadata.resource_version
        await asyncio.sleep(7200)
        assert (await book.member("cluster-1")).metadata.resource_version == before

    play(scene)


def test_a_member_that_has_left_or_not_come_is_not_listened_for() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        await asyncio.sleep(3600)
        assert await book.condition("cluster-1", "Healthy") is None
        await heartbeat(book, joined="False")
        await asyncio.sleep(3600)
        assert await book.condition("cluster-1", "Healthy") is None

    play(scene)


def test_conditions_of_others_stay() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        await heartbeat(book)
        other = {"type": "Mine", "status": "True", "reason": "So", "message": ""}
        patch = MergePatch({"status": {"conditions": [{**other, "lastTransitionTime": "2030-01-01T00:00:00Z"}]}})
        await book.client.patch(MemberCluster, "cluster-1", patch, subresource="status")
        await asyncio.sleep(60)
        assert [one.type for one in (await book.member("cluster-1")).status.conditions] == ["Mine", "Healthy"]
        await heartbeat(book)
        await asyncio.sleep(1)
        assert [one.type for one in (await book.member("cluster-1")).status.conditions] == ["Mine"]

    play(scene)
