"""A rollout's traffic, step by step: what its controller does with a route, and nothing else of it."""

from __future__ import annotations

from kedge.api.oam.rollout_plan import RolloutPlan, Traffic
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.controllers.batch.routes import Routes
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.plan.batching.traffic import (
    TrafficStep,
    problem_wait,
    remembered_ref,
    restore_step,
    traffic_step,
    with_remembered,
)
from kedge.plan.fields import Object
from kedge.plan.traffic.routes import RouteProblem
from kedge.plan.traffic.wait_text import wait_text

MOST_STEPS = 10


class TrafficPlay:
    """One rollout: its plan, its status and the routes of its cluster."""

    def __init__(self, client: Client, namespace: str, traffic: Traffic, clock: Clock) -> None:
        self.routes = Routes(client)
        self.plan = RolloutPlan(traffic=traffic)
        self.status = RolloutStatus()
        self._traffic, self._namespace, self._clock = traffic, namespace, clock

    async def step(self, wanted: int) -> TrafficStep:
        """One step towards a share."""
        route = await self.routes.read(self._namespace, self._traffic)
        return await self._act(route, traffic_step(self.plan, self.status, route, wanted, self._clock.now()))

    async def shift(self, wanted: int) -> str:
        """Steps until there is nothing to do but wait: for what, or what is wrong; empty if it is done."""
        for _ in range(MOST_STEPS):
            step = await self.step(wanted)
            if step.remembered is None and step.patch is None:
                return told(step)
        raise AssertionError(f"not done after {MOST_STEPS} steps")

    async def restore(self) -> str:
        """The same, back to what was before."""
        ref = remembered_ref(self.status)
        for _ in range(MOST_STEPS):
            route = await self.routes.read_recorded(self._namespace, ref) if ref is not None else None
            step = await self._act(route, restore_step(self.status, route, self._clock.now()))
            if step.patch is None:
                return told(step)
        raise AssertionError(f"not done after {MOST_STEPS} steps")

    async def _act(self, route: Object | RouteProblem | None, step: TrafficStep) -> TrafficStep:
        if step.remembered is not None:
            self.status = with_remembered(self.status, step.remembered)
        if step.patch is None:
            return step
        assert route is not None
        assert not isinstance(route, RouteProblem)
        problem, ref = await self.routes.write(route, step.patch), remembered_ref(self.status)
        if problem is None:
            return step
        assert ref is not None, "nothing is written before it is recorded"
        return TrafficStep(wait=problem_wait(ref, problem))


def told(step: TrafficStep) -> str:
    """What a step waits for or fails of, in a sentence."""
    return step.failure or (wait_text(step.wait) if step.wait is not None else "")
