"""Real: a fleet of real control planes, on which a release moves, beside plain rollouts on one member.

Each member is a real control plane with simulated nodes whose pods are ready a second after they run; the hub is one
without workload controllers. `kedge hub` and a `kedge member` for each member are processes of their own, as admins and
without a lease. What happened when is judged by watches on the Deployments themselves, from the moment a watch shows
the new image (on the hub, or on the member for a plain rollout) to the moment the member's Deployment is what
`kubectl rollout status` waits for. So the time kubectl itself takes is in neither.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import yaml

from controlplane import Binaries, ControlPlane
from controlplane.cluster import Cluster as RealCluster
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.condition import is_true
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.reasons import JOINED, SUCCEEDED
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.kube.cache import Cache
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.store import Change
from kedgebench.fleet import release
from kedgebench.fleet.release import SHOP, WEB
from kedgebench.machine import load as machine_load

KEEPS_HOUSE = (
    *("namespace-controller", "garbage-collector-controller", "serviceaccount-controller"),
    "root-ca-certificate-publisher-controller",
)
PLAIN = "plain"  # the namespace of the Deployment that no fleet knows
HUB = "hub"
PATIENCE = 180.0
HEARTBEAT = 60
NO_AUDIT = ("--audit-log-path=",)


class Witness:
    """Sees Deployments where they are, and notes when they first had an image, and when they ran it.

    Of staged runs it notes when they were there, and when they had succeeded.
    """

    def __init__(self) -> None:
        self.changed: dict[tuple[str, str, int], float] = {}
        self.ran: dict[tuple[str, str, int], float] = {}
        self.asked: dict[str, float] = {}
        self.succeeded: dict[str, float] = {}
        self._news = asyncio.Event()

    def see_run(self, change: Change[ClusterStagedUpdateRun]) -> None:
        if change.new is not None:
            name = change.new.metadata.name
            self.asked.setdefault(name, time.perf_counter())
            if is_true(change.new.status.conditions, SUCCEEDED):
                self.succeeded.setdefault(name, time.perf_counter())
            self.tell()

    def see(self, where: str, change: Change[Untyped]) -> None:
        found = change.new
        if found is None or found["metadata"]["name"] != WEB:
            return
        number = int(found["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2])
        key = (where, found["metadata"]["namespace"], number)
        self.changed.setdefault(key, time.perf_counter())
        if release.runs(found, number):
            self.ran.setdefault(key, time.perf_counter())
        self.tell()

    def tell(self) -> None:
        """Have whoever waits look again."""
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()


class RealFleet:
    """Members that have joined and run the first release; release after release can be brought to them."""

    def __init__(self, clusters: Mapping[str, RealCluster], witness: Witness, roles: Mapping[str, int]) -> None:
        self._clusters = clusters
        self._roles = roles
        self.witness = witness
        self.members = [name for name in clusters if name != HUB]
        self.number = 1

    async def plain(self, member: str) -> float:
        """Seconds that `kubectl set image` takes on one member."""
        self.number += 1
        ran, key = self.witness.ran, (member, PLAIN, self.number)
        await self.set_image(member, PLAIN)
        await self.witness.until(lambda: key in ran)
        return ran[key] - self.witness.changed[key]

    async def arrived(self) -> None:
        """Until every member runs the last release."""
        ran, number = self.witness.ran, self.number
        await self.witness.until(lambda: all((member, SHOP, number) in ran for member in self.members))

    def since(self, begun: float) -> dict[str, Any]:
        """What the last release took from then on, and when each member was changed."""
        changed = sorted(self.witness.changed[member, SHOP, self.number] - begun for member in self.members)
        ran = max(self.witness.ran[member, SHOP, self.number] for member in self.members)
        return {"took": ran - begun, "moved": [round(when, 3) for when in changed], "load": machine_load()}

    def cpu(self) -> dict[str, float]:
        """Seconds each role has taken so far."""
        return {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in self._roles.items()}

    async def set_image(self, where: str, namespace: str) -> None:
        image = f"{WEB}={release.image(self.number)}"
        await self._clusters[where].kubectl("set", "image", f"deployment/{WEB}", image, "--namespace", namespace)

    async def apply(self, *objects: Mapping[str, Any]) -> None:
        """As a user of the hub."""
        await _apply(self._clusters[HUB], objects)

    async def in_turns(self, rounds: int, update: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Plain rollouts and updates in turns, so that both meet the same neighbours."""
        plain, updates = [], []
        for turn in range(rounds):
            plain += [await self.plain(name) for name in _some(self.members, turn)]
            updates.append(await update())
        plain += [await self.plain(name) for name in _some(self.members, rounds)]
        return {"members": len(self.members), "plain": plain, "median": median(plain), "updates": updates}


