"""Rolling: an update over real members, beside a plain rollout on one of them.

Each member is a real control plane with simulated nodes whose pods are ready a second after they run; the hub is one
without workload controllers. `kedge hub` and a `kedge member` for each member are processes of their own, as admins and
without a lease. What happened when is judged by watches on the Deployments themselves, from the moment a watch shows
the new image (on the hub, or on the member for a plain rollout) to the moment the member's Deployment is what
`kubectl rollout status` waits for. So the time kubectl itself takes is in neither.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import yaml

from controlplane import ControlPlane, Missing, find
from controlplane.cluster import Cluster as RealCluster
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.condition import is_true
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.reasons import JOINED
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
    """Sees Deployments where they are, and notes when they first had an image, and when they ran it."""

    def __init__(self) -> None:
        self.changed: dict[tuple[str, str, int], float] = {}
        self.ran: dict[tuple[str, str, int], float] = {}
        self._news = asyncio.Event()

    def see(self, where: str, change: Change[Untyped]) -> None:
        found = change.new
        if found is None or found["metadata"]["name"] != WEB:
            return
        number = int(found["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2])
        key = (where, found["metadata"]["namespace"], number)
        self.changed.setdefault(key, time.perf_counter())
        if release.runs(found, number):
            self.ran.setdefault(key, time.perf_counter())
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()


class Bench:
    """A real fleet whose members have joined and run the first release."""

    def __init__(self, clusters: Mapping[str, RealCluster], witness: Witness, roles: Mapping[str, int]) -> None:
        self._clusters = clusters
        self._witness = witness
        self._roles = roles
        self._members = [name for name in clusters if name != HUB]
        self._number = 1

    async def plain(self, member: str) -> float:
        """Seconds that `kubectl set image` takes on one member."""
        self._number += 1
        ran, key = self._witness.ran, (member, PLAIN, self._number)
        await self._set_image(member, PLAIN)
        await self._witness.until(lambda: key in ran)
        return ran[key] - self._witness.changed[key]

    async def rolling(self) -> dict[str, Any]:
        """The same on the hub, and what it took until every member ran it."""
        self._number += 1
        number, ran = self._number, self._witness.ran
        before = self._cpu()
        await self._set_image(HUB, SHOP)
        await self._witness.until(lambda: all((member, SHOP, number) in ran for member in self._members))
        begun = self._witness.changed[HUB, SHOP, number]
        moved = sorted(self._witness.changed[member, SHOP, number] - begun for member in self._members)
        await asyncio.sleep(2.0)  # for the last statuses
        after = self._cpu()
        return {
            "took": max(ran[member, SHOP, number] for member in self._members) - begun,
            "moved": [round(when, 3) for when in moved],
            "cpu": {name: after[name] - before[name] for name in after},
            "load": machine_load(),
        }

    def _cpu(self) -> dict[str, float]:
        return {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in self._roles.items()}

    async def _set_image(self, where: str, namespace: str) -> None:
        image = f"{WEB}={release.image(self._number)}"
        await self._clusters[where].kubectl("set", "image", f"deployment/{WEB}", image, "--namespace", namespace)


async def measure(members: int, rounds: int, max_unavailable: str, collect: float | None = None) -> dict[str, Any]:
    """Task: plain rollouts and rolling updates in turns, so that both meet the same neighbours."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    names = [f"cluster-{number}" for number in range(1, members + 1)]
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(binaries))
        await plane.start(HUB, only=KEEPS_HOUSE, apiserver_flags=NO_AUDIT)
        await plane.start_many(names, controllers=True, nodes=1, apiserver_flags=NO_AUDIT)
        bench = await _fleet(stack, plane.clusters, names, max_unavailable, collect)
        plain, rolled = [], []
        for turn in range(rounds):
            plain += [await bench.plain(name) for name in _some(names, turn)]
            rolled.append(await bench.rolling())
        plain += [await bench.plain(name) for name in _some(names, rounds)]
    waves = math.ceil(members / max(1, _number_of(max_unavailable, members)))
    return {"members": members, "waves": waves, "plain": plain, "median": median(plain), "rolled": rolled}


async def _fleet(
    stack: AsyncExitStack,
    clusters: Mapping[str, RealCluster],
    names: Sequence[str],
    max_unavailable: str,
    collect: float | None,
) -> Bench:
    witness = Witness()
    watched = await stack.enter_async_context(_watched(clusters, witness))
    await _apply(clusters[HUB], crds(Dialect.seed))
    await _apply(clusters[HUB], [release.namespace(SYSTEM_NAMESPACE), release.namespace(), _web(SHOP)])
    for name in names:
        await _apply(
            clusters[name], [one for one in crds(Dialect.seed) if one["spec"]["names"]["kind"] == "AppliedWork"]
        )
        await _apply(clusters[name], [release.namespace(PLAIN), _web(PLAIN)])
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    roles = {HUB: await stack.enter_async_context(_hub(clusters[HUB], collect, folder))}
    for name in names:
        running = _member(clusters[HUB], clusters[name], folder)
        roles[name] = await stack.enter_async_context(running)
    await _apply(clusters[HUB], [release.member(name, HEARTBEAT) for name in names])
    joined = watched[HUB].cache(MemberCluster)
    joined.on_change(lambda _: witness._news.set())
    await witness.until(lambda: _have_joined(joined, names))
    await _apply(clusters[HUB], [release.placement(WEB, max_unavailable=max_unavailable)])
    places = [*((name, PLAIN, 1) for name in names), *((name, SHOP, 1) for name in names)]
    await witness.until(lambda: all(place in witness.ran for place in places))
    await asyncio.sleep(3.0)
    return Bench(clusters, witness, roles)


def _web(namespace: str) -> release.Body:
    return release.deployment(1, ready_after="1s", where=namespace)


def _have_joined(members: Cache[MemberCluster], names: Sequence[str]) -> bool:
    found = [members.get(name) for name in names]
    return all(one is not None and is_true(one.status.conditions, JOINED) for one in found)


@asynccontextmanager
async def _watched(clusters: Mapping[str, RealCluster], witness: Witness) -> AsyncIterator[Mapping[str, Any]]:
    async with Manager(component="witness", grace=1.0) as manager:
        for name, cluster in clusters.items():
            connected = await manager.connect(name, HttpsTransport(load([cluster.kubeconfig])), limiter=Limiter(rate=0))
            deployments = connected.cache(untyped(Deployment.resource))
            deployments.on_change(lambda change, name=name: witness.see(name, change))  # type: ignore[misc]
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


def _number_of(percent: str, members: int) -> int:
    return math.ceil(int(percent.removesuffix("%")) * members / 100) if percent.endswith("%") else int(percent)
