"""Bindings: the controller that makes Works of bindings of one kind, so that all clusters together keep one budget.

Wakes at a change of a binding, of its resource, and of what a cluster reports. The ledger is written into the binding
before any Work is: see `plan.aligning.binding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import LEDGER
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.works import Work
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.controllers.align.binding_kinds import BindingKind
from kedge.controllers.align.starting_pods import StartingPods, next_look
from kedge.controllers.align.templates import Templates, kind_of
from kedge.controllers.align.wait_events import WaitEvents
from kedge.controllers.align.work_writes import MANAGER, WorkWrites
from kedge.controllers.kinds import Kinds
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of, untyped
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch, difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.aligning.aggregating import aggregated_items
from kedge.plan.aligning.binding import BindingInput, BindingPlan, plan_binding
from kedge.plan.aligning.binding_conditions import with_conditions
from kedge.plan.aligning.differing import replicas_differ
from kedge.plan.aligning.evicting import remaining_tasks, seconds_until_end
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.aligning.names import work_name
from kedge.plan.aligning.observed import binding_input, cluster_of, resource_of
from kedge.plan.aligning.overriding import AnyOverridePolicy
from kedge.plan.aligning.refusing import refusal, work_name_of
from kedge.plan.aligning.template_status import is_news, template_status
from kedge.plan.aligning.workload_kinds import WORKLOAD_KINDS, is_counted
from kedge.plan.fields import text

REPORT_EVERY: Final = 1.0
"""Seconds between two reports of what all clusters say together: each says something new many times a second."""
AGAIN: Final = 15.0
"""Seconds after which it is asked again for a kind that is not served."""


class Bindings:
    """The controller of bindings of one kind."""

    def __init__(self, cluster: Cluster, kind: BindingKind, *, clock: Clock) -> None:
        self._kind = kind
        self._clock = clock
        self._name = cluster.name
        self._client = cluster.client
        self._kinds = Kinds(cluster.client)
        self._wait_events = WaitEvents(cluster.events)
        self._writes = WorkWrites(cluster.client, kind)
        self._reports = Throttle(REPORT_EVERY)
        self._starting = StartingPods()
        self._bindings = kind.cache(cluster)
        self._works = cluster.cache(Work, indexes={"binding": self._binding_of, "name": _names})
        self._members = cluster.cache(Member)
        self._overrides = cluster.cache(OverridePolicy)
        self._cluster_overrides = cluster.cache(ClusterOverridePolicy)
        metadata = {
            (one.group, one.kind): cluster.cache(metadata_of(one), optional=True)
            for one in WORKLOAD_KINDS
            if one.namespaced == kind.type.resource.namespaced
        }
        self._templates = Templates(cluster.client, self._kinds, metadata)
        sources: list[Source] = [
            cluster.watch(self._bindings, to=self._alike),
            cluster.watch(self._works, to=self._of_work),
            cluster.watch(self._members, to=self._everyone),
            cluster.watch(self._overrides, to=self._everyone),
            cluster.watch(self._cluster_overrides, to=self._everyone),
            *(cluster.watch(cache, to=partial(self._of_template, one)) for (_, one), cache in metadata.items()),
        ]
        self.controller = Controller(kind.plural, self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        binding = self._bindings.get(key.name, key.namespace)
        if binding is None:
            self._wait_events.forget(key)
            self._starting.forget(key)
            return Outcome.done
        meta = binding.metadata
        is_deleting = meta.deletion_timestamp is not None
        if is_deleting and self._kind.finalizer not in meta.finalizers:
            return Outcome.done
        if not is_deleting and (change := self._marks(meta) or self._without_ended_tasks(binding)):
            await self._client.amend(self._kind.type, meta, change, manager=MANAGER)
            return Outcome.not_yet
        works = {cluster_of(one): one for one in self._works.by("binding", str(key))}
        resource = await kind_of(self._kinds, binding)
        if not is_deleting and (problem := self._refusal(binding, resource)):
            await self._refuse(key, binding, works, problem)
            # A kind that is not served may be served again.
            return Outcome.done if resource is not None else Outcome.again(after=AGAIN)
        return await self._align(key, binding, resource, works)

    async def _align(
        self, key: Key, binding: ResourceBinding, resource: Resource | None, works: Mapping[str, Work]
    ) -> Outcome:
        """Write what the clusters are to have now, and report what they wait for."""
        is_deleting = binding.metadata.deletion_timestamp is not None
        seen = await self._observed(binding, resource, works)
        reports = {name: one.report for name, one in seen.clusters.items()}
        starting = self._starting.left(key, reports, seen.template or {})
        plan = plan_binding(replace(seen, starting=starting.keys()))
        self._wait_events.record(key, binding, plan)
        self._wait_events.record_replicas(key, binding, replicas_differ(binding, seen.template))
        binding = await self._with_ledger(binding, plan)
        await self._writes.write(binding, plan, works, text(seen.template, "metadata", "uid"))
        if is_deleting and not works:
            rest = [one for one in binding.metadata.finalizers if one != self._kind.finalizer]
            change = {"metadata": {"finalizers": rest}}
            await self._client.amend(self._kind.type, binding.metadata, change, manager=MANAGER)
            return Outcome.done
        if wait := self._reports.remaining(key):
            return Outcome.again(after=wait)
        has_reported = await self._report(binding, works, plan)
        if await self._count(binding, resource, seen, plan, works) or has_reported:
            self._reports.restart(key)
        looks = next_look(starting, plan.members), seconds_until_end(binding.spec, self._clock.now())
        due = min((one for one in looks if one is not None), default=None)
        return Outcome.done if due is None else Outcome.again(after=due)

    async def _with_ledger(self, binding: ResourceBinding, plan: BindingPlan) -> ResourceBinding:
        """The binding, with what is granted written on it: before any Work asks for it."""
        ledger = ledger_text(plan.ledger)
        if ledger == binding.metadata.annotations.get(LEDGER, "{}"):
            return binding
        change = {"metadata": {"annotations": {LEDGER: ledger}}}
        return await self._client.amend(self._kind.type, binding.metadata, change, manager=MANAGER)

    def _marks(self, meta: ObjectMeta) -> dict[str, Any]:
        """What a binding is marked with, whoever wrote it, as far as it is not yet."""
        change: dict[str, Any] = {}
        if self._kind.finalizer not in meta.finalizers:
            change["finalizers"] = [*meta.finalizers, self._kind.finalizer]
        if not meta.labels.get(self._kind.permanent_id):
            change["labels"] = {self._kind.permanent_id: meta.uid}
        return {"metadata": change} if change else {}

    def _without_ended_tasks(self, binding: ResourceBinding) -> dict[str, Any]:
        """The change that leaves out eviction tasks that have ended; empty if none has."""
        tasks = remaining_tasks(binding.spec, binding.status, self._clock.now())
        if tasks == binding.spec.graceful_eviction_tasks:
            return {}
        return {"spec": {"gracefulEvictionTasks": to_builtins(tasks)}}

    # Refusing

    def _refusal(self, binding: ResourceBinding, resource: Resource | None) -> str:
        """Why nothing is done about a binding; empty if something is."""
        name = work_name_of(binding)
        return refusal(binding, resource, self._bindings.by("work", name), self._works.by("name", name))

    async def _refuse(self, key: Key, binding: ResourceBinding, works: Mapping[str, Work], problem: str) -> None:
        """Say why nothing is done about a binding. What runs stays as it is."""
        plan = BindingPlan(problems=(problem,))
        self._wait_events.record(key, binding, plan)
        await self._report(binding, works, plan)

    # Reporting

    async def _report(self, binding: ResourceBinding, works: Mapping[str, Work], plan: BindingPlan) -> bool:
        """What the clusters report and wait for, on the binding. Returns whether that was news."""
        items = aggregated_items({name: work for name, work in works.items() if self._members.get(name) is not None})
        conditions = with_conditions(
            binding.status.conditions,
            binding.spec,
            items,
            plan,
            generation=binding.metadata.generation,
            now=self._clock.now(),
        )
        status = replace(binding.status, aggregated_status=items, conditions=conditions)
        if status == binding.status:
            return False
        change = difference(to_builtins(binding.status), to_builtins(status))
        await self._client.amend(
            self._kind.type, binding.metadata, {"status": change}, manager=MANAGER, subresource="status"
        )
        return True

    async def _count(
        self,
        binding: ResourceBinding,
        kind: Resource | None,
        seen: BindingInput,
        plan: BindingPlan,
        works: Mapping[str, Work],
    ) -> bool:
        """The pods of all clusters, on the resource. Returns whether that was news."""
        if kind is None or seen.template is None or not is_counted(seen.template):
            return False
        found = template_status(seen.template, works, binding.spec.clusters, plan) or {}
        if not is_news(seen.template, found):
            return False
        bound = resource_of(binding)
        await self._client.patch(
            untyped(kind),
            bound.name,
            MergePatch({"status": found}),
            bound.namespace or None,
            uid=text(seen.template, "metadata", "uid"),
            manager=MANAGER,
            subresource="status",
        )
        return True

    # Observing

    async def _observed(
        self, binding: ResourceBinding, kind: Resource | None, works: Mapping[str, Work]
    ) -> BindingInput:
        overrides: tuple[AnyOverridePolicy, ...] = (*self._cluster_overrides.all(), *self._overrides.all())
        members = {one.metadata.name: one for one in self._members.all()}
        template = await self._templates.read(binding, kind) if kind is not None else None
        return binding_input(binding, template, works, members, overrides)

    # Waking

    def _binding_of(self, work: Work) -> Iterable[str]:
        key = self._kind.named_in(work.metadata.annotations, self._name)
        return () if key is None else (str(key),)

    def _of_work(self, seen: WatchedObject[Work]) -> Iterable[Key]:
        key = self._kind.named_in(seen.meta.annotations, seen.cluster)
        return (*(() if key is None else (key,)), *self._of_works_called(seen.cluster, seen.meta.name))

    def _alike(self, seen: WatchedObject[ResourceBinding]) -> Iterable[Key]:
        """The binding, and others of the same resource."""
        return (seen.key, *self._of_works_called(seen.cluster, work_name_of(seen.object)))

    def _of_template(self, kind: str, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
        return self._of_works_called(seen.cluster, work_name(kind, seen.meta.name, seen.meta.namespace or ""))

    def _of_works_called(self, cluster: str, name: str) -> Iterable[Key]:
        """The bindings whose Works have this name."""
        return [Key(cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.by("work", name)]

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]


def _names(work: Work) -> Iterable[str]:
    return (work.metadata.name,)
