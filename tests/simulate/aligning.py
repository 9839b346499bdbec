"""Alignment from seeds: a workload divided over members, its users, outsiders, and processes that have bad days.

    PYTHONPATH=tests python -m kedge.simulate simulate.aligning:aligning --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from random import Random

from kedge.controllers.align.binding_kinds import NAMESPACED
from kedge.controllers.align.bindings import Bindings
from kedge.controllers.align.execution import Execution
from kedge.kube.crash import Crashed
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.simulate.faults import NONE
from kedge.simulate.process import Main, Process
from kedge.simulate.simulation import Simulation
from simulate.align_decisions import HUB
from simulate.align_fleet import AlignFleet
from simulate.bad_days import bad_day
from simulate.weather import weather


async def aligning(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and every pod runs what it should."""
    await _aligning(simulation, loses_ledger=simulation.rng("ledger").random() < 0.2)


async def ledger_lost(simulation: Simulation) -> None:
    """The same, and somebody removes the ledger from the binding now and then, or writes an older one."""
    await _aligning(simulation, loses_ledger=True)


async def comebacks(simulation: Simulation) -> None:
    """Pods stop working all the time, and work again after moments."""
    fleet = AlignFleet(simulation)
    fleet.troubles = ["never ready", "crash"]
    await fleet.open()
    start(fleet)
    await asyncio.gather(fleet.users(12), fleet.trouble(30, apart=10.0, lasting=15.0), fleet.cuts())
    await fleet.settle()


async def _aligning(simulation: Simulation, *, loses_ledger: bool) -> None:
    is_network_fine = simulation.rng("network").random() < 0.3
    if simulation.faults == NONE and not is_network_fine:
        simulation.faults = weather(simulation.rng("weather"))
    fleet = AlignFleet(simulation)
    await fleet.open()
    start(fleet)
    troubles = [fleet.users(), fleet.trouble(), fleet.cuts(), bad_days(simulation, HUB, *fleet.names)]
    await asyncio.gather(*troubles, *([fleet.ledger_losses()] if loses_ledger else []))
    await fleet.settle()


async def hub_crashing(simulation: Simulation) -> None:
    """A release, one midway, replicas that move, and the hub crashes after its nth write, n being the seed."""
    fleet = AlignFleet(simulation, Random(3), kind="Deployment", calm=True)
    fleet.replicas = dict.fromkeys(fleet.names, 2)
    await fleet.open()
    start(fleet)
    process = simulation.processes[HUB]
    process.crash_after_write(simulation.seed)
    began = process.writes
    await fleet.arrives("app:1")
    await fleet.release("app:2")
    await asyncio.sleep(4)
    await fleet.release("app:3")
    await asyncio.sleep(4)
    first, second = fleet.names[:2]
    fleet.replicas |= {first: 0, second: 4}
    await fleet.rebind()
    await fleet.arrives("app:3")
    await simulation.rest()
    simulation.counts["writes", HUB] += process.writes - began
    for line in fleet.end_state():
        simulation.counts["end", line] += 1


def start(fleet: AlignFleet) -> None:
    """The hub, and the agent of each member."""
    fleet.simulation.start(HUB, _hub, exits_on=(Crashed,))
    for name in fleet.names:
        fleet.simulation.start(name, _agent_of(name), exits_on=(Crashed,))


async def bad_days(simulation: Simulation, *names: str, days: int = 4) -> None:
    """One of these crashes, or stands still, now and then; mostly the first."""
    rng = simulation.rng("bad days")
    for _ in range(days):
        await asyncio.sleep(rng.uniform(0.0, 80.0))
        process = simulation.processes[rng.choice((names[0], *names))]
        await bad_day(process, rng)


async def _hub(process: Process) -> None:
    async with Manager(component="kedge-align", clock=process.clock, rng=process.rng("manager")) as manager:
        cluster = await manager.connect(HUB, process.link(HUB), limiter=Limiter(rate=0))
        manager.add_controller(Bindings(cluster, NAMESPACED, clock=process.clock).controller)
        await manager.run(signals=False)


def _agent_of(name: str) -> Main:
    async def agent(process: Process) -> None:
        async with Manager(component="agent", clock=process.clock, rng=process.rng("manager")) as manager:
            hub = await manager.connect(HUB, process.link(HUB), limiter=Limiter(rate=0))
            member = await manager.connect(name, process.link(name), limiter=Limiter(rate=0))
            manager.add_controller(Execution(hub, member, name, clock=process.clock).controller)
            await manager.run(signals=False)

    return agent
