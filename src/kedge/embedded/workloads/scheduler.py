"""The scheduler: binds pods to nodes, and says of those it cannot bind why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec import field

from kedge.api.condition import FALSE, find_condition
from kedge.api.meta import ObjectMeta, Value
from kedge.api.pods import Node, Pod, PodCondition
from kedge.api.resource import Resource
from kedge.embedded.workloads import schedule_plan
from kedge.embedded.workloads.pod_writes import as_written, with_condition
from kedge.embedded.workloads.view import NODE, UNBOUND, View
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change, key_of
from kedge.plan.workloads import pods

NAME = "default-scheduler"
GATED = "Scheduling is blocked due to non-empty scheduling gates"


class Binding(Value, frozen=True, gc=False):
    """That a pod shall run on a node: what is posted to `pods/NAME/binding`."""

    resource: ClassVar[Resource] = Resource("", "v1", "Binding", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    target: dict[str, str] = field(default_factory=dict)


class Scheduler:
    """The scheduler of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._events = view.events(NAME)
        self._assumed: dict[Key, str] = {}  # bound just now: the cache may not show it yet
        self._load: Counter[str] = Counter()  # pods by node, as the cache shows them
        self._node_of: dict[tuple[str, str], str] = {}  # of those counted
        view.pods.on_change(self._count)

    def sources(self) -> Iterable[Source]:
        return self._view.itself(Pod), self._view.cluster.watch(self._view.nodes, to=self._waiting)

    async def reconcile(self, key: Key) -> Outcome:
        pod = self._view.pods.get(key.name, key.namespace)
        if pod is None or not _is_ours(pod):
            self._assumed.pop(key, None)
        elif pod.spec.scheduling_gates:
            await self._say(pod, "SchedulingGated", GATED)
        else:
            await self._place(key, pod)
        return Outcome.done

    async def _place(self, key: Key, pod: Pod) -> None:
        nodes = self._view.nodes.all()
        assumed = Counter(self._assumed.values())
        node = schedule_plan.choose(pod, nodes, lambda name: assumed[name] + self._load[name])
        if node is None:
            await self._refuse(pod, schedule_plan.refusal(pod, nodes))
            return
        self._assumed[key] = node
        try:
            await self._bind(pod, node)
        except BaseException:
            self._assumed.pop(key, None)
            raise

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = Binding(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid), target=target)
        await self._view.client.create(
            Binding, binding, meta.namespace, name=meta.name, subresource="binding", manager="kube-scheduler"
        )
        self._events.normal(pod, "Scheduled", f"Successfully assigned {meta.namespace}/{meta.name} to {node}")

    async def _refuse(self, pod: Pod, why: str) -> None:
        if await self._say(pod, "Unschedulable", why):
            self._events.warning(pod, "FailedScheduling", why)

    async def _say(self, pod: Pod, reason: str, message: str) -> bool:
        """Say why it is not bound; False if that is known."""
        old = find_condition(pod.status.conditions, "PodScheduled")
        if old is not None and (old.status, old.reason, old.message) == (FALSE, reason, message):
            return False
        seen = pod.metadata.generation or None
        new = PodCondition(type="PodScheduled", status=FALSE, reason=reason, message=message, observed_generation=seen)
        conditions = with_condition(pod.status.conditions, new, self._view.now())
        status: dict[str, Any] = {"phase": "Pending", "conditions": as_written(conditions)}
        meta = pod.metadata
        await self._view.client.amend(Pod, meta, {"status": status}, subresource="status", manager="kube-scheduler")
        return True

    def _count(self, change: Change[Pod]) -> None:
        """Keep the load of each node: counting anew for every pod would take longer the more there are."""
        pod, key = change.new, key_of(change.object.metadata)
        before = self._node_of.pop(key, None)
        if before is not None:
            self._load[before] -= 1
        if pod is not None and pod.spec.node_name and not pods.is_finished(pod):
            self._node_of[key] = pod.spec.node_name
            self._load[pod.spec.node_name] += 1

    def _waiting(self, seen: WatchedObject[Node]) -> Iterable[Key]:
        """A node that comes, goes or changes wakes every pod that has none."""
        unbound = self._view.pods.by(NODE, UNBOUND)
        return [Key(seen.cluster, pod.metadata.namespace, pod.metadata.name) for pod in unbound]


def _is_ours(pod: Pod) -> bool:
    return not pod.spec.node_name and pods.is_active(pod) and pod.spec.scheduler_name == NAME
