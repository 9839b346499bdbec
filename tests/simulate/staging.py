"""Staged runs from seeds: whole fleets that have bad days, while people release, approve, stop, retry and delete.

    PYTHONPATH=tests python -m kedge.simulate simulate.staging:staging --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from random import Random
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from kedge.api.placement import ClusterResourcePlacement
from kedge.api.snapshot import ClusterResourceSnapshot
from kedge.kube.errors import Conflict, NotFound
from kedge.simulate.faults import NONE
from kedge.simulate.simulation import Simulation
from simulate.accidents import Accidents
from simulate.deployments import BAD
from simulate.ending import Ending, end_state
from simulate.explanations import Explanations
from simulate.fleets import NAME, NAMESPACE, Fleet, Picks, placement_of
from simulate.gate_promises import GatePromises
from simulate.hostile import hostile_member
from simulate.promises import Promises, has_joined
from simulate.run_ending import RunEnding
from simulate.run_promises import RunPromises
from simulate.runs import Runs
from simulate.settings import Setting, drawn_setting
from simulate.strategies import RINGS, labels, patient_strategy, strategy
from simulate.weather import weather
from simulate.workload_trouble import WorkloadDays, WorkloadTrouble, workload_days

Edit = Callable[[int], Awaitable[None]]
PLAN = "kedge.plan.staging"
CLOCKS_WRONG = 120.0  # seconds, at most
STUCK = timedelta(seconds=90)  # after which a cluster fails; not five minutes, so that more of them do so midway


async def staging(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and every run ends, or says what it waits for."""
    days = workload_days(simulation.rng("workload days"), share=0.4)
    if simulation.faults == NONE and not days.is_network_fine:
        simulation.faults = replace(weather(simulation.rng("weather")), clock_seconds=CLOCKS_WRONG)
    staged = StagesInTrouble(simulation, days)
    with ExitStack() as patches:
        for module in ("step_builder", "clearing", "gates"):
            patches.enter_context(patch(f"{PLAN}.{module}.STUCK_AFTER", STUCK))
        await staged.open()
        processes = () if days.is_network_fine else simulation.processes.values()
        trouble = [staged.fleet.bad_days(process, 2, 60.0) for process in processes]
        await asyncio.gather(staged.users(), staged.workloads(), staged.lies(), staged.accidents.happen(), *trouble)
        await staged.settle()


