"""Statuses of placed objects, brought back onto the originals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kedge.api.apps import Deployment
from kedge.api.core import Event
from kedge.api.placement_kinds import CLUSTER
from kedge.controllers.hub.mirror import Mirror
from kedge.controllers.hub.resources import Resources
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support import mirroring
from support.fleets import client_of, fleet_cluster, managed
from support.mirroring import ATTACKS, BACK, Attack, bind, until_shown
from support.placed import Placed
from support.virtual import run
from support.waiting import until_so

WEB = mirroring.identifier(Deployment.resource, "web", "shop")


def play(act: Callable[[Placed], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport())
            resources = Resources(hub)
            manager.add_controller(resources.controller)
            manager.add_controller(Mirror(hub, CLUSTER, resources).controller)
            placed = Placed(client)
            await mirroring.prepare(placed)
            await act(placed)

    run(main())


async def reports(placed: Placed, cluster: str, status: dict[str, Any], **more: Any) -> None:
    await mirroring.reports(placed, cluster, status, WEB, **more)


async def original(placed: Placed) -> dict[str, Any]:
    return await placed.client.get(untyped(Deployment.resource), "web", "shop")


def test_the_status_of_the_only_cluster_is_shown_on_the_original() -> None:
    async def act(placed: Placed) -> None:
        await bind(placed, "a")
        await reports(placed, "a", {"replicas": 3, "readyReplicas": 2})
        await until_shown(placed, replicas=3, readyReplicas=2)
        await reports(placed, "a", {"replicas": 3})
        await until_shown(placed, replicas=3)

    play(act)


def test_what_is_shown_already_is_not_written_again() -> None:
    async def act(placed: Placed) -> None:
        await bind(placed, "a")
        await reports(placed, "a", {"replicas": 3})
        await until_shown(placed, replicas=3)
        before = (await original(placed))["metadata"]["resourceVersion"]
        await reports(placed, "a", {"replicas": 3}, at="2030-01-01T01:00:00Z")
        await asyncio.sleep(5)
        assert (await original(placed))["metadata"]["resourceVersion"] == before

    play(act)


def test_of_several_clusters_none_is_shown_until_one_is_left() -> None:
    async def act(placed: Placed) -> None:
        await bind(placed, "a")
        other = await bind(placed, "b")
        await reports(placed, "a", {"replicas": 3})
        await reports(placed, "b", {"replicas": 4})
        await asyncio.sleep(5)
        assert not (await original(placed)).get("status")
        await placed.client.patch(CLUSTER.binding, other, MergePatch({"spec": {"state": "Unscheduled"}}))
        await until_shown(placed, replicas=3)

    play(act)


def test_nothing_is_shown_if_nobody_asked() -> None:
    async def act(placed: Placed) -> None:
        await placed.client.patch(CLUSTER.placement, "crp", MergePatch({"spec": {"strategy": None}}))
        await asyncio.sleep(1)  # until the controller has seen it, too
        await bind(placed, "a")
        await reports(placed, "a", {"replicas": 3})
        await asyncio.sleep(5)
        assert not (await original(placed)).get("status")
        await placed.client.patch(CLUSTER.placement, "crp", MergePatch({"spec": {"strategy": BACK}}))
        await until_shown(placed, replicas=3)

    play(act)


def test_an_original_that_is_gone_disturbs_nobody() -> None:
    async def act(placed: Placed) -> None:
        await bind(placed, "a")
        await placed.client.delete(Deployment, "web", "shop")
        await reports(placed, "a", {"replicas": 3})
        await asyncio.sleep(5)

    play(act)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_member_cannot_write_the_status_of(attack: Attack) -> None:
    async def act(placed: Placed) -> None:
        binding = await bind(placed, "a")
        await bind(placed, "b", of=binding)
        expected = await mirroring.expected(placed, attack)
        await mirroring.try_out(placed, attack)
        await asyncio.sleep(5)
        assert await mirroring.statuses(placed) == expected

    play(act)


def test_a_report_of_what_was_not_placed_is_an_event_on_the_placement() -> None:
    async def act(placed: Placed) -> None:
        await bind(placed, "a")
        await mirroring.try_out(placed, ATTACKS[0])

        async def so() -> bool:
            told = (await placed.client.list(Event, "default")).items
            return any("of objects that were not placed there" in one.message for one in told)

        await until_so(so)

    play(act)


def test_the_resources_a_binding_is_pointed_at_later_are_shown_then() -> None:
    async def act(placed: Placed) -> None:
        name = await bind(placed, "a")
        await placed.client.patch(
            CLUSTER.binding, name, MergePatch({"spec": {"resourceSnapshotName": "crp-1-snapshot"}})
        )
        await reports(placed, "a", {"replicas": 3})
        await asyncio.sleep(5)
        assert not (await original(placed)).get("status")
        await placed.snapshot(1, [mirroring.WEB])
        await until_shown(placed, replicas=3)

    play(act)
