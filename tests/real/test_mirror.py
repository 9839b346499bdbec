"""Statuses brought back onto the originals of a real hub: what is true is shown, and nothing else can be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from controlplane.plane import ControlPlane
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.api.apps import Deployment
from kedge.api.crds import crds
from kedge.api.placement_kinds import CLUSTER
from kedge.controllers.hub.mirror import Mirror
from kedge.controllers.hub.resources import Resources
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from support import mirroring
from support.fleets import CRDS
from support.placed import Placed
from support.waiting import until_so

pytestmark = [pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST)]

DEFINITIONS = crds()
WEB = mirroring.identifier(Deployment.resource, "web", "shop")


@asynccontextmanager
async def real_hub(plane: ControlPlane) -> AsyncIterator[Placed]:
    cluster = await plane.start("hub", only=("namespace-controller", "serviceaccount-controller"))
    config = await asyncio.to_thread(load, [cluster.kubeconfig])
    client = Client(HttpsTransport(config), limiter=Limiter(rate=0))
    for definition in DEFINITIONS:
        await client.create(CRDS, definition)
    await until_so(lambda: _serves(client))
    async with Manager(clock=SystemClock(), rng=Random(1), grace=1.0) as manager:
        hub = await manager.connect("hub", HttpsTransport(config))
        resources = Resources(hub)
        manager.add_controller(resources.controller)
        manager.add_controller(Mirror(hub, CLUSTER, resources).controller)
        running = asyncio.create_task(manager.run(signals=False))
        yield Placed(client)
        manager.stop()
        await running
    await client.close()


async def _serves(client: Client) -> bool:
    found = (await client.list(CRDS)).items
    said = [one for item in found for one in item.get("status", {}).get("conditions") or ()]
    return [(one["type"], one["status"]) for one in said].count(("Established", "True")) == len(DEFINITIONS)


async def test_a_member_writes_the_status_of_what_was_placed_there_and_of_nothing_else(own_plane: ControlPlane) -> None:
    async with real_hub(own_plane) as placed:
        await mirroring.prepare(placed)
        binding = await mirroring.bind(placed, "a")
        await mirroring.bind(placed, "b", of=binding)
        for number, attack in enumerate(mirroring.ATTACKS):
            expected = await mirroring.expected(placed, attack)
            await mirroring.try_out(placed, attack)
            await asyncio.sleep(1.0)  # what is not to happen has no event to wait for
            assert await mirroring.statuses(placed) == expected, attack.name
            await mirroring.restore(placed, attack)
            await mirroring.reports(placed, "a", {"replicas": number + 1}, WEB)
            await mirroring.until_shown(placed, within=60.0, replicas=number + 1)
