"""Part: asks every question of the second part, one after another, and keeps the answers as measures."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from controlplane import ControlPlane, Missing, find
from kedgebench.embedded import fleets, weight
from kedgebench.embedded.ask import ask
from kedgebench.embedded.operations import AT_ONCE, TITLES
from kedgebench.embedded.sizes import Sizes
from kedgebench.part import BasePart
from kedgebench.results import Measure

MICRO = 1e6
KIB = 1024
HOUR = 3600.0
DAY = 24 * HOUR
IN_PROCESS = "in process"
ALONE = "in process, server alone"
HTTPS = "embedded, HTTPS"
PEER = "kube-apiserver and etcd"
FLEET_OF_THE_GOAL = 20


class Part(BasePart[Sizes]):
    """One run of the second part."""

    name = "embedded"

    async def everything(self) -> None:
        """Every question, in turn."""
        async with self._servers() as servers:
            await self._requests(servers)
            await self._fan_out(servers)
        await self._weights()
        await self._starts()
        await self._lives()

    def of(self, key: str) -> Measure:
        return self.measures[f"embedded.{key}"]

    async def _requests(self, servers: dict[str, Any]) -> None:
        sizes = self._sizes
        given: dict[str, Any] = {"rounds": sizes.rounds, "seconds": sizes.seconds, "objects": sizes.objects}
        self._progress.say("embedded: requests in process")
        for found in await ask("requests inside", **given):
            cost = self._measure(f"cost.{found['name']}", _title(found["name"], sizes), "µs", HTTPS)
            cost.add(ALONE, found["server"] * MICRO)
            cost.add(IN_PROCESS, found["whole"] * MICRO)
        self._progress.say("embedded: requests over HTTPS")
        for found in await ask("requests outside", servers=servers, **given):
            title = _title(found["name"], sizes)
            self._measure(f"cost.{found['name']}", title, "µs", HTTPS).add(found["of"], found["server"] * MICRO)
            self._measure(f"client.{found['name']}", title, "µs", HTTPS).add(found["of"], found["client"] * MICRO)
            self._measure(f"rate.{found['name']}", title, "/s", HTTPS).add(found["of"], 1 / found["wall"])

    async def _fan_out(self, servers: dict[str, Any]) -> None:
        sizes = self._sizes
        given: dict[str, Any] = {"rounds": sizes.rounds, "events": sizes.events, "most_writes": sizes.most_writes}
        self._progress.say("embedded: watchers in process")
        found = await ask("fan-out inside", watchers=sizes.watchers, **given)
        self._progress.say("embedded: watchers over HTTPS")
        found += await ask("fan-out outside", servers=servers, watchers=sizes.watchers_https, **given)
        for one in found:
            count, cost = one["watchers"], one.get("each", one["write"])
            title = "the write, with nobody watching" if count == 0 else f"per watcher, of {count}"
            self._measure(f"fanout.{count}", title, "µs", HTTPS).add(one["of"], cost * MICRO)

    async def _weights(self) -> None:
        for plural, title in weight.TITLES.items():
            self._progress.say(f"embedded: memory of {plural}")
            found = await ask("weight", plural=plural, count=self._sizes.stored)
            measure = self._measure(f"weight.{plural}", title, "KiB", "wire")
            for name, size in found.items():
                measure.add(name, size / KIB)

    async def _starts(self) -> None:
        self._progress.say("embedded: kedge up")
        for members in self._sizes.first:
            with _fresh_clone() as folder:
                await self._start(members, folder, "first")
        with _fresh_clone() as folder:
            async with fleets.up(0, folder, sources=folder):
                pass  # now it is compiled
            for _ in range(self._sizes.rounds):
                for members in self._sizes.warm:
                    await self._start(members, folder, "warm")

    async def _start(self, members: int, folder: Path, when: str) -> None:
        async with fleets.up(members, folder, sources=folder) as found:
            for what, title, unit, value in (
                ("cpu", "CPU", "s", found.cpu),
                ("wall", "until ready, by the wall clock", "s", found.wall),
                ("resident", "resident", "MiB", found.resident / KIB / KIB),
            ):
                measure = self._measure(f"up-{when}.{what}", title, unit, members_named(self._sizes.few))
                measure.add(members_named(members), value)

    async def _lives(self) -> None:
        sizes, times = self._sizes, self._sizes.many / self._sizes.few
        for turn in range(sizes.rounds):
            # The smaller fleet is idle for longer and has more releases: else it is over before it can be measured.
            self._progress.say(f"embedded: {sizes.few} members in virtual time")
            await self._live(sizes.few, sizes.idle * times, 1 + sizes.releases * sizes.more_releases)
            if turn < sizes.rounds_of_many:
                self._progress.say(f"embedded: {sizes.many} members in virtual time")
                await self._live(sizes.many, sizes.idle, 1 + sizes.releases)
        found = await ask("life", members=FLEET_OF_THE_GOAL, idle=sizes.idle * times, releases=0)
        idle = found["stretches"]["idle"]
        a_day = self._measure("day.cpu", "an idle day", "s of CPU")
        a_day.add(members_named(FLEET_OF_THE_GOAL), idle["cpu"] / idle["virtual"] * DAY)

    async def _live(self, members: int, idle: float, releases: int) -> None:
        found = (await ask("life", members=members, idle=idle, releases=releases))["stretches"]
        name, base = members_named(members), members_named(self._sizes.few)
        start, idling, busy = (found[key] for key in ("start", "idle", "busy"))
        for key, title, stretch, share in (
            ("start", "start", start, 1.0),
            ("idle", "an idle hour", idling, HOUR / idling["virtual"]),
            ("release", "a release of 3 pods on every member", busy, 1 / (releases - 1)),
        ):
            self._measure(f"growth.{key}", title, "s of CPU", base).add(name, stretch["cpu"] * share)
            self._measure(f"growth-steps.{key}", title, "steps", base).add(name, stretch["steps"] * share)
        for key, stretch in (("idle", idling), ("busy", busy)):
            for what, title in (("steps", "steps"), ("requests", "requests"), ("virtual", "virtual seconds")):
                measure = self._measure(f"speed.{key}.{what}", f"{key}: {title}", "per CPU second", base)
                measure.add(name, stretch[what] / stretch["cpu"])
        for key, title in (("idle", "idle"), ("rollout", "with a Deployment of 3 pods")):
            measure = self._measure(f"resident.{key}", title, "MiB", base)
            measure.add(name, found[key]["resident"] / KIB / KIB)

    @asynccontextmanager
    async def _servers(self) -> AsyncIterator[dict[str, Any]]:
        """An embedded server behind its door and, if there is one, a kube-apiserver: both empty."""
        with tempfile.TemporaryDirectory() as folder:
            async with fleets.up(0, Path(folder)) as ours, self._peer() as peer:
                yield {HTTPS: _server(ours.kubeconfig, [ours.pid]), **peer}

    @asynccontextmanager
    async def _peer(self) -> AsyncIterator[dict[str, Any]]:
        binaries = find()
        if isinstance(binaries, Missing):
            self._note(f"no kube-apiserver to compare with: {binaries.reason}")
            yield {}
            return
        async with ControlPlane(binaries) as plane:
            # Its audit log is for tests; the embedded server keeps none.
            cluster = await plane.start("bench", apiserver_flags=["--audit-log-path="])
            yield {PEER: _server(cluster.kubeconfig, [*cluster.pids.values(), plane.etcd.process.pid])}


@contextmanager
def _fresh_clone() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield fleets.copied(Path(folder))


def how(sizes: Sizes) -> str:
    """What was measured and how, in a paragraph."""
    return (
        f"CPU time (user and system), the median of {sizes.rounds} rounds. Requests over HTTPS come from a process "
        f"with Kedge's client, {AT_ONCE} at once (lists one at a time), and what counts is the CPU time of the "
        "server's processes; in process, of server and client together, or of the server alone. Fan-out is what one "
        "write costs more than with nobody watching, per watcher; in process the watchers are in it. Growth and speed "
        "are of whole fleets in virtual time, after a small one has warmed the process up; growth is between the "
        "quietest round of each size."
    )


def grown(measure: Measure, few: str, many: str) -> float | None:
    """How many times the cost, between the quietest rounds: neighbours on the machine only ever add to one."""
    less, more = measure.of(few), measure.of(many)
    return min(more.rounds) / min(less.rounds) if less and more else None


def members_named(count: int) -> str:
    """The contender of so many members."""
    return f"{count} member{'' if count == 1 else 's'}"


def _server(kubeconfig: Path, pids: Iterable[int]) -> dict[str, Any]:
    return {"kubeconfig": str(kubeconfig), "pids": list(pids)}


def _title(name: str, sizes: Sizes) -> str:
    return TITLES[name].format(objects=sizes.objects)
