"""Hub and members together: those that are started, and what happens to placements when one falls silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from kedge.api.cluster import MemberCluster
from kedge.api.condition import is_true
from kedge.api.core import ConfigMap, Namespace
from kedge.api.dialect import Dialect
from kedge.api.placement import ClusterResourcePlacement
from kedge.embedded.cluster import EmbeddedCluster
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from support.fleets import Book, client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

SELECTOR = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}


def test_a_fleet_with_its_roles_is_one_whose_members_have_joined() -> None:
    async def main() -> None:
        async with Fleet(members=3, clock=LoopClock(), rng=Random(1), nodes=1) as fleet:
            await fleet.run_workloads()
            await fleet.run_roles(HubOptions(dialect=Dialect.kubefleet), labels={"cluster-2": {"loc": "east"}})
            async with client_of(fleet.hub) as client:
                found = (await client.list(MemberCluster)).items
            assert all(is_true(member.status.conditions, "Joined") for member in found)
            assert {member.metadata.name: member.metadata.labels.get("loc") for member in found} == {
                "cluster-1": None,
                "cluster-2": "east",
                "cluster-3": None,
            }

    run(main())


@asynccontextmanager
async def agent_of(hub: EmbeddedCluster, member: EmbeddedCluster) -> AsyncIterator[None]:
    async with managed(seed=7) as manager:
        to_hub = await manager.connect("hub", hub.transport())
        add_member(
            manager, "cluster-1", to_hub, await manager.connect("cluster-1", member.transport()), MemberOptions()
        )
        yield


async def place(client: Client) -> None:
    await client.create(Namespace, {"metadata": {"name": "shop"}})
    await client.create(ConfigMap, {"metadata": {"name": "prices", "namespace": "shop"}, "data": {"tea": "2"}})
    spec = {"resourceSelectors": [SELECTOR], "policy": {"placementType": "PickAll"}}
    await client.create(ClusterResourcePlacement, {"metadata": {"name": "shop"}, "spec": spec})


def test_a_member_that_cannot_be_reached_is_shown_as_such_on_every_placement_it_holds() -> None:
    async def main() -> None:
        async with (
            fleet_cluster() as hub,
            fleet_cluster("cluster-1", seed=2) as member,
            client_of(hub) as client,
            managed() as manager,
        ):
            add_hub(manager, await manager.connect("hub", hub.transport()), HubOptions(collect=0.0))
            book = Book(client)

            async def is_available() -> bool:
                found = await client.get(ClusterResourcePlacement, "shop")
                return is_true(found.status.conditions, "ClusterResourcePlacementAvailable")

            async def is_unavailable() -> bool:
                return not await is_available()

            await book.add("cluster-1")
            async with agent_of(hub, member):
                await place(client)
                await until_so(is_available, 60)
            last = (await book.member("cluster-1")).status.agent_status[0].last_received_heartbeat
            assert last is not None
            await until_so(is_unavailable, 100)
            (status,) = (await client.get(ClusterResourcePlacement, "shop")).status.placement_statuses
            said = " ".join(condition.message for condition in status.conditions)
            assert f"{last:%Y-%m-%dT%H:%M:%SZ}" in said
            async with agent_of(hub, member):
                await until_so(is_available, 60)
            await asyncio.sleep(0)

    run(main())