@asynccontextmanager
async def real_fleet(
    binaries: Binaries,
    members: Mapping[str, Mapping[str, str]],
    first: Sequence[Mapping[str, Any]],
    collect: float | None = None,
) -> AsyncIterator[RealFleet]:
    """Members with these labels, once they run what the first objects of a user place there."""
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(binaries))
        await plane.start(HUB, only=KEEPS_HOUSE, apiserver_flags=NO_AUDIT)
        await plane.start_many([*members], controllers=True, nodes=1, apiserver_flags=NO_AUDIT)
        yield await _fleet(stack, plane.clusters, members, first, collect)


async def _fleet(
    stack: AsyncExitStack,
    clusters: Mapping[str, RealCluster],
    members: Mapping[str, Mapping[str, str]],
    first: Sequence[Mapping[str, Any]],
    collect: float | None,
) -> RealFleet:
    witness = Witness()
    await _apply(clusters[HUB], crds(Dialect.seed))
    watched = await stack.enter_async_context(_watched(clusters, witness))
    await _apply(clusters[HUB], [release.namespace(SYSTEM_NAMESPACE), release.namespace(), _web(SHOP)])
    for name in members:
        await _apply(
            clusters[name], [one for one in crds(Dialect.seed) if one["spec"]["names"]["kind"] == "AppliedWork"]
        )
        await _apply(clusters[name], [release.namespace(PLAIN), _web(PLAIN)])
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    roles = {HUB: await stack.enter_async_context(_hub(clusters[HUB], collect, folder))}
    for name in members:
        running = _member(clusters[HUB], clusters[name], folder)
        roles[name] = await stack.enter_async_context(running)
    await _apply(clusters[HUB], [release.member(name, HEARTBEAT, labels) for name, labels in members.items()])
    joined = watched[HUB].cache(MemberCluster)
    joined.on_change(lambda _: witness.tell())
    await witness.until(lambda: _have_joined(joined, members))
    await _apply(clusters[HUB], first)
    places = [*((name, PLAIN, 1) for name in members), *((name, SHOP, 1) for name in members)]
    await witness.until(lambda: all(place in witness.ran for place in places))
    await asyncio.sleep(3.0)
    return RealFleet(clusters, witness, roles)


def _web(namespace: str) -> release.Body:
    return release.deployment(1, ready_after="1s", where=namespace)


def _have_joined(members: Cache[MemberCluster], names: Iterable[str]) -> bool:
    found = [members.get(name) for name in names]
    return all(one is not None and is_true(one.status.conditions, JOINED) for one in found)


@asynccontextmanager
async def _watched(clusters: Mapping[str, RealCluster], witness: Witness) -> AsyncIterator[Mapping[str, Any]]:
    async with Manager(component="witness", grace=1.0) as manager:
        for name, cluster in clusters.items():
            connected = await manager.connect(name, HttpsTransport(load([cluster.kubeconfig])), limiter=Limiter(rate=0))
            deployments = connected.cache(untyped(Deployment.resource))
            deployments.on_change(lambda change, name=name: witness.see(name, change))  # type: ignore[misc]
        manager.clusters[HUB].cache(ClusterStagedUpdateRun).on_change(witness.see_run)
        running = asyncio.create_task(manager.run(signals=False))
        yield manager.clusters
        manager.stop()
        await running


async def _apply(cluster: RealCluster, objects: Sequence[Mapping[str, Any]]) -> None:
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(map(dict, objects)))


@asynccontextmanager
async def _hub(hub: RealCluster, collect: float | None, folder: Path) -> AsyncIterator[int]:
    told = [] if collect is None else ["--collect", str(collect)]
    async with _role(folder / "hub.log", "hub", "--kubeconfig", str(hub.kubeconfig), "--no-lease", *told) as pid:
        yield pid


@asynccontextmanager
async def _member(hub: RealCluster, member: RealCluster, folder: Path) -> AsyncIterator[int]:
    files = ("--hub-kubeconfig", str(hub.kubeconfig), "--kubeconfig", str(member.kubeconfig))
    async with _role(folder / f"{member.name}.log", "member", *files, "--member", member.name) as pid:
        yield pid


@asynccontextmanager
async def _role(log: Path, *arguments: str) -> AsyncIterator[int]:
    """A role's process; gives its id."""
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kedge", *arguments, "--log-level", "warning"), stderr=errors
        )
    try:
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        else:
            _tell_of_the_end(log)


def _tell_of_the_end(log: Path) -> None:
    print(f"{log.stem} ended by itself:\n{log.read_text()[-2000:]}", file=sys.stderr)


def _some(names: Sequence[str], turn: int, count: int = 3) -> list[str]:
    """A few members, others each time."""
    return [names[(turn * count + number) % len(names)] for number in range(count)]
