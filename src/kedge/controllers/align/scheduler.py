"""Scheduler: the controller that names the clusters of bindings of one kind, by their placements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import set_condition
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import APPLIED_PLACEMENT
from kedge.controllers.align.binding_kinds import BindingKind
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject, generation_changed
from kedge.plan.aligning.assigning import Assignment, ScheduledReason, assigned, is_scheduled_here

MANAGER: Final = "kedge-scheduler"
_FAILED: Final = (ScheduledReason.error, ScheduledReason.no_cluster_fits)


class Scheduler:
    """The scheduler of bindings of one kind."""

    def __init__(self, cluster: Cluster, kind: BindingKind, *, clock: Clock) -> None:
        self._kind = kind
        self._client = cluster.client
        self._events = cluster.events
        self._clock = clock
        self._bindings = kind.cache(cluster)
        self._members = cluster.cache(Member)
        sources: list[Source] = [
            cluster.watch(self._bindings, when=generation_changed),
            cluster.watch(self._members, to=self._everyone),
        ]
        self.controller = Controller(f"{kind.plural}-scheduler", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        binding = self._bindings.get(key.name, key.namespace)
        if binding is None or binding.metadata.deletion_timestamp is not None or not is_scheduled_here(binding):
            return Outcome.done
        found = assigned(binding, self._members.all())
        change = _change(binding, found)
        is_moved = "spec" in change
        if change:
            binding = await self._client.amend(self._kind.type, binding.metadata, change, manager=MANAGER)
        if is_moved:
            names = ", ".join(f"{one.name}: {one.replicas}" for one in binding.spec.clusters)
            self._events.normal(binding, "ScheduleBindingSucceed", f"Binding has been scheduled: {names}")
        await self._report(binding, found, is_moved=is_moved)
        return Outcome.done

    async def _report(self, binding: ResourceBinding, found: Assignment, *, is_moved: bool) -> None:
        now, generation = self._clock.now(), binding.metadata.generation or 0
        conditions = set_condition(binding.status.conditions, found.condition(generation, now))
        status = replace(binding.status, conditions=conditions, scheduler_observed_generation=generation)
        if is_moved or found.is_triggered or status.last_scheduled_time is None:
            status = replace(status, last_scheduled_time=now)
        if conditions != binding.status.conditions and found.reason in _FAILED:
            self._events.warning(binding, "ScheduleBindingFailed", found.message)
        if status != binding.status:
            change = {"status": difference(to_builtins(binding.status), to_builtins(status))}
            await self._client.amend(self._kind.type, binding.metadata, change, manager=MANAGER, subresource="status")

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]


def _change(binding: ResourceBinding, found: Assignment) -> dict[str, Any]:
    """What to write of an assignment: nothing if it is as it was."""
    change: dict[str, Any] = {}
    if found.clusters is not None and found.clusters != binding.spec.clusters:
        change["spec"] = {"clusters": [{"name": one.name, "replicas": one.replicas} for one in found.clusters]}
    if found.placement and binding.metadata.annotations.get(APPLIED_PLACEMENT) != found.placement:
        change["metadata"] = {"annotations": {APPLIED_PLACEMENT: found.placement}}
    return change
