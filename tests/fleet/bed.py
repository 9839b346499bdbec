"""The bed: a running fleet to try things on: a hub and four members, joined, embedded or real.

    def test_it(backend: Backend) -> None:
        async def play(bed: Bed) -> None:
            await bed.apply(PLACEMENT)
            seen = await bed.at_rest()

        backend.play(play)

Both run the roles in this process, unless told otherwise, each with connections of its own. Embedded, all is in
virtual time and without a socket; real, members have controllers, a scheduler and simulated nodes, the hub only what
keeps its house.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, TypeAlias, TypeVar

import msgspec
import yaml
from msgspec import Struct

from controlplane.cluster import Cluster as RealCluster
from fleet import kinds
from fleet.traces import Fleet, Found, Table
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.fleet import Fleet as EmbeddedFleet
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.codec import Codec, Untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Transport
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from support.stage import LoopClock
from support.virtual import run

T = TypeVar("T")
Play: TypeAlias = Callable[["Bed"], Coroutine[Any, Any, T]]
Roles: TypeAlias = Callable[[AsyncExitStack, "Ground", Dialect], Awaitable[None]]
"""How hub and agents are run until the stack ends."""

SECONDS = 600
"""For a test with a fleet: that five clusters start, and the whole story, count as time of the first that asks."""

MEMBERS = ("cluster-1", "cluster-2", "cluster-3", "cluster-4")
_LABELS = {
    "cluster-1": {"loc": "west", "environment": "staging", "order": "1"},
    "cluster-2": {"loc": "west", "environment": "canary", "order": "2"},
    "cluster-3": {"loc": "east", "environment": "production", "order": "3"},
    "cluster-4": {"loc": "east", "environment": "production", "order": "4"},
}
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_OURS = (kinds.RUNS, kinds.PLACEMENTS, kinds.MEMBERS)


class Ground(Struct, frozen=True):
    """What a bed stands on: clusters by name, with a way to each; how to wait; how its users type."""

    clock: Clock
    connect: Mapping[str, Callable[[], Awaitable[Transport]]]
    apply: Callable[[str, Untyped], Awaitable[None]] | None
    pause: float  # between two looks
    quiet: float  # with nothing changing, before it is taken for rest
    patience: float  # until what has not happened is taken not to happen


class Bed:
    """A running fleet, seen from outside: through clients of the test's own."""

    def __init__(self, ground: Ground, clients: Mapping[str, Client]) -> None:
        self.ground = ground
        self.clients = clients
        self.hub = clients["hub"]
        self.rests_since = 0.0

    # Doing

    async def apply(self, manifest: str | Untyped, where: str = "hub") -> None:
        """As `kubectl apply` does: with kubectl, where there is one that can reach it."""
        for obj in yaml.safe_load_all(manifest) if isinstance(manifest, str) else [manifest]:
            if self.ground.apply is not None:
                await self.ground.apply(where, obj)
            else:
                await self.clients[where].apply(kinds.of(obj), obj, manager="kubectl", force=True)

    async def patch(self, kind: Codec[Untyped], name: str, body: Untyped, ns: str | None = None, *, on: str) -> None:
        await self.clients[on].patch(kind, name, MergePatch(body), ns)

    async def delete(self, kind: Codec[Untyped], name: str, namespace: str | None = None, *, on: str = "hub") -> None:
        """Delete it, and wait until it is gone."""
        await self.clients[on].delete(kind, name, namespace)
        await self.until(lambda: self.is_gone(kind, name, namespace, on=on))

    # Seeing

    async def get(self, kind: Codec[Untyped], name: str, namespace: str | None = None, *, on: str = "hub") -> Untyped:
        return await self.clients[on].get(kind, name, namespace)

    async def all(self, kind: Codec[Untyped], on: str = "hub") -> list[Untyped]:
        return list((await self.clients[on].list(kind)).items)

    async def is_gone(self, kind: Codec[Untyped], name: str, namespace: str | None = None, *, on: str = "hub") -> bool:
        try:
            await self.get(kind, name, namespace, on=on)
        except NotFound:
            return True
        return False

    async def condition(self, kind: Codec[Untyped], name: str, type: str) -> Untyped:  # noqa: A002  # its name there
        """The condition of this type; empty if there is none."""
        found = await self.get(kind, name)
        conditions = found.get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == type), {})

    async def table(self, command: str) -> Table:
        """What `kubectl get` prints for these words."""
        plural, _, everywhere = command.partition(" ")
        kind = next(kind for kind in kinds.ON_THE_HUB if kind.resource.plural == plural)
        response = await self.hub.transport.send(Request("GET", kind.path(None), accept=_TABLE), timeout=120.0)
        return _table(msgspec.json.decode(response.body), with_namespace=bool(everywhere))

    async def look(self) -> Fleet:
        """Everything there is to see now."""
        objects = [found for where in self.clients for found in await self._objects(where)]
        plurals = ("memberclusters", "clusterresourceplacements", "clusterresourcebindings", "clusterresourcesnapshots")
        staged = ("clusterstagedupdateruns", "clusterapprovalrequests")
        commands = (*plurals, "clusterschedulingpolicysnapshots", "works -A", *staged)
        return Fleet("ours", tuple(objects), {command: await self.table(command) for command in commands})

    async def _objects(self, where: str) -> list[Found]:
        shown = kinds.ON_THE_HUB if where == "hub" else kinds.ON_A_MEMBER
        return [
            Found(where, {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **obj})
            for kind in shown
            for obj in await self.all(kind, where)
        ]

    # Waiting

    async def until(self, holds: Callable[[], Awaitable[object]], within: float = 180.0) -> None:
        try:
            async with asyncio.timeout(within):
                while not await holds():
                    await asyncio.sleep(self.ground.pause)
        except TimeoutError:
            raise AssertionError(f"it did not come to that within {within:g} s") from None

    async def at_rest(self, within: float = 180.0) -> Fleet:
        """What is to be seen once it has not changed for a while; heartbeats and ages aside."""
        loop, deadline = asyncio.get_running_loop(), asyncio.get_running_loop().time() + within
        last, since = await self.look(), loop.time()
        while loop.time() - since < self.ground.quiet:
            assert loop.time() < deadline, f"it did not come to rest within {within:g} s"
            await asyncio.sleep(self.ground.pause)
            now = await self.look()
            if _still(now) != _still(last):
                since = loop.time()
            last = now
        self.rests_since = since
        return last

    async def wait_and_see(self) -> None:
        """Let time pass in which what should not happen could."""
        await asyncio.sleep(self.ground.patience)

    # Beginning and ending

    async def join(self) -> None:
        for name in MEMBERS:
            await self.hub.create(kinds.MEMBERS, member_cluster(name))
        for name in MEMBERS:
            await self.until(partial(self.is_joined, name))

    async def is_joined(self, name: str) -> bool:
        return (await self.condition(kinds.MEMBERS, name, "Joined")).get("status") == "True"

    async def clean(self) -> None:
        """Take everything away again: placements first, then members; then what users made."""
        for kind in _OURS:
            for obj in await self.all(kind):
                await self.hub.delete(kind, obj["metadata"]["name"])
            await self.until(partial(self._has_none, kind), within=90.0)
        for name in ("test-ns", "test-namespace"):
            await asyncio.gather(*(self._remove_namespace(name, where) for where in self.clients))
        for member in MEMBERS:
            await self.patch(kinds.NODES, "node-1", {"spec": {"unschedulable": None}}, on=member)
        for obj in await self.all(kinds.STRATEGIES):
            await self.hub.delete(kinds.STRATEGIES, obj["metadata"]["name"])

    async def _has_none(self, kind: Codec[Untyped]) -> bool:
        return not await self.all(kind)

    async def _remove_namespace(self, name: str, where: str) -> None:
        if not await self.is_gone(kinds.NAMESPACES, name, on=where):
            await self.delete(kinds.NAMESPACES, name, on=where)


