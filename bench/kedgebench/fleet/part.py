"""Part: asks every question of the third part, one after another, and keeps the answers as measures."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from kedgebench.embedded.ask import ask
from kedgebench.embedded.part import members_named
from kedgebench.fleet.shares import AGENTS, HUB
from kedgebench.fleet.sizes import Sizes
from kedgebench.part import BasePart
from kedgebench.results import Measure

MODULE = "kedgebench.fleet.task"
MILLI = 1e3
STRETCHES = {"first": "first placement", "update": "a release, 20 % at a time"}
PREVIEWS = {
    "staged": "three stages with waits between them",
    "tenths": "a tenth at a time",
    "singly": "one at a time",
}
REACHED = {
    "works": "every Work made",
    "members": "every member runs it",
    "told": "every Work says so",
    "placement": "the placement says so",
}


class Part(BasePart[Sizes]):
    """One run of the third part."""

    name = "fleet"

    async def everything(self) -> None:
        """Every question, in turn: those by the clock first."""
        for collect in self._sizes.collects:
            await self._rolling(collect)
        await self._staged()
        await self._placing()
        await self._staged_embedded()
        await self._many_runs()
        await self._previews()
        await self._growth()
        await self._standing()

    async def _rolling(self, collect: float | None) -> None:
        sizes = self._sizes
        self._progress.say(f"fleet, {collecting(collect)}: a rolling update over {sizes.real} real members")
        given = {"members": sizes.real, "rounds": sizes.rounds, "max_unavailable": sizes.max_unavailable}
        found = await ask("rolling", module=MODULE, collect=collect, **given)
        if "missing" in found:
            self._note(f"no real members: {found['missing']}")
            return
        self._updates("rolling", f"the update, {found['waves']} waves", collecting(collect), found)

    async def _staged(self) -> None:
        sizes = self._sizes
        self._progress.say(f"fleet, staged: a run over {sizes.real} real members")
        found = await ask("staged", module=MODULE, members=sizes.real, rounds=sizes.rounds)
        if "missing" in found:
            return
        name = members_named(sizes.real)
        self._updates("staged", f"the run, {found['waves']} waves", name, found)
        for update in found["updates"]:
            self._add("staged.said", "until the run says so", "s", name, update["said"])

    def _updates(self, key: str, title: str, name: str, found: dict[str, Any]) -> None:
        """Plain rollouts, and updates in turns with them."""
        path = found["waves"] * found["median"]
        for plain in found["plain"]:
            self._add(f"{key}.plain", "a plain rollout on one member", "s", name, plain)
        for update in found["updates"]:
            self._add(f"{key}.took", title, "s", name, update["took"])
            self._add(f"{key}.overhead", "overhead: took / (waves × plain)", "×", name, update["took"] / path)
            self._add(f"{key}.first", "until the first member is changed", "s", name, update["moved"][0])
            self._add(f"{key}.hub", "CPU of the hub per member", "ms", name, _each(update, found, (HUB,)))
            agents = [role for role in update["cpu"] if role != HUB]
            self._add(f"{key}.agents", "CPU of a member's agent", "ms", name, _each(update, found, agents))
            self._add(f"{key}.load", "load of the machine", "", name, update["load"])

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

    async def _staged_embedded(self) -> None:
        members, name = self._sizes.placing, members_named(self._sizes.placing)
        for _ in range(self._sizes.placing_rounds):
            self._progress.say(f"fleet, staged: a run over {members} embedded members")
            for what in ("ConfigMap", "Deployment"):
                found = await ask("staged embedded", module=MODULE, members=members, what=what)
                title = f"a staged run of a {what}, {found['waves']} waves"
                self._add(f"stages.{what}", f"{title}: it says so", "s", name, found["took"])
                self._add(f"stages.{what}-cpu", f"{title}: CPU of everything", "s", name, found["cpu"])

    async def _many_runs(self) -> None:
        sizes = self._sizes
        self._progress.say(f"fleet, runs: {sizes.runs} at once over {sizes.standing} members")
        found = await ask("many runs", module=MODULE, members=sizes.standing, runs=sizes.runs)
        name = f"{found['runs']} runs, {found['members']} members"
        for alone in found["alone"]:
            self._add("runs.alone", f"a run alone, {found['waves']} waves", "s", name, alone)
        for key, title, unit in (
            ("median", "all of them at once: the median", "s"),
            ("longest", "the longest of those that can end", "s"),
            ("seconds", "from the first release to the last end", "s"),
            ("cpu", "CPU of the hub for all of them", "s"),
            ("peak", "the most memory it ever had", "MiB"),
        ):
            self._add(f"runs.{key}", title, unit, name, found[key])
        if found["stuck_ended"]:
            self._note("the run with a member that is never ready ended all the same: that is a bug")

    async def _previews(self) -> None:
        for members in self._sizes.previewed:
            self._progress.say(f"fleet, previews: of {members} clusters")
            found = await ask("previews", module=MODULE, members=members)
            for case, title in PREVIEWS.items():
                one, name = found[case], members_named(members)
                self._add(f"preview.{case}", f"{title}: the preview takes", "s", name, one["took"])
                self._add(f"preview.{case}-hours", f"{title}: what it shows takes", "h", name, one["hours"])

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
        self._measure(key, title, unit, base or name).add(name, value)


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
        "server in another, whose members only pretend. Staged runs: a fifth, three tenths and half of the clusters, "
        "half of a stage at a time, timed from the run, which comes after the new image. A hundred runs: each over ten "
        "members of its own that take 5 s, while one of them stands still. Previews: clusters take a minute."
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
