"""Part: asks both questions of the sixth part, and keeps the answers as measures."""

from __future__ import annotations

from kedgebench.alignment.sizes import Sizes
from kedgebench.embedded.ask import ask
from kedgebench.part import BasePart
from kedgebench.results import KEDGE

MODULE = "kedgebench.alignment.task"
MILLI = 1e3


class Part(BasePart[Sizes]):
    """One run of the sixth part."""

    name = "alignment"

    async def everything(self) -> None:
        await self._rolling()
        await self._deciding()

    async def _rolling(self) -> None:
        sizes = self._sizes
        self._progress.say(f"alignment: {sizes.pods} pods over {sizes.members} real members")
        given = {"members": sizes.members, "pods": sizes.pods, "rounds": sizes.rounds}
        found = await ask("rolling", module=MODULE, max_unavailable=sizes.max_unavailable, **given)
        if "missing" in found:
            self._note(f"no real members: {found['missing']}")
            return
        for took in found["plain"]:
            self._add("rolling.plain", f"one Deployment of {sizes.pods} on one cluster", "s", took)
        for took, overhead, load in zip(found["aligned"], found["overhead"], found["loads"], strict=True):
            self._add("rolling.aligned", f"the same, divided over {sizes.members} clusters", "s", took)
            self._add("rolling.overhead", "overhead: divided / on one cluster", "×", overhead)
            self._add("rolling.load", "load of the machine", "", load)
        self._add("rolling.writes", "writes to each cluster in a release", "", found["writes"])
        self._add("rolling.pending", "most writes that a cluster had not acknowledged", "", found["most_pending"])
        self._add("promises.broken", "instants at which a bound was left", "", float(len(found["wrong"])))
        if found["wrong"]:
            self._note(f"bounds were left, and that is a bug: {found['wrong']}")
        if found["plain_wrong"]:
            self._note(f"the Deployment on one cluster left its own bounds: {found['plain_wrong']}")

    async def _deciding(self) -> None:
        sizes = self._sizes
        self._progress.say(f"alignment: decisions on {sizes.clusters} clusters")
        found = await ask("deciding", module=MODULE, clusters=sizes.clusters, decisions=sizes.decisions)
        for wall, cpu in zip(found["wall"], found["cpu"], strict=True):
            self._add("deciding.wall", f"a decision on {sizes.clusters} clusters", "ms", wall * MILLI)
            self._add("deciding.cpu", "CPU of that", "ms", cpu * MILLI)
        self._add("deciding.load", "load of the machine", "", found["load"])

    def _add(self, key: str, title: str, unit: str, value: float) -> None:
        self._measure(key, title, unit).add(KEDGE, value)


def how(sizes: Sizes) -> str:
    """What was measured and how, in a paragraph."""
    return (
        f"A hub and {sizes.members} members, each a real control plane: kube-apiserver, controllers, scheduler, and "
        f"KWOK with pods ready half a second after they run. A Deployment of {sizes.pods} pods, maxUnavailable "
        f"{sizes.max_unavailable}, maxSurge 0, divided evenly; releases take turns with those of a Deployment of the "
        "same size and strategy on one of the members. The hub's controller and the agents run in one process beside "
        "whoever watches the pods; each has its own connections. Watches of the pods say when all of them run the "
        "image, and whether ever too few were ready or too many there. The decision is `plan_binding` alone."
    )
