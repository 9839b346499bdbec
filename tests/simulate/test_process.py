"""Simulated processes: crashes that nothing survives, restarts from nothing, and standing still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from kedge.api.core import ConfigMap
from kedge.kube.client import Client
from kedge.kube.errors import KubeError, NotFound, Unreachable
from kedge.kube.lease import Election, LeadershipLost
from kedge.kube.limits import Limiter, Retry
from kedge.simulate.faults import NONE, Faults
from kedge.simulate.loop import Loop
from kedge.simulate.process import Process
from kedge.simulate.simulation import InvariantViolated, Simulation


def simulated(work: Callable[[Simulation], Coroutine[Any, Any, None]], *, seed: int = 1, faults: Faults = NONE) -> None:
    """Do this in a simulation with one server, and end it."""
    with asyncio.Runner(loop_factory=lambda: Loop(seed)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Loop)
        simulation = Simulation(seed, loop, faults=faults)
        simulation.server("hub")
        try:
            runner.run(work(simulation))
        finally:
            simulation.close()


def client(process: Process, server: str = "hub") -> Client:
    return Client(process.link(server), limiter=Limiter(rate=0), retry=Retry(attempts=1), rng=process.rng("client"))


async def make(to: Client, name: str) -> None:
    await to.create(ConfigMap, {"metadata": {"name": name}}, "default")


async def names(simulation: Simulation) -> list[str]:
    found = (await simulation.client("hub").list(ConfigMap, "default")).items
    return sorted(one.metadata.name for one in found)


@pytest.mark.parametrize("seed", range(20))
def test_no_finally_reaches_the_outside_after_a_crash(seed: int) -> None:
    tried: list[str] = []

    async def main(process: Process) -> None:
        hub = client(process)

        async def tidy(name: str) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                for attempt in range(3):
                    try:
                        await make(hub, f"{name}-{attempt}")
                    except Unreachable as error:
                        tried.append(str(error))
                        await asyncio.sleep(1)

        async def shielded() -> None:
            await asyncio.shield(asyncio.create_task(tidy("b")))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(tidy("a"))
            tasks.create_task(shielded())

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        await asyncio.sleep(10)
        process.crash()
        await asyncio.sleep(100)
        assert await names(simulation) == []
        assert len(tried) >= 2
        assert "the process is dead" in tried[0]

    simulated(work, seed=seed)


def test_a_process_starts_from_nothing() -> None:
    async def main(process: Process) -> None:
        lives.append((process.starts, process.rng("x").random()))
        await make(client(process), f"life-{process.starts}")
        await asyncio.sleep(1000)

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        await asyncio.sleep(10)
        old = process.link("hub")
        process.restart()
        await asyncio.sleep(10)
        assert await names(simulation) == ["life-1", "life-2"]
        assert process.link("hub") is not old
        with pytest.raises(RuntimeError, match="p runs already"):
            process.start()

    lives: list[tuple[int, float]] = []
    simulated(work)
    assert [number for number, _ in lives] == [1, 2]
    assert lives[0][1] != lives[1][1]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_crash_after_a_write_comes_before_its_answer(number: int) -> None:
    heard: list[str] = []

    async def main(process: Process) -> None:
        for index in range(4):
            await make(client(process), f"{process.starts}-{index}")
            heard.append(f"{process.starts}-{index}")
        await asyncio.sleep(1000)

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        process.crash_after_write(number)
        await asyncio.sleep(10)
        assert process.starts == 2
        first = [f"1-{index}" for index in range(number)]
        second = [f"2-{index}" for index in range(4)]
        assert await names(simulation) == first + second
        assert heard == first[:-1] + second

    simulated(work)


@pytest.mark.parametrize("seed", range(10))
def test_while_it_stands_still_nothing_of_it_runs_and_time_goes_on(seed: int) -> None:
    async def main(process: Process) -> None:
        hub, loop = client(process), asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            await make(hub, f"at-{loop.time():05.1f}")

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        await asyncio.sleep(2.5)
        process.suspend()
        before = await names(simulation)
        await asyncio.sleep(60)
        assert await names(simulation) == before == ["at-001.0", "at-002.0"]
        process.resume()
        await asyncio.sleep(1.2)
        assert await names(simulation) == [*before, "at-062.5", "at-063.5"]

    simulated(work, seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_a_leader_that_stood_still_finds_another_in_its_place_and_starts_anew(seed: int) -> None:
    leading: list[tuple[str, float]] = []

    async def main(process: Process) -> None:
        hub = client(process)
        identity = f"{process.name}-{process.starts}"
        election = Election(hub, "lock", "default", identity, clock=process.clock, rng=process.rng("lease"))

        async def work() -> None:
            while election.is_leading():
                leading.append((process.name, asyncio.get_running_loop().time()))
                await asyncio.sleep(0.5)

        await election.lead(work)
        raise LeadershipLost("over")

    async def work(simulation: Simulation) -> None:
        one = simulation.start("one", main, exits_on=(LeadershipLost,))
        await asyncio.sleep(5)
        two = simulation.start("two", main, exits_on=(LeadershipLost,))
        await asyncio.sleep(10)
        assert {name for name, _ in leading} == {"one"}
        one.suspend()
        await asyncio.sleep(60)
        one.resume()
        resumed = simulation.loop.time()
        await asyncio.sleep(30)
        assert {name for name, at in leading if at >= resumed} == {"two"}
        assert one.starts == 2
        assert two.starts == 1

    simulated(work, seed=seed)


def test_cut_links_fail_until_they_are_mended() -> None:
    async def main(process: Process) -> None:
        hub, loop = client(process), asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            try:
                await hub.get(ConfigMap, "x", "default")
            except NotFound:
                answered.append(loop.time())
            except KubeError:
                failed.append(loop.time())

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        await asyncio.sleep(2.5)
        process.cut()
        await asyncio.sleep(2.0)
        process.mend()
        await asyncio.sleep(1.0)

    answered: list[float] = []
    failed: list[float] = []
    simulated(work)
    assert (answered, failed) == ([1.0, 2.0, 5.0], [3.0, 4.0])


def test_its_clock_can_be_moved_and_the_servers_is_not() -> None:
    async def main(process: Process) -> None:
        await asyncio.sleep(1000)

    async def work(simulation: Simulation) -> None:
        process = simulation.start("p", main)
        process.clock.jump(-3600)
        assert process.clock.now() - simulation.clock.now() == timedelta(hours=-1)
        await make(simulation.client("hub"), "web")
        made = (await simulation.client("hub").get(ConfigMap, "web", "default")).metadata.creation_timestamp
        assert made == simulation.clock.now()

    simulated(work)


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_a_process_that_ends_fails_the_simulation(error: Exception | None) -> None:
    async def main(process: Process) -> None:
        await asyncio.sleep(1)
        if error is not None:
            raise error

    async def work(simulation: Simulation) -> None:
        simulations.append(simulation)
        simulation.start("p", main)
        await asyncio.sleep(10)

    simulations: list[Simulation] = []
    with pytest.raises(RuntimeError, match="stopped before"):
        simulated(work)
    failure = simulations[0].failure
    assert isinstance(failure, InvariantViolated)
    assert str(failure) == "process p runs for ever"
    assert failure.__cause__ is error
