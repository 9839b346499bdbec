"""Both stories of the proposal on real clusters: their Deployment controllers, schedulers and API servers.

CloneSets are run by ours, over the members' API servers. A recorder that watches the pods of both members judges.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random

import pytest

from controllers.align.stories import StoryBed, play_clone_set, play_deployment, play_pause, play_stateful_set
from controlplane.cluster import Cluster, Options
from controlplane.pytest_plugin import Clusters
from kedge.api.condition import is_true
from kedge.api.crds import karmada_crds, kruise_crds
from kedge.api.karmada.clusters import Cluster as Member
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.everything import add_workloads
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster as Connected
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.roles import add_karmada_hub, add_karmada_member
from real.role_fleet import KEEPS_HOUSE
from support.waiting import until_so

pytestmark = pytest.mark.timeout(600)

MEMBERS = ("cluster-1", "cluster-2")
ON_MEMBERS = kruise_crds()  # here: it reads files
ON_THE_HUB = (*karmada_crds(), *ON_MEMBERS)


@pytest.fixture(scope="module")
def planes(clusters: Clusters) -> Iterator[Mapping[str, Cluster]]:
    """A hub on which no workload runs, and two members with a node each."""
    wanted = {"align-hub": Options(controllers=True, only=KEEPS_HOUSE)}
    wanted |= {f"align-{name}": Options(controllers=True, nodes=1) for name in MEMBERS}
    found = clusters.many(wanted)
    yield {name.removeprefix("align-"): one for name, one in found.items()}
    clusters.give_back(*wanted)


@pytest.fixture
async def bed(planes: Mapping[str, Cluster]) -> AsyncIterator[StoryBed]:
    await _prepared(planes)
    async with AsyncExitStack() as stack:
        hub = await _running(stack, planes["hub"], _bindings)
        members = {name: await _running(stack, planes[name], _clone_sets) for name in MEMBERS}
        for name in MEMBERS:
            await _agent(stack, planes["hub"], planes[name], name)

        await until_so(partial(_are_ready, hub))

        async def apply(manifests: str) -> None:
            await planes["hub"].kubectl("apply", "-f", "-", input=manifests)

        yield StoryBed(hub, members, apply, quiet=5.0, deletes_first=False)


async def _prepared(planes: Mapping[str, Cluster]) -> None:
    """The kinds everywhere, and both members on the hub."""
    for where, plane in planes.items():
        definitions = ON_THE_HUB if where == "hub" else ON_MEMBERS
        text = "\n".join(f"---\n{json.dumps(one)}" for one in definitions)
        await plane.kubectl("apply", "-f", "-", input=text)
        await plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    for name in MEMBERS:
        member = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
        await planes["hub"].kubectl("apply", "-f", "-", input=json.dumps(member))


async def _are_ready(hub: Client) -> bool:
    found = (await hub.list(Member)).items
    return all(is_true(one.status.conditions, "Ready") for one in found)


def _bindings(manager: Manager, hub: Connected) -> None:
    add_karmada_hub(manager, hub)


def _clone_sets(manager: Manager, member: Connected) -> None:
    add_workloads(manager, member, [("cloneset", CloneSets)])


async def _running(stack: AsyncExitStack, plane: Cluster, add: Callable[[Manager, Connected], None]) -> Client:
    """Controllers over a cluster until the stack ends; gives a client of it."""
    manager = await stack.enter_async_context(Manager(component="kedge-align", rng=Random(1)))
    connected = await manager.connect(plane.name, await _to(plane), limiter=Limiter(rate=0))
    add(manager, connected)
    await stack.enter_async_context(_run(manager))
    return connected.client


async def _agent(stack: AsyncExitStack, hub: Cluster, member: Cluster, name: str) -> None:
    manager = await stack.enter_async_context(Manager(component="agent", rng=Random(2)))
    on_hub = await manager.connect("hub", await _to(hub), limiter=Limiter(rate=0))
    on_member = await manager.connect(name, await _to(member), limiter=Limiter(rate=0))
    add_karmada_member(manager, name, on_hub, on_member)
    await stack.enter_async_context(_run(manager))


async def _to(plane: Cluster) -> HttpsTransport:
    return HttpsTransport(await asyncio.to_thread(load, [plane.kubeconfig]))


@asynccontextmanager
async def _run(manager: Manager) -> AsyncIterator[None]:
    running = asyncio.create_task(manager.run(signals=False))
    try:
        yield
    finally:
        manager.stop()
        await running


PLAYS = [pytest.param(play_deployment, marks=pytest.mark.core), play_pause, play_clone_set, play_stateful_set]


@pytest.mark.parametrize("play", PLAYS)
async def test_a_story_of_the_proposal(bed: StoryBed, play: Callable[[StoryBed], Awaitable[None]]) -> None:
    await play(bed)
