"""Simulation: servers, processes and the network between them, from one seed.

    async def scenario(simulation: Simulation) -> None:
        simulation.server("hub")
        simulation.start("stamper", stamper)
        simulation.always("no object is stamped twice", once)
        user = simulation.client("hub")
        ...
        simulation.end_faults()
        await simulation.until("every stamp is true", stamped, within=600)

What must always hold is checked after every write to any server, within that write; what must hold at the end, when
the scenario is over. The first violation ends the run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any, TypeAlias

from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.client import Client
from kedge.kube.connect.outbound import Outbound
from kedge.kube.limits import Limiter
from kedge.kube.transport import Request
from kedge.simulate.clock import START, JumpingClock, Jumps, LoopClock
from kedge.simulate.faults import NONE, Faults, request_kind
from kedge.simulate.loop import Loop
from kedge.simulate.network import Link
from kedge.simulate.process import Main, Process
from kedge.simulate.process_tasks import Task
from kedge.simulate.seeded_random import SeededRandom
from kedge.simulate.trace import Trace

Always: TypeAlias = Callable[[str, Kind, Change], str]
"""Given a server's name and a change just made there: what is wrong, or nothing."""

AtEnd: TypeAlias = Callable[[], str]
"""What is wrong, or nothing."""


class InvariantViolated(Exception):
    """Something that must hold does not hold."""


