"""A member's agent joins, reports and leaves: the hub's controllers and ours, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any

from msgspec import Struct, to_builtins

from kedge.api import reasons
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.condition import find_condition
from kedge.api.core import Namespace
from kedge.api.fleet import member_namespace
from kedge.api.pods import Node, Pod
from kedge.api.work import AppliedWork
from kedge.controllers.hub.members import Members
from kedge.controllers.hub.reachability import Reachability
from kedge.controllers.member.joining import Joining
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan import membership
from kedge.plan.membership import agent_of
from support.fleets import CRDS, DEFINITIONS, Book, client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until, until_so

NS = member_namespace("cluster-1")
APPLIED_WORKS: Any = next(one for one in DEFINITIONS if one["spec"]["names"]["kind"] == AppliedWork.resource.kind)


class Applier:
    """Stands in for the one who applies: notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def join(self) -> None:
        if self.told[-1:] != ["join"]:
            self.told.append("join")

    async def leave(self) -> None:
        await asyncio.sleep(3)
        self.told.append("leave")


class Agent(Struct):
    """A running agent, and its ways to both servers."""

    applier: Applier
    to_hub: InProcessTransport
    to_member: InProcessTransport


class Scene(Struct):
    """A hub with its controllers, a member, and a way to run agents."""

    book: Book
    on_member: Client
    start: Callable[[], Any]


def play(scene: Callable[[Scene], Awaitable[None]], *, prepared: bool = True) -> None:
    """With a member that is `prepared`, or one that lacks the kinds of a member."""

    async def main() -> None:
        async with (
            fleet_cluster() as hub,
            fleet_cluster("cluster-1", seed=2, kinds=prepared) as member,
            client_of(hub) as on_hub,
            client_of(member) as on_member,
            managed() as manager,
        ):

            @asynccontextmanager
            async def agent() -> AsyncIterator[Agent]:
                async with managed(seed=5) as agents:
                    running = Agent(Applier(), hub.transport(), member.transport())
                    joining = Joining(
                        await agents.connect("hub", running.to_hub),
                        await agents.connect("cluster-1", running.to_member),
                        "cluster-1",
                        clock=LoopClock(),
                        rng=Random(4),
                        applier=running.applier,
                    )
                    agents.add_controller(joining.controller)
                    yield running

            connected = await manager.connect("hub", hub.transport())
            manager.add_controller(Members(connected, clock=LoopClock()).controller)
            manager.add_controller(Reachability(connected, clock=LoopClock()).controller)
            await scene(Scene(Book(on_hub), on_member, agent))

    run(main())


async def a_node(client: Client, name: str = "n1", cpu: str = "1k", memory: str = "1Ti") -> None:
    await client.create(Node, {"metadata": {"name": name}})
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    patch = MergePatch({"status": {"capacity": amounts, "allocatable": amounts}})
    await client.patch(Node, name, patch, subresource="status")


