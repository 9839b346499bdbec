"""A member that is not heard is shown as such, with its last heartbeat; on an embedded hub in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from kedge.api import reasons
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.fleet import member_namespace
from kedge.controllers.hub.members import Members
from kedge.controllers.hub.reachability import Heartbeats, Reachability
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.placing.filters import why_ineligible
from support.fleets import Book, client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

NS = member_namespace("cluster-1")


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


# Clocks that are wrong


class Machines:
    """A hub that runs, ends and begins again, and a member whose clock is off."""

    def __init__(self, cluster: EmbeddedCluster, book: Book, off: float) -> None:
        self.book = book
        self._cluster = cluster
        self._off = timedelta(seconds=off)

    @asynccontextmanager
    async def hub(self) -> AsyncIterator[None]:
        """A hub that listens, until the block ends."""
        async with managed() as manager:
            hub = await manager.connect("hub", self._cluster.transport())
            heartbeats = Heartbeats(LoopClock())
            manager.add_controller(Members(hub, clock=LoopClock(), heartbeats=heartbeats).controller)
            manager.add_controller(Reachability(hub, clock=LoopClock(), heartbeats=heartbeats).controller)
            await until_so(self._has_place, 60)
            yield

    async def _has_place(self) -> bool:
        try:
            await self.book.said("cluster-1")
        except NotFound:
            return False
        return True

    async def beat(self, times: int = 1, every: float = 15.0) -> None:
        """So many heartbeats, and as many pauses."""
        for _ in range(times):
            await self._beat()
            await asyncio.sleep(every)

    async def _beat(self) -> None:
        at = f"{LoopClock().now() + self._off:%Y-%m-%dT%H:%M:%SZ}"
        conditions = [
            {"type": kind, "status": "True", "reason": "Said", "message": "", "lastTransitionTime": at}
            for kind in ("Joined", "Healthy")
        ]
        agent = {"type": "MemberAgent", "lastReceivedHeartbeat": at, "conditions": conditions}
        patch = MergePatch({"status": {"agentStatus": [agent]}})
        await self.book.client.patch(InternalMemberCluster, "cluster-1", patch, NS, subresource="status")

    async def is_unreachable(self) -> bool:
        return await self.book.condition("cluster-1", "Healthy") is not None

    async def is_eligible(self) -> bool:
        """Whether something new may be placed there."""
        return why_ineligible(await self.book.member("cluster-1"), LoopClock().now()) is None


def with_clock_off(off: float, scene: Callable[[Machines], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await asyncio.sleep(7200)  # so that there is an hour before
            book = Book(client)
            await book.add("cluster-1")
            await scene(Machines(cluster, book, off))

    run(main())


WRONG = pytest.mark.parametrize("off", [-3600, 0, 3600])


@WRONG
def test_a_member_that_dies_is_unreachable_in_time_whatever_its_clock_shows(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            await here.beat(8)
            died = LoopClock().now() - timedelta(seconds=15)
            await asyncio.sleep(28)
            assert not await here.is_unreachable()
            await asyncio.sleep(5)
            found = await here.book.condition("cluster-1", "Healthy")
            assert found is not None
            assert f"its last heartbeat was at {died:%Y-%m-%dT%H:%M}" in found.message

    with_clock_off(off, scene)


@WRONG
def test_a_member_that_beats_is_reachable_whatever_its_clock_shows(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            for _ in range(20):
                await here.beat()
                assert not await here.is_unreachable()
                assert await here.is_eligible()

    with_clock_off(off, scene)


@WRONG
def test_a_member_that_dies_takes_on_nothing_new_after_a_while_whatever_its_clock_shows(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            await here.beat(3)
            await asyncio.sleep(300)
            assert not await here.is_eligible()

    with_clock_off(off, scene)


@WRONG
def test_a_hub_that_begins_again_calls_nobody_unreachable_who_beats(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            await here.beat(3)
        await here.beat(40)
        async with here.hub():
            for _ in range(8):
                await here.beat()
                assert not await here.is_unreachable()
            assert await here.is_eligible()

    with_clock_off(off, scene)


@WRONG
def test_a_hub_that_begins_again_finds_who_died_meanwhile(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            await here.beat(3)
        await here.beat(3)
        await asyncio.sleep(300)
        async with here.hub():
            await asyncio.sleep(46)
            assert await here.is_unreachable()

    with_clock_off(off, scene)


@WRONG
def test_a_hub_that_begins_again_does_not_take_the_dead_for_alive(off: int) -> None:
    async def scene(here: Machines) -> None:
        async with here.hub():
            await here.beat(3)
            await asyncio.sleep(60)
            before = await here.book.member("cluster-1")
        for _ in range(3):
            async with here.hub():
                for _ in range(60):
                    assert await here.is_unreachable()
                    await asyncio.sleep(1)
        assert (await here.book.member("cluster-1")).status == before.status
        async with here.hub():
            await here.beat(2)
            assert not await here.is_unreachable()

    with_clock_off(off, scene)
