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

from kedge.api.karmada.bindings import GracefulEvictionTask, ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import (
    APPLIED_CLUSTER_OVERRIDES,
    APPLIED_OVERRIDES,
    EXECUTION_FINALIZER,
    LEDGER,
)
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.works import Work
from kedge.api.resource import Resource
from kedge.controllers.align.binding_kinds import BindingKind
from kedge.controllers.align.starting_pods import StartingPods, next_look
from kedge.controllers.align.wait_events import WaitEvents
from kedge.controllers.gather import gather
from kedge.controllers.kinds import Kinds
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch, difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.aligning.aggregating import aggregated_items, template_status
from kedge.plan.aligning.binding import BindingInput, BindingPlan, plan_binding
from kedge.plan.aligning.binding_conditions import with_conditions
from kedge.plan.aligning.evicting import remaining_tasks, seconds_until_end
from kedge.plan.aligning.ledger_text import ledger_text
from kedge.plan.aligning.names import binding_name, work_name, work_namespace
from kedge.plan.aligning.observed import binding_input, cluster_of
from kedge.plan.aligning.overriding import AnyOverridePolicy
from kedge.plan.aligning.work_spec import shown_spec, work_spec
from kedge.plan.aligning.workload_kinds import WORKLOAD_KINDS, is_counted
from kedge.plan.fields import Object, at, text