class StagesInTrouble:
    """A fleet, those who release and approve, and what must always hold."""

    def __init__(self, simulation: Simulation, days: WorkloadDays) -> None:
        self.simulation = simulation
        self.trouble = WorkloadTrouble(simulation, simulation.rng("workload trouble"), days.kinds)
        self.rng = rng = simulation.rng("staging")
        self.rings = rng.randint(2, len(RINGS))
        members = rng.randint(3, 4) if days.kinds else rng.randint(5, 6)
        places = {f"cluster-{number}": labels(rng, self.rings) for number in range(1, members + 1)}
        self.is_patient = bool(days.kinds) and (days.is_network_fine or rng.random() < 0.5)
        if self.is_patient:
            self.rings = 2
            places = {f"cluster-{number}": {"ring": RINGS[number % 2]} for number in range(1, members + 1)}
        heartbeat = 20 if rng.random() < 0.2 else 60
        setting = drawn_setting(simulation.rng("setting"), is_network_fine=days.is_network_fine)
        self.fleet = Fleet(simulation, members, heartbeat=heartbeat, labels=places, shape=days.shape, setting=setting)
        self.picks = Picks(self.fleet, rng, rng.choice(["PickN", "PickAll", "PickFixed"]))
        self.runs = Runs(self.fleet.hub, rng)
        true_clocks = simulation.faults.clock_jumps == 0 and setting is not Setting.skewed_clocks
        promises = self.promises = Promises(simulation, only_releases=False, true_clocks=true_clocks, by_runs=True)
        self.run_promises = RunPromises(simulation, promises, true_clocks=true_clocks)
        GatePromises(simulation, promises, self.run_promises)
        self.hostile = hostile_member(self.fleet, self.promises)
        self.accidents = Accidents(simulation, self.fleet, self.promises, self.trouble)
        self.ending = Ending(simulation, promises, NAMESPACE, NAME)
        Explanations(simulation, self.promises)
        patience = STUCK.total_seconds() + (5.0 if true_clocks else 2 * CLOCKS_WRONG)
        self.run_ending = RunEnding(simulation, promises, self.run_promises, self.runs, patience=patience)

    async def open(self) -> None:
        """Everybody joins, and a first run is made meanwhile."""
        await self.fleet.install(self.promises.follow_agent)
        await self.fleet.place(self.rng, lambda: placement_of(self.picks.policy(), self._external()))
        drawn = patient_strategy if self.is_patient else strategy
        await self.runs.set_strategy(drawn(self.rng, self.rings))
        await self.simulation.until("everybody joins", self._have_joined)
        await self.runs.begin()

    def _have_joined(self) -> bool:
        return sum(map(has_joined, self.promises.members.all().values())) == len(self.fleet.members)

    def _external(self) -> dict[str, Any]:
        rolling = {"unavailablePeriodSeconds": self.rng.choice([2, 5, 20])}
        return {"type": "External", "rollingUpdate": rolling}

    async def lies(self) -> None:
        """A member that is hostile, if there is one, lies now and then."""
        if self.hostile is not None:
            await self.hostile.lie(8, apart=30.0)

    async def workloads(self) -> None:
        """Pods and nodes have bad days."""
        await self.trouble.days(tuple(self.fleet.members), 10, apart=35.0)

    # What users do

    async def users(self) -> None:
        await (self.releases_and_runs() if self.is_patient else self.edits())

    async def releases_and_runs(self, number: int = 3) -> None:
        """Somebody releases, runs it through the stages, and approves whatever is asked, each time at their ease."""
        for count in range(number):
            await self.fleet.release(BAD if self.rng.random() < 0.2 else f"app:{count + 2}")
            await self.runs.begin()
            for _ in range(self.rng.randint(10, 20)):
                await asyncio.sleep(self.rng.uniform(0.0, 10.0))
                await self.runs.approve_all()

    async def edits(self, number: int = 14) -> None:
        """Edits now and then, of anything a user may edit; and approvals, mostly."""
        runs: list[Edit] = [
            *(self._ship, self._ship, self._ship, self._begin, self._stop, self._stop, self._resume, self._resume),
            *(self._stutter, self._again),
            *(self._retry, self._retry, self._delete_run, self._revoke, self._revoke, self._delete_request),
            *(self._restage, self._drop),
        ]
        others: list[Edit] = [
            *(self._scale, self._scale, self._taint, self._label, self._move, self._leave, self._drift, self._content),
            *(self._rearrange, self._misplace),
        ]
        for count in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 2.0), self.rng.uniform(3.0, 25.0)]))
            with suppress(NotFound, Conflict):
                if self.rng.random() < 0.6:
                    await self.runs.approve_some()
                await self.rng.choice(runs if self.rng.random() < 0.7 else others)(count)

    async def _ship(self, count: int) -> None:
        """A release and a run for it, in one breath or not."""
        await self.fleet.release(BAD if self.rng.random() < 0.25 else f"app:{count + 2}")
        await asyncio.sleep(self.rng.choice([0.0, self.rng.uniform(0.0, 5.0)]))
        await self.runs.begin()

    async def _begin(self, _: int) -> None:
        placement = await self.fleet.hub.get(ClusterResourcePlacement, NAME)
        newest = int(placement.status.observed_resource_index or 0)
        await self.runs.begin(self.rng.choice([None, str(newest), str(max(0, newest - 1))]))

    async def _stop(self, _: int) -> None:
        await self.runs.stop()

    async def _resume(self, _: int) -> None:
        await self.runs.resume()

    async def _stutter(self, _: int) -> None:
        """A run is stopped and goes on in almost the same moment."""
        await self.runs.stop()
        await asyncio.sleep(self.rng.uniform(0.0, 0.5))
        await self.runs.resume()

    async def _again(self, _: int) -> None:
        """A run is deleted, and another of the same name made at once."""
        await self.runs.delete()
        await asyncio.sleep(self.rng.uniform(0.0, 3.0))
        await self.runs.begin()

    async def _retry(self, _: int) -> None:
        await self.runs.retry()

    async def _delete_run(self, _: int) -> None:
        await self.runs.delete()

    async def _revoke(self, _: int) -> None:
        await self.runs.revoke()

    async def _delete_request(self, _: int) -> None:
        await self.runs.delete_request()

    async def _restage(self, _: int) -> None:
        """The strategy is edited, or deleted."""
        if self.rng.random() < 0.3:
            await self.runs.delete_strategy()
        else:
            await self.runs.set_strategy(strategy(self.rng, self.rings))

    async def _drop(self, _: int) -> None:
        """The resources that a run moves are deleted."""
        indexes = [one.status.resource_snapshot_index_used for one in await self.runs.live()]
        if found := sorted(one for one in indexes if one is not None):
            await self.fleet.hub.delete(ClusterResourceSnapshot, f"{NAME}-{self.rng.choice(found)}-snapshot")

    async def _scale(self, _: int) -> None:
        await self.picks.scale()

    async def _taint(self, _: int) -> None:
        await self.picks.taint()

    async def _label(self, _: int) -> None:
        await self.picks.label()

    async def _move(self, _: int) -> None:
        """A member belongs to another stage, or to none."""
        ring = self.rng.choice([*RINGS[: self.rings], "none"])
        await self.fleet.change_member(self.rng.choice(self.fleet.members), {"metadata": {"labels": {"ring": ring}}})

    async def _leave(self, _: int) -> None:
        await self.picks.leave()

    async def _drift(self, count: int) -> None:
        await self.fleet.drift(self.rng, count)

    async def _content(self, count: int) -> None:
        await self.fleet.content(self.rng, count)

    async def _rearrange(self, _: int) -> None:
        await self.fleet.change({"spec": {"strategy": self._external()}})

    async def _misplace(self, _: int) -> None:
        """Somebody points a binding elsewhere."""
        await self.runs.misplace()

    # The end of trouble

    async def settle(self) -> None:
        """Nothing goes wrong any more, and everybody who is asked approves: every run ends or says why not."""
        await self.fleet.end_faults()
        await self.picks.fit()
        await self.runs.set_strategy(strategy(self.rng, self.rings))
        if self.rng.random() < 0.25:
            await self.fleet.release(BAD)
            await self.runs.begin(most=9)
        await self.run_ending.end_or_say()
        await self.fleet.release("app:final")
        await self.run_ending.succeed()
        await self.ending.arrived(self.fleet.image, self.fleet.members, self.fleet.gone)
        await self.fleet.others_arrive()


