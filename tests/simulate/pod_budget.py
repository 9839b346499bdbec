"""A placement with a podBudget, from seeds: hub and agents have bad days while releases go out; judged from pods.

    PYTHONPATH=tests python -m kedge.simulate simulate.pod_budget:releases --seed 1

The promise: from when all pods are there, of all pods of all members together never more than the budget are not
available. Nothing but good releases happens, so every pod that is missing was taken away by one.
"""

from __future__ import annotations

import asyncio
from random import Random

import msgspec

from kedge.api.pods import Pod
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.plan.workloads.pods import is_active, is_ready
from kedge.simulate.faults import NONE
from kedge.simulate.simulation import Simulation
from simulate.fleets import NAMESPACE, Fleet, Shape, placement_of
from simulate.weather import weather

MEMBERS, REPLICAS = 4, 4  # a Deployment takes a quarter of its pods away: one
ALL = MEMBERS * REPLICAS


class PodCounter:
    """The pods of all members, from their own stores, at every write."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._pods: dict[tuple[str, str], Pod] = {}
        self.is_judging = False
        self.fewest = ALL

    def changed(self, server: str, kind: Kind, change: Change) -> str:
        """Note a write, and say what is wrong after it; nothing if it is all right."""
        if kind.resource.plural != "pods" or change.version.namespace != NAMESPACE:
            return ""
        key = server, change.version.name
        if change.type == "DELETED":
            self._pods.pop(key, None)
        else:
            self._pods[key] = msgspec.json.decode(change.version.body, type=Pod)
        if not self.is_judging:
            return ""
        self.fewest = min(self.fewest, self.available)
        return "" if ALL - self.available <= self._budget else f"{ALL - self.available} are not available"

    @property
    def available(self) -> int:
        return sum(is_active(pod) and is_ready(pod) for pod in self._pods.values())

    def images(self) -> list[str]:
        ready = (pod for pod in self._pods.values() if is_active(pod) and is_ready(pod))
        return [str((pod.spec.containers or ())[0].image) for pod in ready]


async def releases(simulation: Simulation) -> None:
    """Releases while everybody has bad days; then calm, and the last one is everywhere."""
    if simulation.faults == NONE:
        simulation.faults = weather(simulation.rng("weather"))
    rng = simulation.rng("releases")
    budget = rng.choice([1, 2, 3])
    fleet, pods = Fleet(simulation, MEMBERS, shape=Shape(REPLICAS, "2s")), PodCounter(budget)
    simulation.always(f"at most {budget} of {ALL} pods are not available", pods.changed)
    await fleet.install(lambda _: None)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "podBudget": budget}}
    await fleet.place(Random(1), lambda: placement_of({"placementType": "PickAll"}, strategy))
    await simulation.until("all pods are available", lambda: pods.available == ALL)
    await asyncio.sleep(120)
    pods.is_judging = True
    trouble = [fleet.bad_days(process) for process in simulation.processes.values()]
    await asyncio.gather(_release(fleet, rng), *trouble)
    await fleet.end_faults()
    await fleet.release("app:last")
    await simulation.until("the last release is everywhere", lambda: pods.images() == ["app:last"] * ALL)
    simulation.counts["fewest pods", f"{ALL - pods.fewest} of {budget}"] += 1


async def _release(fleet: Fleet, rng: Random, number: int = 5) -> None:
    for count in range(number):
        await fleet.release(f"app:{count + 2}")
        await asyncio.sleep(rng.uniform(0.0, 90.0))
