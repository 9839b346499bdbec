"""Group runner: simulates what the operator does about a rollout group, with the real controllers, in virtual time.

    preview = run_group_preview(group, changed, GroupAssumptions(times=times))

The StatefulSet controller and the kubelet are those of the embedded cluster. Runs an event loop of its own, so it is
called from outside of any. The same group, change and assumptions give the same result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry

from kedge.api.crd import Crd
from kedge.api.crds import zone_crds
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.embedded.workloads.everything import Parts, add_workloads
from kedge.embedded.workloads.kubelet import Kubelet
from kedge.embedded.workloads.scheduler import Binding
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.embedded.workloads.view import View
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.operator_role import Operator, OperatorOptions
from kedge.plan.previewing.durations import Durations
from kedge.plan.previewing.group_preview import GroupPreview
from kedge.plan.workloads.pods import is_active
from kedge.plan.zoning.budget_spec import ZoneBudget, read_budget
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import Loop
from kedge.simulate.preview.group_observer import GroupObserver
from kedge.simulate.preview.group_state import GroupState
from kedge.simulate.preview.rollout_observer import Progress
from kedge.simulate.preview.virtual_zones import NODE, VirtualZones
from kedge.simulate.preview.zone_services import DownscaleWebhooks, PreparedPods

DAY: Final = 24 * 3600.0


class GroupAssumptions(Struct, frozen=True):
    """What a preview assumes."""

    times: Durations = Durations()
    """How long pods take, by the names of their zones."""
    within: float = DAY
    """Seconds after which what has not happened is taken not to happen."""
    seed: int = 1


def run_group_preview(
    group: GroupState,
    changed: Sequence[Untyped],
    assumptions: GroupAssumptions,
    progress: Progress = lambda _: None,
) -> GroupPreview:
    """What happens to the group. Raises `ApiError` if the change is refused."""
    definitions = zone_crds()  # reads our sources, which must not happen while a loop runs
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(_simulate(group, changed, assumptions, definitions, progress))


async def _simulate(
    group: GroupState,
    changed: Sequence[Untyped],
    assumptions: GroupAssumptions,
    definitions: Sequence[Crd],
    progress: Progress,
) -> GroupPreview:
    clock, rng = LoopClock(asyncio.get_running_loop(), group.taken), Random(f"group preview {assumptions.seed}")
    webhooks = DownscaleWebhooks(clock)
    cluster = EmbeddedCluster("cluster", clock=clock, rng=child(rng), outbound=webhooks)
    zones = VirtualZones(cluster, clock, child(rng), assumptions.times, webhooks)
    cluster.start()
    try:
        await zones.load(group, definitions, changed)
        async with _running(cluster, group, clock, rng) as observer:
            return await observer.preview(assumptions.within, _quiet_seconds(group, changed, assumptions), progress)
    finally:
        await zones.client.close()
        cluster.stop()


@asynccontextmanager
async def _running(
    cluster: EmbeddedCluster, group: GroupState, clock: Clock, rng: Random
) -> AsyncIterator[GroupObserver]:
    """Runs the workloads of a cluster and the operator; yields the observer."""
    async with (
        Manager(component="cluster", clock=clock, rng=child(rng), grace=1.0) as workloads,
        Manager(component="operator", clock=clock, rng=child(rng), grace=1.0) as manager,
    ):
        add_workloads(
            workloads, await workloads.connect("cluster", cluster.transport(), limiter=Limiter(rate=0)), _PARTS
        )
        connection = await manager.connect("cluster", cluster.transport(), limiter=Limiter(rate=0))
        operator = Operator(
            connection,
            OperatorOptions(namespace=group.namespace, namespaces=(group.namespace,)),
            clock=clock,
            rng=child(rng),
            registry=CollectorRegistry(),
            outbound=PreparedPods(clock),
        )
        for controller in operator.acting:
            manager.add_controller(controller)
        observer = GroupObserver(connection, group, clock=clock)
        running = [asyncio.create_task(one.run(signals=False)) for one in (workloads, manager)]
        try:
            yield observer
        finally:
            workloads.stop()
            manager.stop()
            await asyncio.gather(*running)


class OneNode:
    """Binds every pod to the one node, whatever it asks of one."""

    def __init__(self, view: View) -> None:
        self._view = view

    def sources(self) -> Iterable[Source]:
        return (self._view.itself(Pod),)

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._view.pods.get(key.name, key.namespace)
        if pod is not None and not pod.spec.node_name and not pod.spec.scheduling_gates and is_active(pod):
            meta = ObjectMeta(name=key.name, namespace=key.namespace, uid=pod.metadata.uid)
            binding = Binding(metadata=meta, target={"apiVersion": "v1", "kind": "Node", "name": NODE})
            await self._view.client.create(Binding, binding, key.namespace, name=key.name, subresource="binding")
        return Outcome.done


_PARTS: Final[Parts] = (("statefulset", StatefulSets), ("node", OneNode), ("kubelet", Kubelet))


def _quiet_seconds(group: GroupState, changed: Sequence[Untyped], assumptions: GroupAssumptions) -> float:
    """Seconds after which nothing more is to be expected: longer than any pod takes, or any budget delays."""
    slowest = [assumptions.times.of(one["metadata"]["name"]).seconds for one in (*group.sets, *changed)]
    budgets = [read_budget(one) for one in (*group.others, *changed)]
    delays = [one.delay.total_seconds() for one in budgets if isinstance(one, ZoneBudget)]
    return 2 * max((*slowest, *delays), default=0.0)