def member_cluster(name: str) -> Untyped:
    """A MemberCluster as the recorded fleets have them."""
    identity = {"kind": "ServiceAccount", "name": f"fleet-member-agent-{name}", "namespace": "fleet-system"}
    return {
        "metadata": {"name": name, "labels": {"env": "prod", **_LABELS[name]}},
        "spec": {"identity": identity, "heartbeatPeriodSeconds": 15},
    }


def _still(fleet: Fleet) -> list[Untyped]:
    """What counts as a change: everything but heartbeats, and what every write changes."""
    return [{"where": found.where, **_calm(found.obj)} for found in fleet.objects]


def _calm(value: Any) -> Any:
    if isinstance(value, dict):
        stirring = ("resourceVersion", "managedFields", "lastReceivedHeartbeat", "observationTime")
        return {key: _calm(one) for key, one in value.items() if key not in stirring}
    return [_calm(one) for one in value] if isinstance(value, list) else value


def _table(body: Untyped, *, with_namespace: bool) -> Table:
    shown = [number for number, column in enumerate(body["columnDefinitions"]) if not column["priority"]]
    columns = [body["columnDefinitions"][number]["name"].upper() for number in shown]
    rows = []
    for row in body["rows"] or ():
        cells = ["" if row["cells"][number] is None else str(row["cells"][number]) for number in shown]
        rows.append((*([row["object"]["metadata"]["namespace"]] if with_namespace else []), *cells))
    return Table((*(["NAMESPACE"] if with_namespace else []), *columns), tuple(rows))


