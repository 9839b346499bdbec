"""Beside a Karmada: the controller that aligns what its policies propagate, if they ask for it.

It never writes a Work: Karmada would overwrite it. It writes one OverridePolicy for each binding, with what it keeps of
the binding beside it in the same object, and then lets clusters through by the suspension of the binding's policy. So a
crash between the two is made up for by the next look. See `plan.aligning.beside`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api.condition import Condition
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import BINDING_NAME, BINDING_NAMESPACE
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.karmada.works import Work
from kedge.controllers.align.starting_pods import StartingPods, next_look
from kedge.controllers.align.templates import read_template
from kedge.controllers.align.wait_events import WaitEvents
from kedge.controllers.kinds import Kinds
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.aligning.beside import BesidePlan, beside_input, plan_beside, record_notes
from kedge.plan.aligning.beside_policies import (
    OVERRIDE_PREFIX,
    Policy,
    asks_for_alignment,
    override_name,
    policy_name,
    policy_problem,
)
from kedge.plan.aligning.binding import report_in
from kedge.plan.aligning.binding_conditions import with_aligned, without_aligned
from kedge.plan.aligning.observed import cluster_of
from kedge.plan.fields import Object

MANAGER: Final = "kedge-align"
REPORT_EVERY: Final = 1.0
"""Seconds between two reports of what the clusters of a binding wait for."""


class Observed(Struct, frozen=True):
    """A binding, its policy, and Kedge's own override."""

    binding: ResourceBinding
    policy: Policy
    override: OverridePolicy | None


