"""Demo stage: what the demos share: a narrator, clusters in this process, and somebody who watches their pods.

Anything unexpected is an error: `DemoFailed`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Final, Self

import click
from prometheus_client import CollectorRegistry
from rich.console import Console, RenderableType
from rich.text import Text

from kedge import __version__
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.api.pods import Pod
from kedge.cli.render import draw
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.random_sources import branch
from kedge.operator_role import Operator, OperatorOptions

TIMEOUT: Final = 60.0
"""Seconds within which each expected thing must happen."""
QUIET_PERIOD: Final = 3.0
"""Seconds for which we watch that nothing unexpected happens."""
NODES: Final = 3


class DemoFailed(click.ClickException):
    """Something did not happen as the demo says."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the demo failed: {what}")


class Narrator:
    """Prints what happens."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self._headings = 0

    def begin(self, what: str) -> None:
        self.out.print(f"Kedge {__version__}: {what} in this process; no Kubernetes needed.")

    def heading(self, what: str) -> None:
        self._headings += 1
        self.out.print(Text(f"\n{self._headings}. {what}", "bold"))

    def say(self, what: str) -> None:
        draw(Text(what), self.out, indent=3)

    def command(self, command: str, answer: RenderableType | None = None) -> None:
        """Print a command that a user could type, and its output."""
        self.out.print(Text(f"\n   $ {command}", "dim"), soft_wrap=True)
        if answer is not None:
            draw(answer, self.out, indent=3)

    def note(self, what: str) -> None:
        self.out.print(Text(f"\n   {what}", "dim"))


class PodWatch:
    """Watches pods, and tells what becomes of each: as it was before, and as it is now."""

    def __init__(self, changed: Callable[[Pod | None, Pod | None], None]) -> None:
        self._changed = changed
        self._pods: dict[tuple[str, str], Pod] = {}
        self._news = asyncio.Event()
        self._began = 0.0

    @property
    def pods(self) -> Iterable[Pod]:
        return self._pods.values()

    def restart(self) -> None:
        """Measure time from now on."""
        self._began = asyncio.get_running_loop().time()

    @property
    def elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    async def follow(self, client: Client, namespace: str, cluster: str = "") -> None:
        """Watch the pods of a namespace, until cancelled."""
        while True:  # a watch ends after its time
            async with client.watch(Pod, namespace, initial_events=True, seconds=3600) as events:
                async for event in events:
                    if isinstance(found := getattr(event, "object", None), Pod):
                        self._take(cluster, found, is_gone=getattr(event, "type", "") == "DELETED")

    def _take(self, cluster: str, pod: Pod, *, is_gone: bool) -> None:
        key = cluster, pod.metadata.name
        before = self._pods.pop(key, None)
        if not is_gone:
            self._pods[key] = pod
        self._news.set()
        self._changed(before, None if is_gone else pod)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it holds in time. Something may change while no pod does, so it is asked now and then."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await holds():
                    self._news.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), 0.2)
        except TimeoutError:
            return False
        return True


class DemoStage:
    """Clusters and controllers, which run in this process while the stage is open."""

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self.clock = clock
        self._rng = rng
        self._stack = AsyncExitStack()
        self._managers: list[Manager] = []
        self._running: list[asyncio.Task[None]] = []
        self.servers: dict[str, EmbeddedCluster] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._stack.aclose()

    async def cluster(
        self,
        name: str,
        *,
        nodes: int = NODES,
        namespaces: Iterable[str] = (),
        definitions: Iterable[Mapping[str, Any]] = (),
    ) -> Client:
        """Add a cluster. One that has nodes runs its workloads."""
        server = EmbeddedCluster(name, clock=self.clock, rng=branch(self._rng))
        self.servers[name] = server
        server.start()
        self._stack.callback(server.stop)
        client = Client(server.transport(), limiter=Limiter(rate=0))
        self._stack.push_async_callback(client.close)
        if nodes:
            await make_nodes(client, nodes, self.clock)
            workloads = await self.manager("cluster")
            add_workloads(workloads, await workloads.connect(name, server.transport()))
        for namespace in namespaces:
            await client.create(Namespace, {"metadata": {"name": namespace}})
        for definition in definitions:
            await client.create(CustomResourceDefinition, definition)
        return client

    async def operator(self, name: str, options: OperatorOptions) -> None:
        """Add the operator of a cluster."""
        outbound = HttpOutbound()
        self._stack.push_async_callback(outbound.close)
        manager = await self.manager("operator")
        operator = Operator(
            await self.connect(manager, name),
            options,
            clock=self.clock,
            rng=branch(self._rng),
            registry=CollectorRegistry(),
            outbound=outbound,
        )
        for controller in operator.acting:
            manager.add_controller(controller)

    async def manager(self, component: str) -> Manager:
        """Add somebody who runs controllers, once the stage is started."""
        made = Manager(component=component, clock=self.clock, rng=branch(self._rng))
        manager = await self._stack.enter_async_context(made)
        self._managers.append(manager)
        return manager

    async def connect(self, manager: Manager, name: str) -> Cluster:
        return await manager.connect(name, self.servers[name].transport(), limiter=Limiter(rate=0))

    def start(self, *others: Coroutine[Any, Any, None]) -> None:
        """Run what was added, and these as well."""
        for one in (*(manager.run(signals=False) for manager in self._managers), *others):
            self._running.append(asyncio.create_task(one))


def image_of(pod: Pod) -> str:
    return next((one.image for one in pod.spec.containers or ()), "")