# One quiet story, and a crash in it


async def hub_crashing(simulation: Simulation) -> None:
    """Three runs that nobody disturbs, but the hub crashes after its nth write, n being the seed."""
    staged = QuietStages(simulation)
    await staged.join()
    hub = simulation.processes["hub"]
    hub.crash_after_write(simulation.seed)
    began = hub.writes
    await staged.tell()
    simulation.counts["writes", "hub"] += hub.writes - began
    for line in end_state(simulation):
        simulation.counts["end", line] += 1


class QuietStages:
    """The same fleet and the same story whatever the seed."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rng = Random(7)
        places = {f"cluster-{number}": {"ring": RINGS[number > 2]} for number in range(1, 6)}
        self._fleet = Fleet(simulation, 5, labels=places)
        self._runs = Runs(self._fleet.hub, self._rng)
        self._promises = Promises(simulation, only_releases=False, true_clocks=True, by_runs=True)
        self._judge = RunPromises(simulation, self._promises, true_clocks=True)
        self._ending = Ending(simulation, self._promises, NAMESPACE, NAME)

    async def join(self) -> None:
        await self._fleet.install(self._promises.follow_agent)
        await self._simulation.until("everybody joins", self._have_joined)

    def _have_joined(self) -> bool:
        return sum(map(has_joined, self._promises.members.all().values())) == 5

    async def tell(self) -> None:
        """A first run, a release that is stopped and resumed midway, and one that clears a cluster."""
        await self._fleet.place(self._rng, lambda: placement_of(self._policy(5), {"type": "External"}))
        await self._runs.set_strategy(_QUIET)
        await self._end(await self._runs.begin())
        await self._fleet.release("app:2")
        run = await self._runs.begin()
        await asyncio.sleep(8)
        await self._runs.set_state(run, "Stop")
        await asyncio.sleep(30)
        await self._runs.set_state(run, "Run")
        await self._end(run)
        await self._fleet.release("app:3")
        await self._fleet.change({"spec": {"policy": self._policy(4)}})
        await self._end(await self._runs.begin())
        await self._ending.arrived("app:3", self._fleet.members, ())

    def _policy(self, clusters: int) -> dict[str, Any]:
        return {"placementType": "PickFixed", "clusterNames": self._fleet.members[:clusters]}

    async def _end(self, run: str) -> None:
        for _ in range(600):
            await self._runs.approve_all()
            if await self._runs.has_succeeded(run):
                return
            await asyncio.sleep(2)
        raise AssertionError(f"{run} does not end")


_QUIET = {
    "stages": [
        {
            "name": "staging",
            "labelSelector": {"matchLabels": {"ring": "staging"}},
            "afterStageTasks": [{"type": "TimedWait", "waitTime": "10s"}, {"type": "Approval"}],
        },
        {
            "name": "canary",
            "labelSelector": {"matchLabels": {"ring": "canary"}},
            "maxConcurrency": 2,
            "beforeStageTasks": [{"type": "Approval"}],
        },
    ],
    "deleteStageTasks": [{"type": "Approval"}],
}