MANAGER: Final = "kedge-align"
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
        self._reports = Throttle(REPORT_EVERY)
        self._starting = StartingPods()
        self._bindings = cluster.cache(kind.type)
        self._works = cluster.cache(Work, indexes={"binding": self._binding_of})
        self._members = cluster.cache(Member)
        self._overrides = cluster.cache(OverridePolicy)
        self._cluster_overrides = cluster.cache(ClusterOverridePolicy)
        self._metadata = {
            (one.group, one.kind): cluster.cache(metadata_of(one), optional=True)
            for one in WORKLOAD_KINDS
            if one.namespaced == kind.type.resource.namespaced
        }
        self._templates: dict[str, Object] = {}
        """Workloads as they were read last, by the uid of their binding."""
        sources: list[Source] = [
            cluster.watch(self._bindings),
            cluster.watch(self._works, to=self._of_work),
            cluster.watch(self._members, to=self._everyone),
            cluster.watch(self._overrides, to=self._everyone),
            cluster.watch(self._cluster_overrides, to=self._everyone),
            *(cluster.watch(cache, to=partial(_of_template, one)) for (_, one), cache in self._metadata.items()),
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
        if self._kind.finalizer not in meta.finalizers:
            if is_deleting:
                return Outcome.done
            change = {"metadata": {"finalizers": [*meta.finalizers, self._kind.finalizer]}}
            await self._client.amend(self._kind.type, meta, change, manager=MANAGER)
            return Outcome.not_yet
        if not is_deleting and (tasks := self._ended_tasks(binding)) is not None:
            change = {"spec": {"gracefulEvictionTasks": to_builtins(tasks)}}
            await self._client.amend(self._kind.type, meta, change, manager=MANAGER)
            return Outcome.not_yet
        works = {cluster_of(one): one for one in self._works.by("binding", str(key))}
        if await self._resource(binding) is None and not is_deleting:
            # A kind that is not served may be served again: what runs of it stays as it is.
            bound = binding.spec.resource
            missing = f"the hub serves no {bound.kind} of {bound.api_version}: what runs stays as it is"
            self._wait_events.record(key, binding, BindingPlan(problems=(missing,)))
            return Outcome.again(after=AGAIN)
        seen = await self._observed(binding, works)
        reports = {name: one.report for name, one in seen.clusters.items()}
        starting = self._starting.left(key, reports, seen.template or {})
        plan = plan_binding(replace(seen, starting=starting.keys()))
        self._wait_events.record(key, binding, plan)
        ledger = ledger_text(plan.ledger)
        if ledger != meta.annotations.get(LEDGER, "{}"):
            change_ledger = {"metadata": {"annotations": {LEDGER: ledger}}}
            binding = await self._client.amend(self._kind.type, meta, change_ledger, manager=MANAGER)
            meta = binding.metadata
        await self._write(binding, plan, works)
        if is_deleting and not works:
            rest = [one for one in meta.finalizers if one != self._kind.finalizer]
            await self._client.amend(self._kind.type, meta, {"metadata": {"finalizers": rest}}, manager=MANAGER)
            return Outcome.done
        if wait := self._reports.remaining(key):
            return Outcome.again(after=wait)
        if await self._report(binding, seen, plan, works):
            self._reports.restart(key)
        looks = next_look(starting, plan.members), seconds_until_end(binding.spec, self._clock.now())
        due = min((one for one in looks if one is not None), default=None)
        return Outcome.done if due is None else Outcome.again(after=due)

    def _ended_tasks(self, binding: ResourceBinding) -> tuple[GracefulEvictionTask, ...] | None:
        """The tasks that are left when others have ended; None if none has."""
        tasks = remaining_tasks(binding.spec, binding.status, self._clock.now())
        return None if tasks == binding.spec.graceful_eviction_tasks else tasks

    async def _report(
        self, binding: ResourceBinding, seen: BindingInput, plan: BindingPlan, works: Mapping[str, Work]
    ) -> bool:
        """What the clusters report and wait for, on the binding; and their pods, on its resource.

        Returns whether that was news.
        """
        items = aggregated_items({name: work for name, work in works.items() if name in seen.clusters})
        conditions = with_conditions(
            binding.status.conditions,
            binding.spec,
            items,
            plan,
            generation=binding.metadata.generation,
            now=self._clock.now(),
        )
        status = replace(binding.status, aggregated_status=items, conditions=conditions)
        is_news = status != binding.status
        if is_news:
            change = difference(to_builtins(binding.status), to_builtins(status))
            await self._client.amend(
                self._kind.type, binding.metadata, {"status": change}, manager=MANAGER, subresource="status"
            )
        if seen.template is None or not is_counted(seen.template):
            return is_news
        counted = template_status(seen.template, works, len(binding.spec.clusters))
        if counted is None or {name: at(seen.template, "status", name) for name in counted} == counted:
            return is_news
        resource = await self._resource(binding)
        if resource is not None:
            await self._client.patch(
                untyped(resource),
                binding.spec.resource.name,
                MergePatch({"status": counted}),
                binding.spec.resource.namespace or None,
                uid=text(seen.template, "metadata", "uid"),
                manager=MANAGER,
                subresource="status",
            )
        return True

    # Observing

    async def _observed(self, binding: ResourceBinding, works: Mapping[str, Work]) -> BindingInput:
        overrides: tuple[AnyOverridePolicy, ...] = (*self._cluster_overrides.all(), *self._overrides.all())
        members = {one.metadata.name: one for one in self._members.all()}
        return binding_input(binding, await self._template(binding), works, members, overrides)

    async def _template(self, binding: ResourceBinding) -> Object | None:
        """The resource; read again only if its metadata, which is watched, says that it has changed."""
        bound, resource, uid = binding.spec.resource, await self._resource(binding), binding.metadata.uid
        if resource is None:
            return None
        cache, known = self._metadata.get((resource.group, resource.kind)), self._templates.pop(uid, None)
        seen = cache.get(bound.name, bound.namespace or None) if cache is not None else None
        if seen is None or text(known, "metadata", "resourceVersion") != seen.metadata.resource_version:
            try:
                known = await self._client.get(untyped(resource), bound.name, bound.namespace or None)
            except NotFound:
                return None
        if known is not None and cache is not None and not binding.metadata.deletion_timestamp:
            self._templates[uid] = known
        return known

    async def _resource(self, binding: ResourceBinding) -> Resource | None:
        return await self._kinds.find(binding.spec.resource.api_version, binding.spec.resource.kind)

    # Writing

    async def _write(self, binding: ResourceBinding, plan: BindingPlan, works: Mapping[str, Work]) -> None:
        calls = [
            partial(self._write_work, binding, plan, name, manifest, works.get(name))
            for name, manifest in plan.manifests.items()
        ]
        gone = [partial(self._client.remove, Work, works[name].metadata) for name in plan.delete]
        await gather([*calls, *gone])

    async def _write_work(
        self, binding: ResourceBinding, plan: BindingPlan, cluster: str, manifest: Object, there: Work | None
    ) -> None:
        made = plan.overridden.get(cluster)
        notes = {
            **self._kind.notes(binding.metadata),
            APPLIED_OVERRIDES: _listed(made.policies) if made is not None else None,
            APPLIED_CLUSTER_OVERRIDES: _listed(made.cluster_policies) if made is not None else None,
        }
        spec = work_spec(binding.spec, cluster, manifest)
        if there is None:
            held_back = {**spec, "suspendDispatching": True}
            created = await self._client.create(
                Work, self._new_work(binding, cluster, notes, held_back), manager=MANAGER
            )
            if not spec["suspendDispatching"]:
                await self._client.amend(
                    Work, created.metadata, {"spec": {"suspendDispatching": None}}, manager=MANAGER
                )
            return
        before = {name: there.metadata.annotations.get(name) for name in notes}
        change: dict[str, Any] = {"metadata": {"annotations": difference(before, notes)}}
        if shown_spec(there) != spec:
            change["spec"] = spec
        elif before == notes:
            return
        await self._client.amend(Work, there.metadata, change, manager=MANAGER)

    def _new_work(
        self, binding: ResourceBinding, cluster: str, notes: Mapping[str, str | None], spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        bound, own_id = binding.spec.resource, binding.metadata.labels.get(self._kind.permanent_id)
        meta = {
            "name": work_name(bound.kind, bound.name, bound.namespace),
            "namespace": work_namespace(cluster),
            "labels": {self._kind.permanent_id: own_id} if own_id else {},
            "annotations": {name: note for name, note in notes.items() if note is not None},
            "finalizers": [EXECUTION_FINALIZER],
        }
        return {"metadata": meta, "spec": {name: value for name, value in spec.items() if value is not None}}

    def _binding_of(self, work: Work) -> Iterable[str]:
        key = self._kind.named_in(work.metadata.annotations, self._name)
        return () if key is None else (str(key),)

    def _of_work(self, seen: WatchedObject[Work]) -> Iterable[Key]:
        key = self._kind.named_in(seen.meta.annotations, seen.cluster)
        return () if key is None else (key,)

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]


def _listed(names: tuple[str, ...]) -> str | None:
    return ",".join(names) or None


def _of_template(kind: str, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
    yield Key(seen.cluster, seen.meta.namespace, binding_name(kind, seen.meta.name))
