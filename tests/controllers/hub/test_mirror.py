"""Statuses of placed objects, brought back onto the originals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.fleet import PARENT_BINDING, PARENT_PLACEMENT, member_namespace
from kedge.api.twins import CLUSTER
from kedge.api.work import Work
from kedge.controllers.hub.mirror import Mirror
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support.fleets import client_of, fleet_cluster, managed
from support.placed import Placed
from support.virtual import run
from support.waiting import until_so

BACK = {"reportBackStrategy": {"type": "Mirror", "destination": "OriginalResource"}}
LABELS = {"app": "web"}
CONTAINER = {"name": "web", "image": "web:1"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
WEB = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}


def play(act: Callable[[Placed], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport())
            manager.add_controller(Mirror(hub, CLUSTER).controller)
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            await client.create(Deployment, WEB)
            placed = Placed(client)
            await placed.place(strategy=BACK)
            await act(placed)

    run(main())


async def bind(placed: Placed, cluster: str) -> str:
    """A binding with a Work, as others make them."""
    await placed.join(cluster)
    name = await placed.bind(cluster, state="Bound")
    labels = {PARENT_PLACEMENT: "crp", PARENT_BINDING: name}
    meta = {"name": "crp-work", "namespace": member_namespace(cluster), "labels": labels}
    await placed.client.create(Work, {"metadata": meta, "spec": {"workload": {"manifests": []}}})
    return name


async def reports(placed: Placed, cluster: str, status: dict[str, Any], at: str = "2030-01-01T00:00:00Z") -> None:
    """What a member's agent says of the Deployment."""
    names = {"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"}
    identifier = {"ordinal": 0, "name": "web", "namespace": "shop", **names}
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": status}
    back = {"observationTime": at, "observedStatus": whole}
    told = {"identifier": identifier, "conditions": [], "backReportedStatus": back}
    patch = MergePatch({"status": {"conditions": [], "manifestConditions": [told]}})
    await placed.client.patch(Work, "crp-work", patch, member_namespace(cluster), subresource="status")


async def original(placed: Placed) -> dict[str, Any]:
    return await placed.client.get(untyped(Deployment.resource), "web", "shop")


async def until_shown(placed: Placed, **status: Any) -> None:
    async def so() -> bool:
        return (await original(placed)).get("status") == status

    await until_so(so)


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
