"""A cluster behind HTTPS with Deployments, the operator of rollouts in batches, and a user who types commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from cli.typing_user import SECONDS, User, served
from controllers.batch.batch_bed import DEFINITIONS, Bed, Nobody
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager

SHOP = "shop"


class Shop(Bed, User):
    """A namespace `shop`, which is also that of the context, and a user with commands."""

    def __init__(self, client: Client, cluster: EmbeddedCluster, file: Path) -> None:
        Bed.__init__(self, client)
        User.__init__(self, file)
        self.cluster = cluster

    async def until_served(self, kind: type[Any]) -> None:
        async def is_served() -> bool:
            with suppress(NotFound):
                await self.client.list(kind)
                return True
            return False

        await self.until(is_served)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(SECONDS):
            while not await holds():
                await asyncio.sleep(0.05)


@asynccontextmanager
async def shop(folder: Path, *, operated: bool = True) -> AsyncIterator[Shop]:
    """The cluster; with `operated` somebody moves the rollouts."""
    clock = SystemClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random("shop"))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    await make_nodes(user, 3, clock)
    await user.create(Namespace, {"metadata": {"name": SHOP}})
    for definition in DEFINITIONS:
        await user.create(CustomResourceDefinition, definition)
    async with (
        served(cluster, folder, SHOP) as file,
        Manager(component="kcm", clock=clock, rng=Random(4)) as others,
        Manager(component="kedge-operator", clock=clock, rng=Random(5)) as manager,
    ):
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        if operated:
            connected = await manager.connect("cluster", cluster.transport(), limiter=Limiter(rate=0))
            for controller in batch_controllers(connected, (), clock=clock, outbound=Nobody()):
                manager.add_controller(controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, manager)]
        try:
            yield Shop(user, cluster, file)
        finally:
            manager.stop()
            others.stop()
            await asyncio.gather(*running)
            await user.close()
            cluster.stop()