class Simulation:
    """One run, on the loop it is made on."""

    def __init__(
        self, seed: int, loop: Loop, *, faults: Faults = NONE, trace: Trace | None = None, start: datetime = START
    ) -> None:
        """`faults` are those of every link of a process, until `end_faults`."""
        self.seed = seed
        self.loop = loop
        self.faults = faults
        self.trace = trace or Trace(loop)
        self.clock = LoopClock(loop, start)
        self.failure: InvariantViolated | None = None
        self.writes = 0  # to all servers
        self.counts: Counter[tuple[str, ...]] = Counter()  # whatever is worth counting, by name
        self.processes: dict[str, Process] = {}
        self._seeded = SeededRandom(seed)
        self._servers: dict[str, Server] = {}
        self._clusters: list[EmbeddedCluster] = []
        self._users: dict[str, Link] = {}
        self._with_owners: set[str] = set()
        self._always: list[tuple[str, Always]] = []
        self._at_end: list[tuple[str, AtEnd]] = []
        self._last_write = 0.0
        self._over = False

    def rng(self, *names: str | int) -> Random:
        """A source of random numbers for this use: always the same one from the same seed."""
        return self._seeded.random_for(*names)

    # Servers and those who use them

    def server(self, name: str, **options: Any) -> Server:
        """A new server; options are those of `Server`."""
        return self.add_server(name, Server(clock=self.clock, rng=self.rng("server", name), **options))

    def cluster(
        self,
        name: str,
        *,
        outbound: Outbound | None = None,
        webhook_addresses: Mapping[str, tuple[str, int]] | None = None,
    ) -> EmbeddedCluster:
        """A new server with the controllers of a cluster: garbage collection, and the contents of namespaces.

        Its admission webhooks are called through `outbound`, those of a Service at its address in `webhook_addresses`.
        """
        made = EmbeddedCluster(
            name,
            clock=self.clock,
            rng=self.rng("cluster", name),
            outbound=outbound,
            webhook_addresses=webhook_addresses,
        )
        self.add_server(name, made.server)
        self._clusters.append(made)
        made.start()
        return made

    def add_server(self, name: str, server: Server) -> Server:
        """Make this server part of the simulation."""
        if name in self._servers:
            raise ValueError(f"there is a server {name} already")
        self._servers[name] = server
        server.store.subscribe(lambda kind, change: self._changed(name, kind, change))
        return server

    def start(self, name: str, main: Main, *, exits_on: tuple[type[Exception], ...] = ()) -> Process:
        """Start a process."""
        if name in self.processes:
            raise ValueError(f"there is a process {name} already")
        self.processes[name] = Process(name, main, self, exits_on=exits_on)
        self.processes[name].start()
        return self.processes[name]

    def client(self, server: str, user: str = "user") -> Client:
        """A client for a user outside of the system, without faults."""
        name = f"{user} → {server}"
        if name not in self._users:
            self._users[name] = self._link(name, server, NONE, self.rng("user", user, server))
        return Client(self._users[name], limiter=Limiter(rate=0), rng=self.rng("user", user, server, "client"))

    def show_owners(self, name: str) -> None:
        """Whoever uses this link gets the `managedFields` of objects, as over a network: most need none."""
        self._with_owners.add(name)

    def new_link(self, name: str, server: str, rng: Random) -> Link:
        return self._link(name, server, self.faults, rng)

    def _link(self, name: str, server: str, faults: Faults, rng: Random) -> Link:
        there = self._servers[server]
        caller = Caller() if name in self._with_owners else IN_PROCESS
        inner = InProcessTransport(there, rng=Random(rng.getrandbits(64)), caller=caller)
        return Link(
            name,
            inner,
            rng=rng,
            faults=faults,
            trace=self.trace,
            newest=lambda: there.store.number,
            hit=self._hit,
        )

    def _hit(self, link: str, fault: str, request: Request) -> None:
        self.counts["fault", link, fault, request_kind(request)] += 1

    def new_clock(self, *names: str | int) -> JumpingClock:
        jumps = Jumps(self.faults.clock_jumps, self.faults.clock_seconds)
        return JumpingClock(self.clock, self.loop, rng=self.rng("clock", *names), jumps=jumps)

    def end_faults(self) -> None:
        """Nothing goes wrong from now on."""
        self.trace.remark("simulation", "faults stop")
        self.faults = NONE
        for process in self.processes.values():
            process.end_faults()

    @property
    def servers(self) -> Mapping[str, Server]:
        """Every server, by name."""
        return self._servers

    # What must hold

    def always(self, sentence: str, check: Always) -> None:
        """Check this after every write to any server."""
        self._always.append((sentence, check))

    def at_end(self, sentence: str, check: AtEnd) -> None:
        """Check this when the scenario is over."""
        self._at_end.append((sentence, check))

    async def until(
        self, sentence: str, condition: Callable[[], object], *, within: float = 3600.0, every: float = 0.5
    ) -> None:
        """Wait until the condition holds. The run fails if it does not hold in time."""
        deadline = self.loop.time() + within
        while not condition():
            if self.loop.time() >= deadline:
                raise InvariantViolated(f"within {within:g} s: {sentence}")
            await asyncio.sleep(every)

    async def rest(self, *, quiet: float = 60.0, within: float = 3600.0) -> None:
        """Wait until nobody has written anything for `quiet` seconds."""
        await self.until(
            f"nothing is written for {quiet:g} s",
            lambda: self.loop.time() - self._last_write >= quiet,
            within=within,
            every=quiet / 10,
        )

    def failed(self, sentence: str, error: BaseException | None = None) -> None:
        """End the run: this is violated."""
        if self.failure is None and not self._over:
            self.failure = InvariantViolated(sentence)
            self.failure.__cause__ = error
            self.trace.stop()
            self.loop.stop()

    def check_end(self) -> None:
        """Check everything that must hold at the end."""
        for sentence, check in self._at_end:
            if wrong := check():
                raise InvariantViolated(f"{sentence}: {wrong}")

    def _changed(self, server: str, kind: Kind, change: Change) -> None:
        self.writes += 1
        self._last_write = self.loop.time()
        self._ask_all(server, kind, change)
        # By its task, not its context: what a server does by itself runs in the context of whoever caused it.
        task = asyncio.current_task(self.loop)
        if isinstance(task, Task) and task.group is not None and task.group.name in self.processes:
            what = f"{change.type} {kind.resource.plural} {change.version.key}"
            if self.processes[task.group.name].wrote(task.group, what):
                self._crashed_after(task.group.name, kind, change)

    def _crashed_after(self, process: str, kind: Kind, change: Change) -> None:
        link, _ = self.trace.carried() or (process, 0)
        self.counts["fault", link, "crash", f"{change.type} {kind.resource.plural}"] += 1

    def _ask_all(self, server: str, kind: Kind, change: Change) -> None:
        for sentence, check in self._always:
            # Raising here would end up with whoever writes, as an error of the server.
            try:
                wrong = check(server, kind, change)
            except Exception as error:  # noqa: BLE001
                self.failed(f"{sentence}: the check failed", error)
                return
            if wrong:
                self.failed(f"{sentence}: {wrong}")
                return

    # The end

    def close(self) -> None:
        """The run is over: record nothing more, and end every process."""
        self._over = True
        self.trace.stop()
        for process in self.processes.values():
            process.end()
        for link in self._users.values():
            link.cut("the simulation is over", for_good=True)
        for cluster in self._clusters:
            cluster.stop()
