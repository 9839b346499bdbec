"""A cluster behind HTTPS with Deployments, the operator of rollouts in batches, and a user who types commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml
from click.testing import CliRunner, Result

from controllers.batch.batch_bed import DEFINITIONS, Bed, Nobody
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.cli import kubeconfig, main
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.https_server import HttpsServer
from kedge.embedded.request_info import Caller
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager

SHOP = "shop"
SECONDS = 120


class Shop(Bed):
    """A namespace `shop`, which is also that of the context, and a user with commands."""

    def __init__(self, client: Client, cluster: EmbeddedCluster, file: Path) -> None:
        super().__init__(client)
        self.cluster = cluster
        self._file = file

    async def kedge(self, *words: object, code: int = 0) -> Result:
        """What comes of a command."""
        runner = CliRunner(env={"KUBECONFIG": str(self._file)})
        result = await asyncio.to_thread(runner.invoke, main, list(map(str, words)), catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    async def said(self, *words: object, code: int = 0) -> str:
        """What a command prints, with a blank for every space."""
        return " ".join((await self.kedge(*words, code=code)).output.split())

    async def data(self, *words: object, code: int = 0) -> Any:
        return msgspec.json.decode((await self.kedge(*words, "-o", "json", code=code)).stdout)

    async def until_said(self, sentence: str, *words: object, code: int = 0) -> str:
        """Until a command says this."""
        async with asyncio.timeout(SECONDS):
            while True:
                runner = CliRunner(env={"KUBECONFIG": str(self._file)})
                result = await asyncio.to_thread(runner.invoke, main, list(map(str, words)), catch_exceptions=False)
                if sentence in result.output and result.exit_code == code:
                    return result.output
                await asyncio.sleep(0.2)

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
    serving = await asyncio.to_thread(ServingCertificate, datetime.now(UTC))
    clock = SystemClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random("shop"))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    await make_nodes(user, 3, clock)
    await user.create(Namespace, {"metadata": {"name": SHOP}})
    for definition in DEFINITIONS:
        await user.create(CustomResourceDefinition, definition)
    door = HttpsServer(cluster.server, tokens={"secret": Caller()}, tls=serving.context)
    await door.open()
    file = folder / "kubeconfig"
    await asyncio.to_thread(kubeconfig.write, file, {"cluster": door.url}, authority=serving.authority, token="secret")
    await asyncio.to_thread(_at_home_in, file, SHOP)
    async with (
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
            await door.close()
            cluster.stop()


def _at_home_in(file: Path, namespace: str) -> None:
    config = yaml.safe_load(file.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    file.write_text(yaml.safe_dump(config))
