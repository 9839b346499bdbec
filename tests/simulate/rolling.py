"""Whole fleets from seeds: a hub and members that have bad days, while what they place is changed under them.

    PYTHONPATH=tests python -m kedge.simulate simulate.rolling:rolling --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

from kedge.api.fleet import PAUSED, PINNED
from kedge.api.placement import ClusterResourcePlacement
from kedge.kube.errors import Conflict, NotFound
from kedge.simulate.faults import NONE
from kedge.simulate.simulation import Simulation
from simulate.accidents import Accidents
from simulate.deployments import BAD
from simulate.ending import Ending, end_state
from simulate.explanations import Explanations
from simulate.fleets import NAME, NAMESPACE, Fleet, Picks, placement_of
from simulate.hostile import hostile_member
from simulate.members_promises import MembersPromises
from simulate.promises import Promises, has_joined
from simulate.settings import Setting, drawn_setting
from simulate.weather import weather
from simulate.workload_trouble import WorkloadDays, WorkloadTrouble, workload_days

Edit = Callable[[int], Awaitable[None]]


async def rolling(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and everything arrives."""
    days = workload_days(simulation.rng("workload days"), share=0.4)
    if simulation.faults == NONE and not days.is_network_fine:
        simulation.faults = weather(simulation.rng("weather"))
    fleet = FleetInTrouble(simulation, days)
    await fleet.open()
    processes = () if days.is_network_fine else simulation.processes.values()
    trouble = [fleet.fleet.bad_days(process) for process in processes]
    await asyncio.gather(fleet.users(), fleet.workloads(), fleet.lies(), fleet.accidents.happen(), *trouble)
    await fleet.settle()


async def quiet(simulation: Simulation) -> None:
    """One good release and one bad one that is mended, with nobody disturbing."""
    fleet = FleetInTrouble(simulation)
    await fleet.open()
    await fleet.arrive()
    for image in ("app:2", BAD, "app:3"):
        await fleet.release(image)
        await asyncio.sleep(60)
    await fleet.settle()


async def hub_crashing(simulation: Simulation) -> None:
    """The same, and the hub crashes after its nth write, n being the seed. It must end as if it had not."""
    await _crashing(simulation, "hub")


async def agent_crashing(simulation: Simulation) -> None:
    """The same, and an agent crashes after its nth write, n being the seed."""
    await _crashing(simulation, "cluster-1")


async def _crashing(simulation: Simulation, who: str) -> None:
    fleet = FleetInTrouble(simulation)
    await fleet.join()
    process = simulation.processes[who]
    process.crash_after_write(simulation.seed)
    began = process.writes
    await fleet.place()
    await fleet.arrive()
    for image in ("app:2", BAD, "app:3"):
        await fleet.release(image)
        await asyncio.sleep(60)
    await fleet.arrive()
    simulation.counts["writes", who] += process.writes - began
    for line in end_state(simulation):
        simulation.counts["end", line] += 1


