"""Part: asks every question of the third part, one after another, and keeps the answers as measures."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from kedgebench.embedded.ask import ask
from kedgebench.embedded.part import members_named
from kedgebench.fleet.shares import AGENTS, HUB
from kedgebench.fleet.sizes import Sizes
from kedgebench.progress import Progress
from kedgebench.results import Measure

MODULE = "kedgebench.fleet.task"
MILLI = 1e3
STRETCHES = {"first": "first placement", "update": "a release, 20 % at a time"}
REACHED = {
    "works": "every Work made",
    "members": "every member runs it",
    "told": "every Work says so",
    "placement": "the placement says so",
}


class Part:
    """One run of the third part. `notes` are what a reader of the numbers must know besides."""

    def __init__(self, sizes: Sizes, progress: Progress) -> None:
        self._sizes = sizes
        self._progress = progress
        self.notes: list[str] = []
        self.measures: dict[str, Measure] = {}

    async def everything(self) -> None:
        """Every question, in turn: those by the clock first."""
        for collect in self._sizes.collects:
            await self._rolling(collect)
        await self._placing()
        await self._growth()
        await self._standing()

    def group(self, prefix: str) -> list[Measure]:
        """The measures whose keys begin so, in the order they were taken."""
        return [measure for key, measure in self.measures.items() if key.startswith(f"fleet.{prefix}.")]

    def of(self, key: str) -> Measure | None:
        return self.measures.get(f"fleet.{key}")

    async def _rolling(self, collect: float | None) -> None:
        sizes = self._sizes
        self._progress.say(f"fleet: a rolling update over {sizes.real} real members")
        given = {"members": sizes.real, "rounds": sizes.rounds, "max_unavailable": sizes.max_unavailable}
        found = await ask("rolling", module=MODULE, collect=collect, **given)
        if "missing" in found:
            self._note(f"no real members: {found['missing']}")
            return
        name = collecting(collect)
        path = found["waves"] * found["median"]
        for plain in found["plain"]:
            self._add("rolling.plain", "a plain rollout on one member", "s", name, plain)
        for rolled in found["rolled"]:
            self._add("rolling.took", f"the update, {found['waves']} waves", "s", name, rolled["took"])
            self._add("rolling.overhead", "overhead: took / (waves × plain)", "×", name, rolled["took"] / path)
            self._add("rolling.first", "until the first member is changed", "s", name, rolled["moved"][0])
            self._add("rolling.hub", "CPU of the hub per member", "ms", name, _each(rolled, found, (HUB,)))
            agents = [role for role in rolled["cpu"] if role != HUB]
            self._add("rolling.agents", "CPU of a member's agent", "ms", name, _each(rolled, found, agents))
            self._add("rolling.load", "load of the machine", "", name, rolled["load"])

    async def _placing(self) -> None:
        members, name = self._sizes.placing, members_named(self._sizes.placing)
        for _ in range(self._sizes.placing_rounds):
            self._progress.say(f"fleet: placing on {members} embedded members")
            found = await ask("placing", module=MODULE, members=members)
            for stretch, title in STRETCHES.items():
                for what, reached in REACHED.items():
                    seconds = found[stretch]["reached"][what]
                    self._add(f"{stretch}.{what}", f"{title}: {reached}", "s", name, seconds)
                self._add(f"{stretch}.cpu", f"{title}: CPU of everything", "s", name, found[stretch]["cpu"])

    async def _growth(self) -> None:
        for members in self._sizes.grown:
            self._progress.say(f"fleet: what a cluster costs, of {members}")
            found = await ask("shares", module=MODULE, members=members)
            for stretch, title in STRETCHES.items():
                self._shared(stretch, title, members, found[stretch])

    def _shared(self, stretch: str, title: str, members: int, found: dict[str, Any]) -> None:
        name, base = members_named(members), members_named(self._sizes.grown[0])
        hub, agents = (found["shares"][role] / members * MILLI for role in (HUB, AGENTS))
        for key, what, value in (
            ("hub", "CPU of the hub", hub),
            ("both", "CPU of hub and agent", hub + agents),
        ):
            self._add(f"growth.{stretch}-{key}", f"{title}: {what}", "ms", name, value, base)
        for role in (HUB, AGENTS):
            asked = [count for key, count in found["requests"].items() if _is_write(role, key)]
            self._add(
                f"writes.{stretch}-{role}", f"{title}: writes of the {role}", "", name, sum(asked) / members, base
            )
        self._add(f"largest.{stretch}", f"{title}: the placement", "KiB", name, found["largest"] / 1024, base)

    async def _standing(self) -> None:
        sizes = self._sizes
        self._progress.say(f"fleet: a hub with {sizes.standing} members and {sizes.standing * sizes.placements} Works")
        given = {"members": sizes.standing, "placements": sizes.placements, "idle": sizes.idle}
        found = await ask("standing", module=MODULE, **given)
        name = f"{found['members']} members, {found['works']} Works"
        for key, title, unit in (
            ("caught_up", "started, until caught up", "s"),
            ("acted", "started, until the late placement has its Work", "s"),
            ("start_cpu", "CPU of the hub until then", "s"),
            ("server_cpu", "CPU of the server until then", "s"),
            ("started", "resident, caught up", "MiB"),
            ("start_peak", "the most until then", "MiB"),
            ("idle", f"resident after {sizes.idle:g} s of heartbeats", "MiB"),
            ("idle_cpu", "CPU with heartbeats only", "cores"),
            ("rolled", "a release of one placement on all members", "s"),
            ("rolled_cpu", "CPU of the hub for that", "s"),
            ("busy", "resident after that", "MiB"),
            ("peak", "the most it ever was", "MiB"),
        ):
            self._add(f"standing.{key}", title, unit, name, found[key])
        self._note(
            f"after its restart the hub wrote {sum(found['start_writes'].values())} times: {found['start_writes']}"
        )

    def _add(self, key: str, title: str, unit: str, name: str, value: float, base: str = "") -> None:
        measure = self.measures.setdefault(f"fleet.{key}", Measure(f"fleet.{key}", title, unit, base or name))
        measure.add(name, value)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def collecting(collect: float | None) -> str:
    """The contender of a hub that collects changes for so long."""
    return "as it comes" if collect is None else f"--collect {collect:g}"


def how(sizes: Sizes) -> str:
    """What was measured and how, in a paragraph."""
    return (
        f"A Deployment of 2, all pods replaced at once. Real: {sizes.real} members, each kube-apiserver, controllers, "
        "scheduler and KWOK with pods ready a second after they run; a hub without workload controllers; `kedge hub` "
        "and a `kedge member` for each member as processes. Times are from watches on the Deployments, from the new "
        "image to what `kubectl rollout status` waits for; plain rollouts and updates take turns. Embedded: hub, "
        "members, workloads and roles in one process, pods ready after 0.2 s. Costs per cluster are CPU time of the "
        "roles' own callbacks, without the servers. A hub with many Works is a process that talks HTTPS to an embedded "
        "server in another, whose members only pretend."
    )


def _each(rolled: dict[str, Any], found: dict[str, Any], roles: Iterable[str]) -> float:
    return float(sum(rolled["cpu"][role] for role in roles) / found["members"] * MILLI)


def _is_write(role: str, key: str) -> bool:
    who, verb, _ = key.split(" ", 2)
    return who == role and verb != "GET"


def middle(measure: Measure | None, name: str) -> float | None:
    """The median of what was measured there, if anything was."""
    found = measure.of(name) if measure is not None else None
    return median(found.rounds) if found is not None else None