async def a_pod(client: Client, name: str, cpu: str, memory: str, *, node: str = "n1") -> None:
    requests = {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    spec = {"nodeName": node or None, "containers": [{"name": "c", "image": "i", **requests}]}
    await client.create(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


async def until_joined(book: Book) -> None:
    await book.until_reason("cluster-1", "Joined", reasons.MEMBER_JOINED)


async def heartbeat_of(book: Book) -> datetime | None:
    return (await book.member("cluster-1")).status.agent_status[0].last_received_heartbeat


def test_a_member_that_joins_looks_as_kubefleet_shows_it() -> None:
    async def scene(here: Scene) -> None:
        await a_node(here.on_member)
        await here.book.add("cluster-1")
        async with here.start() as agent:
            await until_joined(here.book)
            assert agent.applier.told == ["join"]
        for kind, where, generation in ((InternalMemberCluster, NS, 1), (MemberCluster, None, 1)):
            found = await here.book.raw(kind, "cluster-1", where)
            status = found["status"]
            (agent_status,) = status["agentStatus"]
            assert [(one["type"], one["status"], one["reason"], one["observedGeneration"])
                    for one in agent_status["conditions"]] == [
                ("Healthy", "True", "InternalMemberClusterHealthy", generation),
                ("Joined", "True", "InternalMemberClusterJoined", generation),
            ]  # fmt: skip
            assert agent_status["type"] == "MemberAgent"
            assert status["properties"]["kubernetes-fleet.io/node-count"]["value"] == "1"
            assert status["properties"]["k8s.io/k8s-version"]["value"].startswith("v1.")
            amounts = {"cpu": "1k", "memory": "1Ti"}
            usage = {key: value for key, value in status["resourceUsage"].items() if key != "observationTime"}
            assert usage == {"capacity": amounts, "allocatable": amounts, "available": amounts}

    play(scene)


def test_heartbeats_come_about_every_period_and_change_nothing_else() -> None:
    async def scene(here: Scene) -> None:
        await a_node(here.on_member)
        await here.book.add("cluster-1")
        async with here.start():
            await until_joined(here.book)
            await asyncio.sleep(40)
            seen: dict[datetime | None, Any] = {}
            for _ in range(600):
                found = await here.book.said("cluster-1")
                status = (await here.book.raw(InternalMemberCluster, "cluster-1", NS))["status"]
                beat = found.status.agent_status[0].last_received_heartbeat
                del status["agentStatus"][0]["lastReceivedHeartbeat"]
                seen.setdefault(beat, status)
                await asyncio.sleep(1)
        assert 38 <= len(seen) <= 43
        assert all(status == seen[next(iter(seen))] for status in seen.values())

    play(scene)


def test_what_pods_ask_for_is_no_longer_available_until_they_end() -> None:
    async def scene(here: Scene) -> None:
        await a_node(here.on_member, cpu="4", memory="8Gi")
        await a_node(here.on_member, "n2", cpu="3500m", memory="8Gi")
        await asyncio.sleep(1)  # until there is a service account for pods
        await a_pod(here.on_member, "a", "250m", "512Mi")
        await a_pod(here.on_member, "b", "1", "1Gi")
        await a_pod(here.on_member, "waits", "2", "2Gi", node="")
        await here.book.add("cluster-1")

        async def available(cpu: str, memory: str) -> None:
            async def so() -> bool:
                usage = (await here.book.member("cluster-1")).status.resource_usage
                return usage is not None and usage.available == {"cpu": cpu, "memory": memory}

            await until_so(so)

        async with here.start():
            await available("6250m", "14848Mi")
            ended = MergePatch({"status": {"phase": "Succeeded"}})
            await here.on_member.patch(Pod, "b", ended, "default", subresource="status")
            await available("7250m", "15872Mi")

    play(scene)


def test_an_agent_waits_for_its_place_on_the_hub() -> None:
    async def scene(here: Scene) -> None:
        async with here.start() as agent:
            await asyncio.sleep(100)
            assert agent.applier.told == []
            await here.book.add("cluster-1")
            await until_joined(here.book)

    play(scene)


def test_an_agent_that_is_started_again_goes_on() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1")
        async with here.start():
            await until_joined(here.book)
        first = await heartbeat_of(here.book)
        await asyncio.sleep(60)
        assert await here.book.reason("cluster-1", "Healthy") == reasons.MEMBER_UNREACHABLE
        async with here.start():
            await here.book.until_reason("cluster-1", "Healthy", None)
            assert await heartbeat_of(here.book) != first

    play(scene)


def test_when_the_hub_is_back_it_hears_of_the_member_soon() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1", heartbeatPeriodSeconds=600)
        async with here.start() as agent:
            await until_joined(here.book)
            await asyncio.sleep(300)
            agent.to_hub.disconnect("cut")
            await asyncio.sleep(1200)
            agent.to_hub.connect()
            last = await heartbeat_of(here.book)

            async def heard() -> bool:
                return await heartbeat_of(here.book) != last

            await until_so(heard, 30)

    play(scene)


def test_a_member_whose_own_server_is_gone_says_so_and_keeps_its_numbers() -> None:
    async def scene(here: Scene) -> None:
        await a_node(here.on_member)
        await here.book.add("cluster-1")
        async with here.start() as agent:
            await until_joined(here.book)
            agent.to_member.disconnect("gone")

            async def unhealthy() -> bool:
                status = (await here.book.member("cluster-1")).status.agent_status[0]
                found = find_condition(status.conditions, "Healthy")
                return found is not None and found.reason == reasons.AGENT_UNHEALTHY and "gone" in found.message

            await until_so(unhealthy, 60)
            usage = (await here.book.member("cluster-1")).status.resource_usage
            assert usage is not None
            assert usage.capacity["cpu"] == "1k"

    play(scene)


def test_what_other_agents_say_is_left_alone() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1")
        async with here.start():
            await until_joined(here.book)
            said = await here.book.raw(InternalMemberCluster, "cluster-1", NS)
            other = {"type": "ServiceExportImportAgent", "lastReceivedHeartbeat": "2030-01-01T00:00:00Z"}
            patch = MergePatch({"status": {"agentStatus": [other, *said["status"]["agentStatus"]]}})
            await here.book.client.patch(InternalMemberCluster, "cluster-1", patch, NS, subresource="status")
            await asyncio.sleep(60)
            agents = (await here.book.said("cluster-1")).status.agent_status
            assert [agent.type for agent in agents] == ["ServiceExportImportAgent", "MemberAgent"]

    play(scene)


def test_told_to_leave_it_lets_go_of_all_it_applied_before_it_says_so() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1")
        async with here.start() as agent:
            await until_joined(here.book)
            await here.book.client.delete(MemberCluster, "cluster-1")
            await until(lambda: agent.applier.told == ["join", "leave"])

            async def gone() -> bool:
                try:
                    await here.book.client.get(Namespace, NS)
                    await here.book.member("cluster-1")
                except NotFound:
                    return True
                return False

            await until_so(gone)
            assert agent.applier.told == ["join", "leave"]
            await here.book.add("cluster-1")
            await until_joined(here.book)
            assert agent.applier.told == ["join", "leave", "join"]

    play(scene)


def test_one_that_has_left_says_so_again_if_that_is_taken_back() -> None:
    """As when the etcd of the hub is restored to a moment in which it was told to leave, and had not yet."""

    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1")
        async with here.start() as agent:
            await until_joined(here.book)
            joined = to_builtins((await here.book.said("cluster-1")).status)
            kept = MergePatch({"metadata": {"finalizers": ["example.com/kept"]}})
            await here.book.client.patch(InternalMemberCluster, "cluster-1", kept, NS)
            await here.book.client.delete(MemberCluster, "cluster-1")

            async def has_left() -> bool:
                found = await here.book.said("cluster-1")
                return membership.has_left(found) and found.metadata.deletion_timestamp is not None

            await until_so(has_left)
            await asyncio.sleep(60)
            told = len(agent.applier.told)
            restored = MergePatch({"status": {"agentStatus": joined["agentStatus"]}})
            await here.book.client.patch(InternalMemberCluster, "cluster-1", restored, NS, subresource="status")
            await until_so(has_left)
            assert agent.applier.told[told:] == ["leave"]

    play(scene)


def test_a_changed_period_takes_effect_at_once() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1", heartbeatPeriodSeconds=600)
        async with here.start():
            await until_joined(here.book)
            patch = MergePatch({"spec": {"heartbeatPeriodSeconds": 2}})
            await here.book.client.patch(MemberCluster, "cluster-1", patch)
            await asyncio.sleep(5)
            first = await heartbeat_of(here.book)
            await asyncio.sleep(5)
            assert await heartbeat_of(here.book) != first

    play(scene)


# Able to work


def test_an_agent_that_can_apply_nothing_has_not_joined_and_says_what_to_do_until_it_can() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1", heartbeatPeriodSeconds=600)
        async with here.start():
            await asyncio.sleep(20)
            joined = await here.book.condition("cluster-1", reasons.JOINED)
            assert joined is not None
            assert (joined.status, joined.reason) == ("Unknown", reasons.MEMBER_UNKNOWN)
            assert joined.message == (
                "the agent of cluster-1 has not joined yet: its cluster serves no AppliedWorks: "
                "`kedge install member cluster-1 | kubectl apply -f -`"
            )
            assert await says_healthy(here) == "False"
            await here.on_member.create(CRDS, APPLIED_WORKS)
            await asyncio.sleep(15)  # not the ten minutes of a heartbeat
            assert await here.book.reason("cluster-1", reasons.JOINED) == reasons.MEMBER_JOINED
            assert await says_healthy(here) == "True"

    play(scene, prepared=False)


def test_an_agent_that_can_no_longer_apply_is_not_healthy_and_stays_joined() -> None:
    async def scene(here: Scene) -> None:
        await here.book.add("cluster-1", heartbeatPeriodSeconds=600)
        async with here.start():
            await here.book.until_reason("cluster-1", reasons.JOINED, reasons.MEMBER_JOINED)
            await here.on_member.delete(CRDS, APPLIED_WORKS["metadata"]["name"])
            await asyncio.sleep(2000)  # a watch may outlive its kind; it lasts half an hour at most
            assert await says_healthy(here) == "False"
            assert await here.book.reason("cluster-1", reasons.JOINED) == reasons.MEMBER_JOINED

    play(scene)


async def says_healthy(here: Scene) -> str | None:
    agent = agent_of((await here.book.said("cluster-1")).status.agent_status)
    found = find_condition(agent.conditions, reasons.HEALTHY) if agent else None
    return found.status if found else None
