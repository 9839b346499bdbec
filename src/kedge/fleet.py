"""Fleet: a hub and members in one process, each with its own API, and workloads that come up on the members.

    async with Fleet(members=4, clock=SystemClock(), rng=Random(1)) as fleet:
        await fleet.run_workloads()
        await fleet.run_roles()                      # the hub's controllers and the members' agents; all have joined
        client = Client(fleet.hub.transport())

Nothing here opens a socket. The members' workloads are simulated by controllers (`embedded.workloads`) that use each
member's API as any client does. The hub runs no workloads. The roles are those that run on real clusters, and use the
APIs of hub and members in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from kedge.api import reasons
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import Identity, MemberCluster, MemberClusterSpec
from kedge.api.condition import is_true
from kedge.api.core import Namespace
from kedge.api.crd import Crd, crd
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.meta import ObjectMeta
from kedge.api.work import AppliedWork
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.embedded.workloads.everything import Workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Outbound
from kedge.kube.errors import AlreadyExists
from kedge.kube.events import EventObserver
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.store import Change
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member

NODES = 2  # of each member
HEARTBEAT: Final = 15  # seconds
_DEFINITIONS: Final = untyped(CustomResourceDefinition.resource)
_SEED: Final = crds(Dialect.seed)  # reads our own sources, which must not happen while an event loop runs
_NO_LABELS: Final[Mapping[str, str]] = {}


class Fleet:
    """A hub and `members` clusters, named `cluster-1` and on; each has `nodes` nodes.

    Their admission webhooks are called through `outbound`; without one they cannot be reached. `event_observer` is told
    of the events that the hub's controllers record.
    """

    def __init__(
        self,
        *,
        members: int,
        clock: Clock,
        rng: Random,
        nodes: int = NODES,
        authority: str = "",
        outbound: Outbound | None = None,
        event_observer: EventObserver | None = None,
    ) -> None:
        names = ["hub", *(f"cluster-{number}" for number in range(1, members + 1))]
        clusters = [
            EmbeddedCluster(name, clock=clock, rng=child(rng), authority=authority, outbound=outbound) for name in names
        ]
        self.hub, self.members = clusters[0], tuple(clusters[1:])
        self._nodes = nodes
        self._manager = Manager(component="kube-controller-manager", clock=clock, rng=child(rng), grace=1.0)
        self._hub_role = Manager(
            component="kedge-hub", clock=clock, rng=child(rng), grace=1.0, event_observer=event_observer
        )
        self._agents = Manager(component="kedge-member", clock=clock, rng=child(rng), grace=1.0)
        self._stack = AsyncExitStack()

    @property
    def clusters(self) -> tuple[EmbeddedCluster, ...]:
        """All of them, the hub first."""
        return (self.hub, *self.members)

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        for cluster in self.clusters:
            cluster.start()
            self._stack.callback(cluster.stop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run_workloads(self, progress: Callable[[str], None] = lambda _name: None) -> None:
        """Run workloads on the members. Returns once every member has its nodes; `progress` is told which has."""
        manager = await self._stack.enter_async_context(self._manager)
        workloads = Workloads(manager)
        self._run(manager, "simulated workloads")
        for member in self.members:
            cluster = await manager.connect(member.name, member.transport())
            workloads.join(cluster)
            await make_nodes(cluster.client, self._nodes, manager.clock)
            progress(member.name)

    async def run_roles(
        self,
        options: HubOptions | None = None,
        agents: MemberOptions | None = None,
        *,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        heartbeat: int = HEARTBEAT,
        progress: Callable[[str], None] = lambda _name: None,
    ) -> None:
        """Run the hub's controllers and an agent for each member. Returns once every member has joined.

        `labels` are those of the MemberClusters, by name; `progress` is told which has joined.
        """
        options = options or HubOptions()
        await self._install(options.dialect)
        hub_role = await self._stack.enter_async_context(self._hub_role)
        hub = await hub_role.connect("hub", self.hub.transport(), limiter=_unlimited())
        add_hub(hub_role, hub, options)
        self._run(hub_role, "the hub's role")
        await self._run_agents(agents or MemberOptions())
        for member in self.members:
            await _make(hub.client, MemberCluster, _joining(member.name, (labels or {}).get(member.name), heartbeat))
        await _all_joined(hub.cache(MemberCluster), [member.name for member in self.members], progress)

    async def _install(self, dialect: Dialect) -> None:
        """Install what `kedge install` prints: the fleet's kinds, and the system namespace."""
        definitions = _SEED if dialect is Dialect.seed else crds(dialect)
        for cluster in self.clusters:
            wanted: Iterable[Crd] = definitions if cluster is self.hub else [crd(AppliedWork, dialect)]
            client = Client(cluster.transport(), limiter=_unlimited())
            await _make(client, Namespace, {"metadata": {"name": SYSTEM_NAMESPACE}})
            for definition in wanted:
                await _make(client, _DEFINITIONS, definition)
            await client.close()

    async def _run_agents(self, options: MemberOptions) -> None:
        agents = await self._stack.enter_async_context(self._agents)
        for member in self.members:
            to_hub = await agents.connect(f"hub for {member.name}", self.hub.transport(), limiter=_unlimited())
            to_member = await agents.connect(member.name, member.transport(), limiter=_unlimited())
            add_member(agents, member.name, to_hub, to_member, options)
        self._run(agents, "the members' agents")

    def _run(self, manager: Manager, name: str) -> None:
        running = asyncio.create_task(manager.run(signals=False), name=name)
        self._stack.push_async_callback(self._end, manager, running)

    async def _end(self, manager: Manager, running: asyncio.Task[None]) -> None:
        manager.stop()
        await running


def _unlimited() -> Limiter:
    return Limiter(rate=0)


async def _make(client: Client, kind: Any, body: Any) -> None:
    try:
        await client.create(kind, body)
    except AlreadyExists:
        return


def _joining(name: str, labels: Mapping[str, str] | None, heartbeat: int) -> MemberCluster:
    identity = Identity(kind="ServiceAccount", name=f"fleet-member-agent-{name}", namespace=SYSTEM_NAMESPACE)
    spec = MemberClusterSpec(identity=identity, heartbeat_period_seconds=heartbeat)
    return MemberCluster(metadata=ObjectMeta(name=name, labels=labels or _NO_LABELS), spec=spec)


async def _all_joined(members: Cache[MemberCluster], names: Iterable[str], progress: Callable[[str], None]) -> None:
    missing = set(names)
    joined = asyncio.Event()

    def look(change: Change[MemberCluster]) -> None:
        if change.new is not None and is_true(change.new.status.conditions, reasons.JOINED):
            if change.new.metadata.name in missing:
                progress(change.new.metadata.name)
            missing.discard(change.new.metadata.name)
        if not missing:
            joined.set()

    members.on_change(look)
    if missing:
        await joined.wait()
