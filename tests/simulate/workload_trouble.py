"""Workload trouble: pods that die, crash, are never ready or find no node, and nodes that go; and their recovery.

None of it is anybody's decision: it happens on a member, to some or all pods of what was placed there, for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random

from msgspec import Struct

from kedge.api.pods import Node, Pod
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.simulate.simulation import Simulation
from simulate.fleets import NAMESPACE, NODES, Shape
from simulate.pod_trouble import CRASH_LOOP, NEVER_READY

KINDS = ("die", "crash", "never ready", "pending", "node")
Trouble = Callable[[str], Awaitable[None]]


class WorkloadTrouble:
    """What befalls the pods of what is placed, on any member."""

    def __init__(self, simulation: Simulation, rng: Random, kinds: Sequence[str]) -> None:
        self._simulation = simulation
        self._rng = rng
        self._kinds = kinds

    async def days(self, members: Sequence[str], days: int, apart: float) -> None:
        """So often something befalls a member, if anything does here. Several may be in trouble; in the end none is."""
        async with asyncio.TaskGroup() as group:
            for _ in range(days if self._kinds else 0):
                await asyncio.sleep(self._rng.uniform(0.0, apart))
                group.create_task(self.befall(self._rng.choice(members), self._rng.choice(self._kinds)))

    async def befall(self, member: str, kind: str) -> None:
        """One thing that goes wrong, and its end."""
        does: Mapping[str, Trouble] = {
            "die": self._die,
            "crash": lambda name: self._mark(name, CRASH_LOOP),
            "never ready": lambda name: self._mark(name, NEVER_READY),
            "pending": self._pend,
            "node": self._lose_node,
        }
        self._simulation.counts["workload trouble", kind] += 1
        self._simulation.trace.remark(member, f"workload trouble: {kind}")
        await does[kind](member)

    async def break_for_good(self, member: str) -> None:
        """A pod of this member is never ready any more."""
        await self._annotate(member, (await self._pods(member))[:1], {NEVER_READY: "true"})

    async def mend(self, member: str) -> None:
        """Whatever was broken for good works again."""
        await self._annotate(member, await self._pods(member), {NEVER_READY: None})

    async def relieve(self, member: str) -> None:
        """Whatever befell this member is over."""
        await make_nodes(self._client(member), NODES, self._simulation.clock)
        await self._cordon(member, False)
        await self._annotate(member, await self._pods(member), {CRASH_LOOP: None, NEVER_READY: None})

    async def _die(self, member: str) -> None:
        """Pods are deleted; others take their place."""
        await self._delete(member, await self._some(member))

    async def _mark(self, member: str, annotation: str) -> None:
        """Pods do not work for a while, and then do again."""
        marked = await self._some(member)
        await self._annotate(member, marked, {annotation: "true"})
        await self._a_while()
        await self._annotate(member, marked, {annotation: None})

    async def _pend(self, member: str) -> None:
        """No node takes pods, and some have to find one."""
        await self._cordon(member, True)
        await self._delete(member, await self._some(member))
        await self._a_while()
        await self._cordon(member, False)

    async def _lose_node(self, member: str) -> None:
        """A node is gone with its pods; another of its name comes later."""
        client, name = self._client(member), f"node-{self._rng.randint(1, NODES)}"
        with suppress(NotFound):
            await client.delete(Node, name)
        await self._delete(member, [pod for pod in await self._pods(member) if pod.spec.node_name == name])
        await self._a_while()
        await make_nodes(client, NODES, self._simulation.clock)

    # How

    async def _a_while(self) -> None:
        await asyncio.sleep(self._rng.choice([self._rng.uniform(1.0, 10.0), self._rng.uniform(20.0, 60.0)]))

    async def _pods(self, member: str) -> list[Pod]:
        found = (await self._client(member).list(Pod, NAMESPACE)).items
        return sorted(found, key=lambda pod: pod.metadata.name)

    async def _some(self, member: str) -> list[Pod]:
        """One of the pods, or all of them."""
        pods = await self._pods(member)
        return pods if not pods or self._rng.random() < 0.4 else [self._rng.choice(pods)]

    async def _delete(self, member: str, pods: Sequence[Pod]) -> None:
        for pod in pods:
            with suppress(NotFound):
                await self._client(member).delete(Pod, pod.metadata.name, NAMESPACE)

    async def _annotate(self, member: str, pods: Sequence[Pod], annotations: Mapping[str, str | None]) -> None:
        for pod in pods:
            body = MergePatch({"metadata": {"annotations": dict(annotations)}})
            with suppress(NotFound):
                await self._client(member).patch(Pod, pod.metadata.name, body, NAMESPACE)

    async def _cordon(self, member: str, value: bool) -> None:
        for number in range(1, NODES + 1):
            with suppress(NotFound):
                body = MergePatch({"spec": {"unschedulable": value or None}})
                await self._client(member).patch(Node, f"node-{number}", body)

    def _client(self, member: str) -> Client:
        return self._simulation.client(member)


class WorkloadDays(Struct, frozen=True):
    """What the workloads of a run are like, and what befalls them."""

    shape: Shape = Shape()
    kinds: tuple[str, ...] = ()  # nothing, if there are none
    is_network_fine: bool = False


def workload_days(rng: Random, *, share: float) -> WorkloadDays:
    """In such a share of runs one or two kinds of trouble; in half of those it is the only trouble."""
    if rng.random() >= share:
        return WorkloadDays(Shape(rng.choice([1, 1, 1, 2])))
    shape = Shape(rng.choice([1, 2, 3, 3, 5, 10]), rng.choice(["200ms", "3s", "8s"]))
    return WorkloadDays(shape, tuple(rng.sample(KINDS, rng.randint(1, 2))), is_network_fine=rng.random() < 0.5)
