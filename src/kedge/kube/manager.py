"""Manager: runs clusters and controllers together, and stops them in order.

    async with Manager() as manager:
        cluster = await manager.connect("hub", transport)
        greeter = Greeter(cluster)
        manager.add_controller(Controller("greeter", greeter.reconcile, [cluster.watch(greeter.maps)]))
        await manager.run()

Promises:

* each cluster connects, fails and recovers on its own; clusters can be added and removed at any time;
* told to stop (`stop`, SIGTERM, SIGINT), controllers start nothing new, reconciles in progress may end within the grace
  period, then the lease is released, then everything else is closed; a second signal stops it at once;
* a component that crashes ends the whole process with an error that names it;
* no task is left behind.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Protocol, Self, TypeAlias

from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.crash import run_component, unwrap_crash
from kedge.kube.events import EventObserver
from kedge.kube.health import Address, Check, Health
from kedge.kube.limits import Limiter
from kedge.kube.metrics import Metrics
from kedge.kube.random_sources import branch
from kedge.kube.reachability import Probe, State
from kedge.kube.transport import Transport

Work: TypeAlias = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)

LAST_EVENTS = 2.0  # seconds for the events of the last reconciles to be written


class Leader(Protocol):
    """Leader election: lets one of several processes act."""

    def is_leading(self) -> bool:
        """Whether this process may act at this very moment."""
        ...

    async def lead(self, work: Work) -> None:
        """Wait for the leadership, do the work, give the leadership up. Raises if it is lost meanwhile."""
        ...


class Manager:
    """One process: its clusters, its controllers, its health."""

    def __init__(
        self,
        *,
        component: str = "kedge",
        clock: Clock | None = None,
        rng: random.Random | None = None,
        metrics: Metrics | None = None,
        leader: Leader | None = None,
        health: Address | None = None,
        grace: float = 30.0,
        event_observer: EventObserver | None = None,
    ) -> None:
        """`component` signs events and the lease's metric; `leader` decides whether controllers may act.

        `event_observer` is told of the events that are recorded, in all clusters.
        """
        self.component = component
        self.clock = clock or SystemClock()
        self.rng = rng or random.Random()
        self.metrics = metrics or Metrics()
        self.health_url = ""
        self._leader = leader
        self._health = health
        self._grace = grace
        self._event_observer = event_observer
        self._clusters: dict[str, Cluster] = {}
        self._cluster_tasks: dict[str, asyncio.Task[None]] = {}
        self._lost: set[str] = set()  # clusters that do not answer
        self._controllers: list[Controller] = []
        self._controller_tasks: list[asyncio.Task[None]] = []
        self._tasks = asyncio.TaskGroup()
        self._acting: asyncio.TaskGroup | None = None
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._cluster_tasks.values():
            task.cancel()
        try:
            with unwrap_crash():
                await self._tasks.__aexit__(kind, error, trace)
        finally:
            for cluster in self._clusters.values():
                await cluster.close()

    # Clusters

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return MappingProxyType(self._clusters)

    async def connect(
        self,
        name: str,
        transport: Transport,
        *,
        essential: bool = True,
        probe: Probe | None = None,
        limiter: Limiter | None = None,
        timeout: float = 30.0,
        if_missing: str = "",
    ) -> Cluster:
        """Run the cluster behind this transport, from now on. Does not wait until it is reached.

        `if_missing` says what to do about kinds that are needed there and not served.
        """
        client = Client(
            transport, limiter=limiter, rng=branch(self.rng), timeout=timeout, on_answer=self.metrics.answered
        )
        cluster = Cluster(
            name,
            client,
            clock=self.clock,
            rng=branch(self.rng),
            component=self.component,
            essential=essential,
            probe=probe,
            if_missing=if_missing,
            event_observer=self._event_observer,
        )
        await self.add(cluster)
        return cluster

    async def add(self, cluster: Cluster) -> None:
        """Run this cluster too, from now on."""
        if cluster.name in self._clusters:
            raise ValueError(f"there is a cluster {cluster.name} already: remove it first, or choose another name")
        self._clusters[cluster.name] = cluster
        cluster.on_state(partial(self._on_state, cluster.name))
        self._cluster_tasks[cluster.name] = self._start(self._tasks, f"cluster {cluster.name}", cluster.run)

    async def remove(self, name: str) -> None:
        """Stop this cluster, and have every controller forget it. Its client is closed."""
        cluster, task = self._clusters.pop(name), self._cluster_tasks.pop(name)
        self._lost.discard(name)
        for controller in self._controllers:
            controller.forget_cluster(name)
        task.cancel()
        await asyncio.wait([task])
        await cluster.close()

    def _on_state(self, name: str, state: State) -> None:
        if state.phase != "connected":
            self._lost.add(name)
        elif name in self._lost:
            self._lost.remove(name)
            for controller in self._controllers:
                controller.retry_failed_now()

    # Controllers

    def add_controller(self, controller: Controller) -> None:
        """Run this controller while leading. Starts at once if the manager runs."""
        if any(other.name == controller.name for other in self._controllers):
            raise ValueError(f"there is a controller {controller.name} already: its metrics would be mixed up")
        self._controllers.append(controller)
        if self._acting is not None and not self._stopping.is_set():
            self._act_with(self._acting, controller)

    def stop(self) -> None:
        """Stop in order; `run` returns when that is done."""
        self._stopping.set()

    async def run(self, *, signals: bool = True) -> None:
        """Work until told to stop. With `signals`, SIGTERM and SIGINT tell it to."""
        async with AsyncExitStack() as stack:
            stack.enter_context(unwrap_crash())
            if signals:
                stack.enter_context(self._stop_on_signals())
            if self._health is not None:
                serving = Health(self.checks, self.metrics.registry).serve(self._health)
                self.health_url = await stack.enter_async_context(serving)
                log.info("health and metrics are at %s", self.health_url)
            async with asyncio.TaskGroup() as tasks:
                leading = self._start(tasks, "leader election" if self._leader else "controllers", self._lead)
                await self._stopping.wait()
                if self._acting is None:
                    leading.cancel()  # still waiting to lead: there is nothing to stop

    def checks(self) -> list[Check]:
        """The readiness checks."""
        clusters = [
            Check(f"cluster {name}", "; ".join(cluster.problems()), required=cluster.essential)
            for name, cluster in self._clusters.items()
        ]
        essential = {name for name, cluster in self._clusters.items() if cluster.essential}
        return clusters + [self._check(controller, essential) for controller in self._controllers]

    def _check(self, controller: Controller, essential: set[str]) -> Check:
        waiting = controller.waits_for()
        problem = f"waits for the caches of {', '.join(waiting)}" if waiting else ""
        return Check(f"controller {controller.name}", problem, required=bool(essential & set(waiting)))

    # Inside

    async def _lead(self) -> None:
        if self._leader is None:
            await self._act()
        else:
            await self._leader.lead(self._act)
        if not self._stopping.is_set():
            raise RuntimeError("it ended without having been told to")

    async def _act(self) -> None:
        """Run the controllers until told to stop, then let them finish."""
        self.metrics.leading(self.component, True)
        try:
            with unwrap_crash():
                async with asyncio.TaskGroup() as self._acting:
                    for controller in self._controllers:
                        self._act_with(self._acting, controller)
                    await self._stopping.wait()
                    await self._stop_controllers()
        finally:
            self.metrics.leading(self.component, False)

    def _act_with(self, acting: asyncio.TaskGroup, controller: Controller) -> None:
        gate = self._leader.is_leading if self._leader is not None else None
        work = partial(controller.run, rng=branch(self.rng), metrics=self.metrics, gate=gate)
        self._controller_tasks.append(self._start(acting, f"controller {controller.name}", work))

    async def _stop_controllers(self) -> None:
        for controller in self._controllers:
            controller.stop()
        for task in await self._late(self._controller_tasks):
            log.warning("%s did not end within %g s, and is cancelled", task.get_name(), self._grace)
            task.cancel()
        await self._last_events()

    async def _late(self, tasks: list[asyncio.Task[None]]) -> list[asyncio.Task[None]]:
        """The tasks that have not ended within the grace period, in order."""
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace)
        return [task for task in tasks if not task.done()]

    async def _last_events(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EVENTS):
                for cluster in self._clusters.values():
                    await cluster.events.written()

    def _start(self, tasks: asyncio.TaskGroup, name: str, work: Work) -> asyncio.Task[None]:
        return tasks.create_task(run_component(name, work), name=name)

    @contextmanager
    def _stop_on_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def told(name: str) -> None:
            if self._stopping.is_set():
                log.warning("%s again: stopping at once", name)
                task.cancel()
            else:
                log.info("%s: stopping; again to stop at once", name)
                self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told, number.name)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
