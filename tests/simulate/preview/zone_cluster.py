"""Clusters with a rollout group, in virtual time: what a preview of zones is read from, and compared with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import StatefulSet
from kedge.api.core import Namespace
from kedge.api.crds import zone_crds
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import Caller
from kedge.embedded.store import key_of
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run
from kedge.simulate.preview.group_state import GroupState
from kedge.simulate.preview.group_state_reader import read_group

NAMESPACE, GROUP = "mimir", "ingester"
ZONES = tuple(f"{GROUP}-zone-{letter}" for letter in "abc")
SETS = untyped(StatefulSet.resource)
DEFINITIONS = zone_crds()
Edit = Callable[[Client], Awaitable[None]]


async def nothing(_: Client) -> None:
    """The group stays as it is."""


def stateful_set(
    zone: str,
    image: str = "app:1",
    *,
    replicas: int | None = 3,
    annotations: Mapping[str, str] | None = None,
    ready_after: str = "20s",
    **spec: Any,
) -> Untyped:
    """A zone, as a user has it in a file."""
    labels = {"name": zone}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": ready_after}},
        "spec": {"containers": [{"name": "app", "image": image}]},
    }
    count = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": zone,
            "namespace": NAMESPACE,
            "labels": {ROLLOUT_GROUP: GROUP},
            "annotations": {MAX_UNAVAILABLE: "2", **(annotations or {})},
        },
        "spec": {
            **count,
            "serviceName": zone,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


def release(image: str, **options: Any) -> tuple[Untyped, ...]:
    """The same image for all zones."""
    return tuple(stateful_set(zone, image, **options) for zone in ZONES)


@asynccontextmanager
async def zone_cluster() -> AsyncIterator[tuple[EmbeddedCluster, Client, LoopClock]]:
    """A cluster with workloads, and nobody who rolls groups out."""
    clock, rng = LoopClock(asyncio.get_running_loop()), Random("zones")
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random("cluster"))
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    cluster.start()
    async with Manager(component="kcm", clock=clock, rng=rng) as manager:
        for definition in DEFINITIONS:
            await client.create(untyped(CustomResourceDefinition.resource), definition)
        await make_nodes(client, 3, clock)
        add_workloads(manager, await manager.connect("cluster", cluster.transport()))
        running = asyncio.create_task(manager.run(signals=False))
        try:
            yield cluster, client, clock
        finally:
            manager.stop()
            await running
            await client.close()
            cluster.stop()


async def apply(client: Client, *objects: Untyped) -> None:
    for one in objects:
        await client.apply(SETS, one, manager="kubectl", force=True)


async def open_group(client: Client, *objects: Untyped) -> None:
    """Make the group and wait until its pods are ready."""
    await client.create(Namespace, {"metadata": {"name": NAMESPACE}})
    await apply(client, *(objects or release("app:1")))
    await asyncio.sleep(120)


def group_state(
    edit: Edit = nothing, *, sets: tuple[Untyped, ...] = (), changed: tuple[Untyped, ...] = (), wait: float = 60.0
) -> GroupState:
    """A group as it is a while after an edit. The edit may leave pods outdated: nobody replaces them."""

    async def reading() -> GroupState:
        async with zone_cluster() as (cluster, client, clock):
            await open_group(client, *sets)
            await edit(client)
            await asyncio.sleep(wait)
            user = Client(InProcessTransport(cluster.server, rng=Random("user"), caller=Caller()))
            try:
                return await read_group(user, NAMESPACE, GROUP, changed, clock.now())
            finally:
                await user.close()

    return run(reading())


def stored(group: GroupState, cluster: EmbeddedCluster) -> None:
    """Have a server hold a group, as it was read."""
    kinds = {(one.resource.api_version, one.resource.kind): one for one in cluster.server.registry.kinds()}
    for obj in (*group.sets, *group.pods, *group.revisions, *group.others):
        meta = obj["metadata"]
        body = {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}
        key = key_of(meta["namespace"], meta["name"])
        cluster.server.store.create(kinds[obj["apiVersion"], obj["kind"]], key, body)


async def annotate(client: Client, zone: str, key: str, value: str | None) -> None:
    await client.patch(StatefulSet, zone, MergePatch({"metadata": {"annotations": {key: value}}}), NAMESPACE)


async def pods_of(client: Client) -> list[Pod]:
    return list((await client.list(Pod, NAMESPACE)).items)
