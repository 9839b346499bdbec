"""Run ending: how runs must be once nothing goes wrong any more: at their end, or saying what they wait for."""

from __future__ import annotations

import asyncio

from kedge.api.reasons import SUCCEEDED
from kedge.api.staged import RunState
from kedge.plan.staging.conditions import has_condition, has_ended, is_moving
from kedge.plan.staging.run_story import tell_run
from kedge.simulate.simulation import InvariantViolated, Simulation
from simulate.ending import SOON
from simulate.promises import Promises, is_available
from simulate.run_facts import Request, Run
from simulate.run_promises import RunPromises
from simulate.runs import Runs

EVERY = 5.0  # seconds: how soon somebody approves
A_MOMENT = 80.0  # seconds: a watch that fell silent before the faults stopped is noticed after 75 s


class RunEnding:
    """What is true of runs at the end."""

    def __init__(
        self, simulation: Simulation, promises: Promises, judge: RunPromises, runs: Runs, *, patience: float
    ) -> None:
        """`patience` is how many seconds must pass in which nobody writes anything, for runs to stand still."""
        self._simulation = simulation
        self._promises = promises
        self._judge = judge
        self._runs = runs
        self._patience = patience

    async def end_or_say(self) -> None:
        """Everything is approved and nothing is stopped: each run ends, or says what it waits for."""
        await self._until_still()
        live = self._live()
        for run in live:
            self._promises.asked("a run that stands still says what it waits for", tight=True)
            if wrong := self._of_words(run, live):
                raise InvariantViolated(wrong)
        for run in live:
            if run.metadata.name.endswith("1"):
                await self._runs.set_state(run.metadata.name, "Stop")
            else:
                await self._runs.delete(run.metadata.name)

    async def _until_still(self) -> None:
        loop, began = self._simulation.loop, self._simulation.loop.time()
        while loop.time() - max(began, self._promises.last_write) < (self._patience if self._live() else A_MOMENT):
            if loop.time() - began > SOON:
                raise InvariantViolated(f"within {SOON:g} s nothing is written for {self._patience:g} s")
            await self._oblige()
            await asyncio.sleep(EVERY)

    def _live(self) -> list[Run]:
        return [one for one in self._judge.runs.all().values() if not has_ended(one.status)]

    async def _oblige(self, *, resume: bool = True) -> None:
        await self._runs.approve_all()
        for run in await self._runs.live() if resume else ():
            if run.spec.state is RunState.stop:
                await self._runs.set_state(run.metadata.name, "Run")

    def _of_words(self, run: Run, live: list[Run]) -> str:
        """What is wrong with what a run says of itself that stands still."""
        name, why = run.metadata.name, tell_run(run).why
        moving = [one.cluster_name for stage in run.status.stages_status for one in stage.clusters if is_moving(one)]
        others = [one.metadata.name for one in live if one is not run]
        if any(one in why for one in (*moving, *self._down(run))) or any(f"run {one} " in why for one in others):
            return ""
        if "is gone, and the run cannot give" in why:
            return ""
        return f"{name} stands still, moves {moving}, and says: {why!r}"

    def _down(self, run: Run) -> list[str]:
        """The clusters of a run that are done, and are said not to be available any more."""
        done = {
            one.cluster_name
            for stage in run.status.stages_status
            for one in stage.clusters
            if has_condition(one, SUCCEEDED)
        }
        bindings = self._promises.bindings.all().values()
        return [
            one.spec.target_cluster for one in bindings if one.spec.target_cluster in done and not is_available(one)
        ]

    async def succeed(self) -> None:
        """With a good release, one more run succeeds."""
        name = await self._runs.begin(most=99)
        began = self._simulation.loop.time()
        while not has_ended(self._now(name).status):
            if self._simulation.loop.time() - began > SOON:
                raise InvariantViolated(f"{name} does not end: {tell_run(self._now(name)).why!r}")
            await self._oblige(resume=False)
            await asyncio.sleep(EVERY)
        if not has_condition(self._now(name).status, SUCCEEDED):
            raise InvariantViolated(f"{name} fails: {tell_run(self._now(name)).why!r}")
        await self._simulation.until("every request has a run", lambda: not self._orphans(), within=60)

    def _orphans(self) -> list[str]:
        """Requests that no run of this name can have made."""
        runs = {name: _made(one) for name, one in self._judge.runs.all().items()}
        requests = self._judge.requests.all().items()
        return [name for name, one in requests if _made(one) < runs.get(one.spec.parent_stage_rollout, float("inf"))]

    def _now(self, name: str) -> Run:
        found = self._judge.runs.now(name)
        assert found is not None, f"nobody deletes {name}"
        return found


def _made(found: Run | Request) -> float:
    at = found.metadata.creation_timestamp
    return at.timestamp() if at is not None else 0.0
