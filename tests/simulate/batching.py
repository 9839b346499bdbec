"""Rollouts in batches from seeds: workloads of every kind, their users, outsiders, and an operator that has bad days.

    PYTHONPATH=tests python -m kedge.simulate simulate.batching:batching --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

from prometheus_client import CollectorRegistry

from kedge.kube.crash import Crashed
from kedge.kube.lease import Election
from kedge.kube.manager import Manager
from kedge.kube.transport import Transport
from kedge.operator_role import Operator, OperatorOptions
from kedge.simulate.faults import NONE
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation
from simulate.bad_days import bad_days, elected
from simulate.batch_promises import NAMESPACE
from simulate.batch_shop import SERVER, Shop
from simulate.weather import weather


async def batching(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and every pod runs what it should."""
    is_network_fine = simulation.rng("network").random() < 0.3
    if simulation.faults == NONE and not is_network_fine:
        simulation.faults = weather(simulation.rng("weather"))
    shop = Shop(simulation)
    await shop.open()
    Operators(shop)
    troubles = [bad_days(simulation, name, apart=80.0) for name in shop.operators]
    await asyncio.gather(shop.users(), shop.trouble(), shop.autoscale(), *troubles)
    await shop.settle()


async def operator_crashing(simulation: Simulation) -> None:
    """A release, one midway, one taken back, and the operator crashes after its nth write, n being the seed."""
    shop = Shop(simulation, Random(7), operators=("operator",), kind="Deployment")
    shop.size, shop.has_hooks, shop.has_metrics = 4, True, False
    shop.has_new_sizes = False
    await shop.open()
    Operators(shop)
    process = simulation.processes["operator"]
    process.crash_after_write(simulation.seed)
    began = process.writes
    await shop.release("app:2", partition=0)
    await asyncio.sleep(40)
    await shop.release("app:3")
    await shop.arrives("app:3")
    await shop.release("app:4", revert=True, partition=0)
    await asyncio.sleep(40)
    await shop.remove()
    await shop.until("the rollout is gone", lambda: not shop.rollouts())
    await shop.until("everything is as before", lambda: shop.all_run("app:3"))
    simulation.counts["writes", "operator"] += process.writes - began
    for line in shop.end_state():
        simulation.counts["end", line] += 1


class Operators:
    """The operators of a shop, which share a lease if there are several."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._simulation = shop.simulation
        for name in shop.operators:
            self._simulation.start(name, self._operator, exits_on=(Crashed,))

    async def _operator(self, process: Process) -> None:
        operate = partial(self._operate, process)
        if len(self._shop.operators) == 1:
            await operate(process.link(SERVER), None)
        else:
            await elected(process, SERVER, NAMESPACE, operate)

    async def _operate(self, process: Process, transport: Transport, election: Election | None) -> None:
        options = OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,), batches=True)
        manager = Manager(component="operator", clock=process.clock, rng=process.rng("manager"), leader=election)
        async with manager:
            operator = Operator(
                await manager.connect(SERVER, transport),
                options,
                clock=process.clock,
                rng=process.rng("operator"),
                registry=CollectorRegistry(),
                outbound=self._shop.outside,
            )
            for controller in operator.acting:
                manager.add_controller(controller)
            await manager.run(signals=False)