# Backends


class Backend(Struct, frozen=True):
    """One of the two; `real` has the clusters, by name, where there are some."""

    name: str
    real: Mapping[str, RealCluster] | None = None

    def play(self, play: Play[T], dialect: Dialect = Dialect.kubefleet, roles: Roles | None = None) -> T:
        """Play it on a fleet whose members have joined, and leave nothing behind."""
        if self.real is None:
            return run(_on_embedded(play, dialect, roles or run_roles))
        return asyncio.run(_on_real(play, dialect, self.real, roles or run_roles))


async def _on_embedded(play: Play[T], dialect: Dialect, roles: Roles) -> T:
    clock = LoopClock()
    async with EmbeddedFleet(members=len(MEMBERS), clock=clock, rng=Random(1), nodes=1) as fleet:
        await fleet.run_workloads()
        ways = {cluster.name: _as_coroutine(cluster.transport) for cluster in fleet.clusters}
        async with _bed(Ground(clock, ways, None, pause=0.1, quiet=3.0, patience=300.0), dialect, roles) as bed:
            return await play(bed)


async def _on_real(play: Play[T], dialect: Dialect, clusters: Mapping[str, RealCluster], roles: Roles) -> T:
    async def apply(where: str, obj: Untyped) -> None:
        await clusters[where].kubectl("apply", "-f", "-", input=yaml.safe_dump(obj))

    ways = {name: _to(cluster) for name, cluster in clusters.items()}
    async with _bed(Ground(SystemClock(), ways, apply, pause=0.3, quiet=2.5, patience=10.0), dialect, roles) as bed:
        try:
            return await play(bed)
        finally:
            await bed.clean()


def _as_coroutine(way: Callable[[], Transport]) -> Callable[[], Awaitable[Transport]]:
    async def connect() -> Transport:
        return way()

    return connect


def _to(cluster: RealCluster) -> Callable[[], Awaitable[Transport]]:
    async def connect() -> Transport:
        return HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))

    return connect


@asynccontextmanager
async def _bed(ground: Ground, dialect: Dialect, roles: Roles) -> AsyncIterator[Bed]:
    async with AsyncExitStack() as stack:
        clients = {name: Client(await connect(), limiter=Limiter(rate=0)) for name, connect in ground.connect.items()}
        for client in clients.values():
            stack.push_async_callback(client.close)
        bed = Bed(ground, clients)
        await asyncio.gather(*(_install(bed, name, client, dialect) for name, client in clients.items()))
        await roles(stack, ground, dialect)
        await bed.join()
        yield bed


async def _install(bed: Bed, name: str, client: Client, dialect: Dialect) -> None:
    """What `kedge install` gives a cluster, as far as the API goes."""
    for definition in crds(dialect):
        await client.apply(kinds.DEFINITIONS, dict(definition), manager="kedge-install", force=True)
    for definition in crds(dialect):
        await bed.until(partial(_is_served, client, definition["metadata"]["name"]))
    if name == "hub":
        await client.apply(kinds.NAMESPACES, {"metadata": {"name": "fleet-system"}}, manager="kedge-install")


async def _is_served(client: Client, definition: str) -> bool:
    found = await client.get(kinds.DEFINITIONS, definition)
    conditions = found.get("status", {}).get("conditions", ())
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def run_roles(stack: AsyncExitStack, ground: Ground, dialect: Dialect) -> None:
    """Run them in this process."""
    async with _process(stack, ground, "kedge-hub") as manager:
        hub = await manager.connect("hub", await ground.connect["hub"](), limiter=Limiter(rate=0))
        add_hub(manager, hub, HubOptions(dialect=dialect, collect=0.0))
    for name in MEMBERS:
        async with _process(stack, ground, f"kedge-member-{name}") as manager:
            hub = await manager.connect("hub", await ground.connect["hub"](), limiter=Limiter(rate=0))
            member = await manager.connect(name, await ground.connect[name](), limiter=Limiter(rate=0))
            add_member(manager, name, hub, member, MemberOptions())


@asynccontextmanager
async def _process(stack: AsyncExitStack, ground: Ground, component: str) -> AsyncIterator[Manager]:
    """A manager to add things to; afterwards it runs until the stack ends."""
    rng = Random(component)
    manager = await stack.enter_async_context(Manager(component=component, clock=ground.clock, rng=rng, grace=1.0))
    yield manager
    running = asyncio.create_task(manager.run(signals=False), name=component)

    async def end() -> None:
        manager.stop()
        await running

    stack.push_async_callback(end)
