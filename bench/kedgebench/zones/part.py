"""Part: asks both questions of the fourth part, and keeps the answers as measures."""

from __future__ import annotations

from typing import Any

from kedgebench.embedded.ask import ask
from kedgebench.part import BasePart
from kedgebench.results import KEDGE
from kedgebench.zones.sizes import ZONES, Sizes

MODULE = "kedgebench.zones.task"
MILLI = 1e3
PEER = "rollout-operator"
PEER_SECONDS = (74.3, 74.9)
"""What rollout-operator v0.38.1 took for the same work on such a control plane, in another run."""
PEER_OVERHEAD = 9.0
"""That, by the critical path of that run."""


class Part(BasePart[Sizes]):
    """One run of the fourth part."""

    name = "zones"

    async def everything(self) -> None:
        """Both questions, in turn: the one by the clock first."""
        await self._releases()
        await self._rest()

    async def _releases(self) -> None:
        sizes = self._sizes
        self._progress.say(f"zones: {sizes.releases} releases of {ZONES} zones of {sizes.pods} pods")
        given = {"pods": sizes.pods, "at_once": sizes.at_once, "releases": sizes.releases, "waves": sizes.waves}
        found = await ask("releasing", module=MODULE, **given)
        if "missing" in found:
            self._note(f"no control plane: {found['missing']}")
            return
        path = found["waves"] * found["median"]
        for plain in found["plain"]:
            self._add("release.wave", f"a wave of {sizes.at_once} pods by hand", "s", plain)
        for one in found["releases"]:
            self._add("release.took", f"the release, {found['waves']} waves", "s", one["took"])
            self._add("release.overhead", "overhead: took / (waves × a wave by hand)", "×", one["took"] / path)
            if one["decided"] is not None:
                self._add("release.decided", "from a pod that is ready to the next deletion", "s", one["decided"])
            pods = ZONES * sizes.pods
            self._add("release.cpu", "CPU of the operator per pod", "ms", one["cpu"] / pods * MILLI)
            self._add("release.load", "load of the machine", "", one["load"])
        self._promises(found)
        self._add_peer()

    def _add_peer(self) -> None:
        """The peer's figures, if this is the work that it was measured with."""
        known = Sizes()
        if (self._sizes.pods, self._sizes.at_once) == (known.pods, known.at_once):
            for seconds in PEER_SECONDS:
                self.measures["zones.release.took"].add(PEER, seconds)
            self.measures["zones.release.overhead"].add(PEER, PEER_OVERHEAD)

    async def _rest(self) -> None:
        sizes = self._sizes
        self._progress.say(f"zones: an operator of {sizes.groups} groups at rest")
        given = {"count": sizes.groups, "pods": sizes.group_pods, "settle": sizes.settle, "idle": sizes.idle}
        found = await ask("resting", module=MODULE, **given)
        if "missing" in found:
            return
        for key, title, unit in (
            ("started", "started, until ready", "s"),
            ("resident", "resident, at rest", "MiB"),
            ("idle_cpu", "CPU in a minute at rest", "s"),
            ("took", "a release of all groups at once", "s"),
            ("cpu", "CPU of the operator for that", "s"),
            ("busy", "resident after that", "MiB"),
            ("peak", "the most it ever was", "MiB"),
        ):
            self._add(f"rest.{key}", title, unit, found[key])
        self._add("promises.writes", f"writes in {sizes.idle:g} s at rest", "", found["writes"])
        self._note(
            f"{found['groups']} groups with {found['pods']} pods at rest: in {sizes.idle:g} s it asked for "
            f"{found['requests'] or 'nothing'}"
        )
        self._promises(found)

    def _promises(self, found: dict[str, Any]) -> None:
        if found["wrong"]:
            self._note(f"pods were unavailable that should not have been, and that is a bug: {found['wrong']}")
        broken = float(len(found["wrong"]))
        self._add("promises.broken", "instants at which a promise was broken", "", broken)

    def _add(self, key: str, title: str, unit: str, value: float) -> None:
        self._measure(key, title, unit).add(KEDGE, value)


def how(sizes: Sizes) -> str:
    """What was measured and how, in a paragraph."""
    return (
        "One real control plane: kube-apiserver, controllers, scheduler, and KWOK with pods ready half a second after "
        f"they run. `kedge rollout-operator` as a process. A group of {ZONES} StatefulSets of {sizes.pods} pods, "
        f"Parallel, {sizes.at_once} at a time; releases take turns with waves by hand, in which {sizes.at_once} pods "
        "of one zone are deleted and waited for. A watch of the pods says what happened when, and whether ever pods of "
        f"two zones, or more than {sizes.at_once}, were unavailable. At rest: {sizes.groups} groups of {ZONES} zones "
        f"of {sizes.group_pods} pods, one at a time, webhooks served with a certificate of the operator's own; its "
        f"requests are from the audit log. {PEER} was measured on such a control plane, but not in this run."
    )