class FleetInTrouble:
    """A fleet, its users, and what must always hold."""

    def __init__(self, simulation: Simulation, days: WorkloadDays | None = None) -> None:
        """A quiet one, without `days`, is the same whatever the seed."""
        quiet, days = days is None, days or WorkloadDays(is_network_fine=True)
        self.simulation = simulation
        self.days = days
        self.rng = rng = Random(7) if quiet else simulation.rng("fleet")
        self.has_fixes = bool(days.kinds) and (days.is_network_fine or rng.random() < 0.5)
        members = 5 if quiet else rng.randint(3, 4) if days.kinds else rng.randint(5, 7)
        kind = "PickAll" if quiet else rng.choice(["PickN", "PickN", "PickAll", "PickFixed"])
        self.only_releases = quiet or self.has_fixes or rng.random() < 0.35
        heartbeat = 20 if not quiet and rng.random() < 0.3 else 60
        setting = (
            Setting.plain if quiet else drawn_setting(simulation.rng("setting"), is_network_fine=days.is_network_fine)
        )
        self.fleet = Fleet(simulation, members, heartbeat=heartbeat, shape=days.shape, setting=setting)
        self.trouble = WorkloadTrouble(simulation, simulation.rng("workload trouble"), days.kinds)
        self.picks = Picks(self.fleet, rng, kind)
        true_clocks = simulation.faults.clock_jumps == 0 and setting is not Setting.skewed_clocks
        self.promises = Promises(simulation, only_releases=self.only_releases, true_clocks=true_clocks)
        is_heard_soon = days.is_network_fine and setting not in (Setting.hostile_member, Setting.restored_hub)
        MembersPromises(simulation, self.promises, is_heard_soon=is_heard_soon)
        self.hostile = hostile_member(self.fleet, self.promises)
        self.accidents = Accidents(simulation, self.fleet, self.promises, self.trouble)
        self.ending = Ending(simulation, self.promises, NAMESPACE, NAME)
        Explanations(simulation, self.promises)

    async def open(self) -> None:
        """Everything is installed, everybody joins, and the first resources are placed meanwhile."""
        await self.fleet.install(self.promises.follow_agent)
        await self.place()

    async def join(self) -> None:
        """Everything is installed, and everybody has joined."""
        await self.fleet.install(self.promises.follow_agent)
        await self.simulation.until("everybody joins", self._have_joined)

    def _have_joined(self) -> bool:
        return sum(map(has_joined, self.promises.members.all().values())) == len(self.fleet.members)

    async def place(self) -> None:
        """The first resources are placed."""
        await self.fleet.place(self.rng, lambda: placement_of(self.picks.policy(), self._strategy()))

    def _strategy(self) -> dict[str, Any]:
        unavailable, surge = self.rng.choice([1, 1, 2, "30%", 0]), self.rng.choice([1, 2, "25%", 0])
        return {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxUnavailable": unavailable,
                "maxSurge": surge,
                "unavailablePeriodSeconds": self.rng.choice([2, 5, 20]),
            },
        }

    # What happens

    async def lies(self) -> None:
        """A member that is hostile, if there is one, lies now and then."""
        if self.hostile is not None:
            await self.hostile.lie(8, apart=40.0)

    async def workloads(self) -> None:
        """Pods and nodes have bad days."""
        await self.trouble.days(tuple(self.fleet.members), 8, apart=45.0)

    async def users(self) -> None:
        await (self.releases_and_fixes() if self.has_fixes else self.edits())

    async def releases_and_fixes(self, number: int = 2) -> None:
        """Somebody releases what is good and what is bad, looks at it for a while, and mends it."""
        for count in range(number):
            for image in (f"app:{count}-good", f"{BAD}-{count}", f"app:{count}-fix"):
                await self.release(image)
                await asyncio.sleep(self.rng.uniform(5.0, 90.0))

    async def edits(self, number: int = 8) -> None:
        """Edits now and then, of anything a user may edit."""
        releases: list[Edit] = [self._good, self._good, self._bad, self._pause, self._pin, self._content]
        others: list[Edit] = [
            *(self._scale, self._scale, self._drift, self._restrategize, self._taint, self._label),
            *(self._leave, self._redo),
        ]
        for count in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 2.0), self.rng.uniform(5.0, 60.0)]))
            with suppress(NotFound, Conflict):
                await self.rng.choice(releases if self.only_releases else releases + others)(count)

    async def release(self, image: str) -> None:
        await self.fleet.release(image)

    async def _good(self, count: int) -> None:
        await self.release(f"app:{count + 2}")

    async def _bad(self, count: int) -> None:
        await self.release(f"{BAD}-{count}")

    async def _content(self, count: int) -> None:
        await self.fleet.content(self.rng, count)

    async def _scale(self, _: int) -> None:
        await self.picks.scale()

    async def _redo(self, count: int) -> None:
        """Release and scale in one breath."""
        await self.release(self.rng.choice([f"app:{count + 2}", f"{BAD}-{count}"]))
        await self._scale(count)

    async def _restrategize(self, _: int) -> None:
        await self.fleet.change({"spec": {"strategy": self._strategy()}})

    async def _drift(self, count: int) -> None:
        await self.fleet.drift(self.rng, count)

    async def _taint(self, _: int) -> None:
        await self.picks.taint()

    async def _label(self, _: int) -> None:
        await self.picks.label()

    async def _leave(self, _: int) -> None:
        await self.picks.leave()

    async def _pause(self, _: int) -> None:
        await self._annotate(PAUSED, self.rng.choice(["true", None]))

    async def _pin(self, _: int) -> None:
        placement = await self.fleet.hub.get(ClusterResourcePlacement, NAME)
        newest = int(placement.status.observed_resource_index or 0)
        await self._annotate(PINNED, self.rng.choice([None, str(max(0, newest - 1)), str(newest)]))

    async def _annotate(self, name: str, value: str | None) -> None:
        await self.fleet.change({"metadata": {"annotations": {name: value}}})

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more, and a good release is wanted: it must arrive everywhere."""
        await self.fleet.end_faults()
        await self.picks.fit()
        for annotation in (PAUSED, PINNED):
            await self._annotate(annotation, None)
        if self.rng.random() < 0.4:
            await self.release(BAD)
            await self.ending.stuck_and_says_so()
        await self.release("app:final")
        await self.arrive()
        await self.fleet.others_arrive()
        if self.days.kinds:
            await self._break_and_mend()

    async def _break_and_mend(self) -> None:
        """A cluster that has arrived stops working, and works again: both are heard."""
        member = self.rng.choice(sorted(self.ending.bound()))
        await self.trouble.break_for_good(member)
        await self.ending.hears_of(member)
        await self.trouble.mend(member)
        await self.arrive()

    async def arrive(self) -> None:
        await self.ending.arrived(self.fleet.image, self.fleet.members, self.fleet.gone)
