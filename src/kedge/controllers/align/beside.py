"""Beside a Karmada: the controller that aligns what its policies propagate, if they ask for it.

It never writes a Work: Karmada would overwrite it. It writes one OverridePolicy for each binding, with what it keeps of
the binding beside it in the same object, and then lets clusters through by the suspension of the binding's policy. So a
crash between the two is made up for by the next look. See `plan.aligning.beside`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, to_builtins

from kedge.api.condition import is_true
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.keys import (
    ALIGN,
    BINDING_NAME,
    BINDING_NAMESPACE,
    CLUSTER_POLICY_NAME,
    EXECUTION_PREFIX,
    LEDGER,
    POLICY_NAME,
    POLICY_NAMESPACE,
    TURNS,
)
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.policies import (
    ClusterPropagationPolicy,
    Placement,
    PropagationPolicy,
    ReplicaSchedulingType,
)
from kedge.api.karmada.works import Work
from kedge.controllers.align.templates import read_template
from kedge.controllers.kinds import Kinds
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.aligning.beside import (
    BesideInput,
    BesidePlan,
    Record,
    plan_beside,
    policy_problem,
    read_turns,
    turns_text,
)
from kedge.plan.aligning.ledger_text import ledger_text, read_ledger
from kedge.plan.fields import Object

MANAGER: Final = "kedge-align"
Policy = PropagationPolicy | ClusterPropagationPolicy


class Observed(Struct, frozen=True):
    """A binding, its policy, and Kedge's own override."""

    binding: ResourceBinding
    policy: Policy
    override: OverridePolicy | None


class Beside:
    """The controller of a Karmada's ResourceBindings whose policies ask to be aligned."""

    def __init__(self, karmada: Cluster) -> None:
        self._client = karmada.client
        self._kinds = Kinds(karmada.client)
        self._events = karmada.events
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
            return Outcome.done  # its override goes with it
        policy = self._policy(binding)
        if policy is None:
            return Outcome.done
        seen = Observed(binding, policy, self._overrides.get(override_name(binding), key.namespace))
        if policy.metadata.annotations.get(ALIGN) != "true":
            return await self._let_go(seen)
        problem = policy_problem(policy.spec.resource_selectors, binding.spec)
        if problem or not _is_divided(binding):
            self._events.warning(binding, "NotAligned", problem or "its replicas are not divided over the clusters")
            return Outcome.done
        template = await self._template(binding)
        return Outcome.done if template is None else await self._align(seen, template)

    async def _align(self, seen: Observed, template: Object) -> Outcome:
        try:
            planned = plan_beside(self._observed(seen, template))
        except ValueError as error:  # a ledger that cannot be read
            planned = BesidePlan(problem=str(error))
        if planned.problem:
            self._events.warning(seen.binding, "NotAligned", planned.problem)
            return Outcome.done
        await self._write_override(seen, planned)
        names = {one.metadata.name for one in self._members.all()} - set(planned.open)
        await self._suspend(seen.policy, sorted(names))
        return Outcome.done

    # Observing

    def _policy(self, binding: ResourceBinding) -> Policy | None:
        notes = binding.metadata.annotations
        if POLICY_NAME in notes:
            return self._policies.get(notes[POLICY_NAME], notes.get(POLICY_NAMESPACE))
        if CLUSTER_POLICY_NAME in notes:
            return self._cluster_policies.get(notes[CLUSTER_POLICY_NAME])
        return None

    def _observed(self, seen: Observed, template: Object) -> BesideInput:
        meta = seen.binding.metadata
        works = self._works.by("binding", _key_text(meta.namespace, meta.name))
        notes: Mapping[str, str] = seen.override.metadata.annotations if seen.override is not None else {}
        return BesideInput(
            seen.binding.spec,
            template,
            {(one.metadata.namespace or "").removeprefix(EXECUTION_PREFIX): one for one in works},
            {one.metadata.name for one in self._members.all() if is_true(one.status.conditions, "Ready")},
            Record(read_ledger(notes.get(LEDGER, "")), read_turns(notes.get(TURNS, ""))),
        )

    async def _template(self, binding: ResourceBinding) -> Object | None:
        return await read_template(self._client, self._kinds, binding)

    # Writing

    async def _write_override(self, seen: Observed, planned: BesidePlan) -> None:
        """The override and what is kept, in one write, of the version that was looked at."""
        bound, meta = seen.binding.spec.resource, seen.binding.metadata
        notes = {LEDGER: ledger_text(planned.record.ledger), TURNS: turns_text(planned.record.turns)}
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
        return Outcome.done

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]


def override_name(binding: ResourceBinding) -> str:
    """The name of Kedge's own OverridePolicy of a binding."""
    return f"{_PREFIX}{binding.metadata.name}"


_PREFIX: Final = "kedge-align-"


def _rule(cluster: str, values: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    plaintext = [{"path": path, "operator": "add", "value": value} for path, value in values]
    return {"targetCluster": {"clusterNames": [cluster]}, "overriders": {"plaintext": plaintext}}


def _is_divided(binding: ResourceBinding) -> bool:
    given = msgspec.convert(binding.spec.placement, Placement).replica_scheduling
    return given is not None and given.replica_scheduling_type is ReplicaSchedulingType.divided


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
    if seen.meta.name.startswith(_PREFIX):
        yield Key(seen.cluster, seen.meta.namespace, seen.meta.name.removeprefix(_PREFIX))
