"""Part: asks both questions of the fifth part, and keeps the answers as measures."""

from __future__ import annotations

import asyncio
from typing import Any

from controlplane.gotool import GoError
from kedgebench.batches import argo_build
from kedgebench.batches.sizes import Sizes
from kedgebench.embedded.ask import ask
from kedgebench.part import BasePart
from kedgebench.results import KEDGE

MODULE = "kedgebench.batches.task"
MILLI = 1e3
ARGO = f"Argo Rollouts {argo_build.VERSION}"
BY_HAND = "by hand"
_TITLES = {"by hand": BY_HAND, "kedge": KEDGE, "argo": ARGO}


class Part(BasePart[Sizes]):
    """One run of the fifth part."""

    name = "batches"

    async def everything(self) -> None:
        """Both questions, in turn: the one by the clock first."""
        await self._build_peer()
        await self._releases()
        await self._rest()

    async def _build_peer(self) -> None:
        """The first time only: it takes minutes."""
        try:
            await asyncio.to_thread(argo_build.build, self._progress.say)
        except GoError as error:
            self._note(f"without Argo Rollouts, which could not be built: {str(error).splitlines()[0]}")

    async def _releases(self) -> None:
        sizes = self._sizes
        self._progress.say(f"batches: {sizes.releases} releases of {sizes.pods} pods in {sizes.batches} batches")
        given = {"pods": sizes.pods, "batches": sizes.batches, "releases": sizes.releases}
        found = await ask("releasing", module=MODULE, **given)
        if "missing" in found:
            self._note(f"no control plane: {found['missing']}")
            return
        path = sizes.batches * found["wave"]
        for name, releases in found["releases"].items():
            for one in releases:
                self._release(_TITLES[name], one, path)
        for name, wrong in found["wrong"].items():
            self._promises(_TITLES[name], wrong)

    def _release(self, name: str, one: dict[str, Any], path: float) -> None:
        for wave in one.get("waves", ()):
            self._add("release.wave", f"a batch of {self._sizes.at_once} pods by hand", "s", wave, name)
        self._add("release.took", f"the release, {self._sizes.batches} batches", "s", one["took"], name)
        self._add("release.overhead", "overhead: took / (batches × a batch by hand)", "×", one["took"] / path, name)
        for key, title, unit, times in (
            ("told", "until the status says so", "s", 1.0),
            ("decided", "from the last pod that is ready to the first old one that goes", "s", 1.0),
            ("cpu", "CPU per pod", "ms", MILLI / self._sizes.pods),
            ("resident", "resident", "MiB", 1.0),
            ("load", "load of the machine", "", 1.0),
        ):
            if one.get(key) is not None:
                self._add(f"release.{key}", title, unit, one[key] * times, name)

    async def _rest(self) -> None:
        sizes = self._sizes
        self._progress.say(f"batches: an operator of {sizes.rollouts} rollouts that have succeeded, at rest")
        given = {"count": sizes.rollouts, "pods": sizes.rollout_pods, "settle": sizes.settle, "idle": sizes.idle}
        found = await ask("resting", module=MODULE, **given)
        if "missing" in found:
            return
        for key, title, unit in (
            ("started", "started, until ready", "s"),
            ("took", "all rollouts at once", "s"),
            ("cpu", "CPU of the operator for that", "s"),
            ("busy", "resident after that", "MiB"),
            ("resident", "resident, at rest", "MiB"),
            ("start_peak", "the most it ever was", "MiB"),
            ("idle_cpu", "CPU in a minute at rest", "s"),
        ):
            self._add(f"rest.{key}", title, unit, found[key])
        self._add("promises.writes", f"writes in {sizes.idle:g} s at rest", "", found["writes"])
        self._note(
            f"{found['rollouts']} rollouts with {found['pods']} pods at rest: in {sizes.idle:g} s it asked for "
            f"{found['requests'] or 'nothing'}"
        )
        self._promises(KEDGE, found["wrong"])

    def _promises(self, name: str, wrong: list[str]) -> None:
        if wrong:
            self._note(f"{name}: there were too few pods or too many: {wrong}")
        self._add("promises.broken", "instants at which a promise was broken", "", float(len(wrong)), name)

    def _add(self, key: str, title: str, unit: str, value: float, name: str = KEDGE) -> None:
        self._measure(key, title, unit).add(name, value)


def how(sizes: Sizes) -> str:
    """What was measured and how, in a paragraph."""
    return (
        "One real control plane: kube-apiserver, controllers, scheduler, and KWOK with pods ready half a second after "
        "they run. `kedge operator --batches` and the controller of Argo Rollouts as processes, with default flags. "
        f"Releases of {sizes.pods} pods in {sizes.batches} batches take turns: by hand, by Kedge (from Deployment to "
        f"Deployment), by Argo Rollouts (a canary of {sizes.batches} steps, maxSurge {sizes.at_once}, maxUnavailable "
        "0); a first turn of each is not counted. By hand, a batch raises the new Deployment, waits for its pods in a "
        "watch, lowers the old one and waits until those pods are gone. Watches of the pods say what happened when, "
        f"and whether ever fewer than {sizes.pods} pods were ready, or more than {sizes.pods + sizes.at_once} there. "
        f"At rest: {sizes.rollouts} rollouts of {sizes.rollout_pods} pods, one by one, all succeeded; the operator's "
        "requests are from the audit log."
    )