class Beside:
    """The controller of a Karmada's ResourceBindings whose policies ask to be aligned."""

    def __init__(self, karmada: Cluster, *, clock: Clock) -> None:
        self._clock = clock
        self._client = karmada.client
        self._kinds = Kinds(karmada.client)
        self._wait_events = WaitEvents(karmada.events)
        self._reports = Throttle(REPORT_EVERY)
        self._starting = StartingPods()
        self._bindings = karmada.cache(ResourceBinding)
        self._works = karmada.cache(Work, indexes={"binding": _binding_of})
        self._members = karmada.cache(Member)
        self._overrides = karmada.cache(OverridePolicy)
        self._policies = karmada.cache(PropagationPolicy)
        self._cluster_policies = karmada.cache(ClusterPropagationPolicy)
        sources: list[Source] = [
            karmada.watch(self._bindings),
            karmada.watch(self._works, to=_of_work),
            karmada.watch(self._members, to=self._everyone),
            karmada.watch(self._overrides, to=_of_override),
            karmada.watch(self._policies, to=self._everyone),
            karmada.watch(self._cluster_policies, to=self._everyone),
        ]
        self.controller = Controller("bindings beside a Karmada", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        binding = self._bindings.get(key.name, key.namespace)
        if binding is None or binding.metadata.deletion_timestamp is not None:
            self._wait_events.forget(key)
            self._starting.forget(key)
            return Outcome.done  # its override goes with it
        policy = self._policy(binding)
        if policy is None:
            return Outcome.done
        seen = Observed(binding, policy, self._overrides.get(override_name(binding), key.namespace))
        if not asks_for_alignment(policy):
            self._wait_events.forget(key)
            return await self._let_go(seen)
        problem = policy_problem(policy.spec.resource_selectors, binding.spec)
        template = await self._template(binding) if not problem else {}
        if template is None:
            return Outcome.done
        works = self._works_of(binding)
        starting = self._starting.left(key, {name: report_in(work) for name, work in works.items()}, template)
        planned = BesidePlan(problems=(problem,)) if problem else self._plan(seen, template, works, starting.keys())
        self._wait_events.record(key, binding, planned)
        if not planned.problems:
            await self._write_override(seen, planned)
            names = {one.metadata.name for one in self._members.all()} - set(planned.open)
            await self._suspend(policy, sorted(names))
        if wait := self._reports.remaining(key):
            return Outcome.again(after=wait)
        meta = binding.metadata
        conditions = with_aligned(binding.status.conditions, planned, generation=meta.generation, now=self._clock.now())
        if await self._report(binding, conditions):
            self._reports.restart(key)
        due = next_look(starting, planned.members)
        return Outcome.done if due is None else Outcome.again(after=due)

    def _plan(self, seen: Observed, template: Object, works: Mapping[str, Work], starting: Set[str]) -> BesidePlan:
        """What to write."""
        try:
            observed = beside_input(seen.binding.spec, template, works, self._members.all(), seen.override)
            return plan_beside(replace(observed, starting=starting))
        except ValueError as error:  # a ledger that cannot be read
            return BesidePlan(problems=(str(error),))

    # Observing

    def _policy(self, binding: ResourceBinding) -> Policy | None:
        named = policy_name(binding)
        if named is None:
            return None
        if named.kind is PropagationPolicy:
            return self._policies.get(named.name, named.namespace)
        return self._cluster_policies.get(named.name)

    def _works_of(self, binding: ResourceBinding) -> dict[str, Work]:
        found = self._works.by("binding", _key_text(binding.metadata.namespace, binding.metadata.name))
        return {cluster_of(one): one for one in found}

    async def _template(self, binding: ResourceBinding) -> Object | None:
        return await read_template(self._client, self._kinds, binding)

    # Writing

    async def _write_override(self, seen: Observed, planned: BesidePlan) -> None:
        """The override and what is kept, in one write, of the version that was looked at."""
        bound, meta = seen.binding.spec.resource, seen.binding.metadata
        notes = record_notes(planned.record)
        selector = {"apiVersion": bound.api_version, "kind": bound.kind, "name": bound.name}
        spec = {
            "resourceSelectors": [{**selector, "namespace": bound.namespace}],
            "overrideRules": [_rule(name, values) for name, values in sorted(planned.overrides.items())],
        }
        there = seen.override
        if there is None:
            owner = {"apiVersion": ResourceBinding.resource.api_version, "kind": "ResourceBinding"}
            named = {
                "name": override_name(seen.binding),
                "namespace": meta.namespace,
                "annotations": notes,
                "ownerReferences": [{**owner, "name": meta.name, "uid": meta.uid}],
            }
            await self._client.create(OverridePolicy, {"metadata": named, "spec": spec}, manager=MANAGER)
            return
        known = {name: there.metadata.annotations.get(name) for name in notes}
        if known == notes and to_builtins(there.spec) == to_builtins(msgspec.convert(spec, type(there.spec))):
            return
        change = {"metadata": {"annotations": notes}, "spec": spec}
        await self._client.amend(OverridePolicy, there.metadata, change, manager=MANAGER)

    async def _suspend(self, policy: Policy, names: list[str]) -> None:
        given = policy.spec.suspension
        some = given.dispatching_on_clusters if given is not None else None
        if (list(some.cluster_names) if some is not None else []) == names:
            return
        change: dict[str, Any] = {"dispatchingOnClusters": {"clusterNames": names} if names else None}
        await self._client.amend(type(policy), policy.metadata, {"spec": {"suspension": change}}, manager=MANAGER)

    async def _let_go(self, seen: Observed) -> Outcome:
        """Leave a binding to Karmada alone again, if it was aligned before."""
        if seen.override is not None:
            await self._suspend(seen.policy, [])
            await self._client.remove(OverridePolicy, seen.override.metadata)
        await self._report(seen.binding, without_aligned(seen.binding.status.conditions))
        return Outcome.done

    async def _report(self, binding: ResourceBinding, conditions: tuple[Condition, ...]) -> bool:
        """Conditions of the version that was looked at: those of Karmada are left as they are. Whether that is news."""
        if conditions == binding.status.conditions:
            return False
        change = {"status": {"conditions": to_builtins(conditions)}}
        await self._client.amend(ResourceBinding, binding.metadata, change, manager=MANAGER, subresource="status")
        return True

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]


def _rule(cluster: str, values: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    plaintext = [{"path": path, "operator": "add", "value": value} for path, value in values]
    return {"targetCluster": {"clusterNames": [cluster]}, "overriders": {"plaintext": plaintext}}


def _binding_of(work: Work) -> Iterable[str]:
    notes = work.metadata.annotations
    return [_key_text(notes.get(BINDING_NAMESPACE), notes.get(BINDING_NAME, ""))]


def _key_text(namespace: str | None, name: str) -> str:
    return f"{namespace or ''}/{name}"


def _of_work(seen: WatchedObject[Work]) -> Iterable[Key]:
    notes = seen.meta.annotations
    if BINDING_NAME in notes:
        yield Key(seen.cluster, notes.get(BINDING_NAMESPACE) or None, notes[BINDING_NAME])


def _of_override(seen: WatchedObject[OverridePolicy]) -> Iterable[Key]:
    if seen.meta.name.startswith(OVERRIDE_PREFIX):
        yield Key(seen.cluster, seen.meta.namespace, seen.meta.name.removeprefix(OVERRIDE_PREFIX))
