"""A Karmada, as small as it can be and still be one (karmada.md §10): who writes what, in which order, and how late.

* The detector copies the suspension of a policy into its binding, over whatever was there, and claims the resource.
* The binding controller writes a Work for each cluster of a binding: the resource with the replicas of the cluster,
  then overrides, last. It overwrites whatever somebody else wrote there. It does not look at the status of Works.
* The execution controller says on a Work whether it is dispatched, then applies it, unless it is suspended. It works on
  one version of a Work at a time, and may be slow about it.
* The work status controller reflects the status of a member's object into its Work, suspended or not, late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
from msgspec import to_builtins

from kedge.api.apps import Deployment
from kedge.api.condition import FALSE, TRUE, Condition, new_condition, set_condition
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import (
    BINDING_NAME,
    BINDING_NAMESPACE,
    EXECUTION_PREFIX,
    POLICY_NAME,
    POLICY_NAMESPACE,
    SEQUENCE,
    WORK_NAME,
    WORK_NAMESPACE,
)
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.policies import PropagationPolicy
from kedge.api.karmada.works import Work
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.aligning.names import work_name, work_namespace
from kedge.plan.aligning.overriding import overridden
from kedge.plan.aligning.propagating import propagated
from kedge.plan.aligning.reflecting import reflected
from kedge.plan.aligning.scheduling import CandidateCluster
from kedge.plan.fields import patched

TEMPLATES = untyped(Deployment.resource)


class Lag:
    """How long Karmada's controllers take between a look and what they do about it."""

    def __init__(self, rng: Random, most: float) -> None:
        self._rng, self._most = rng, most

    async def passes(self) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, self._most))


class BindingController:
    """Detector and binding controller, of Deployments."""

    def __init__(self, hub: Cluster, lag: Lag) -> None:
        self._client, self._lag = hub.client, lag
        self._bindings = hub.cache(ResourceBinding)
        self._templates = hub.cache(TEMPLATES)
        self._overrides = hub.cache(OverridePolicy)
        self._policies = hub.cache(PropagationPolicy)
        everyone = self._everyone
        sources: list[Source] = [
            hub.watch(self._bindings),
            hub.watch(self._templates, to=everyone),
            hub.watch(self._overrides, to=everyone),
            hub.watch(self._policies, to=everyone),
        ]
        self.controller = Controller("karmada binding", self.reconcile, sources)

    def _everyone(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._bindings.all()]

    async def reconcile(self, key: Key) -> Outcome:
        binding = self._bindings.get(key.name, key.namespace)
        template = self._templates.get("demo", key.namespace)
        if binding is None or template is None:
            return Outcome.done
        overrides = self._overrides.all()
        policy = self._policies.get(binding.metadata.annotations[POLICY_NAME], key.namespace)
        await self._lag.passes()
        notes = {POLICY_NAME: policy.metadata.name, POLICY_NAMESPACE: key.namespace} if policy is not None else {}
        if any((template["metadata"].get("annotations") or {}).get(name) != note for name, note in notes.items()):
            claim = MergePatch({"metadata": {"annotations": notes}})
            await self._client.patch(TEMPLATES, "demo", claim, key.namespace)
            return Outcome.done
        wanted = to_builtins(policy.spec.suspension) if policy is not None else None
        if wanted != to_builtins(binding.spec.suspension):
            body = {"spec": {"suspension": None}}
            binding = await self._client.patch(ResourceBinding, key.name, MergePatch(body), key.namespace)
            body = {"spec": {"suspension": wanted}}
            binding = await self._client.patch(ResourceBinding, key.name, MergePatch(body), key.namespace)
        for target in binding.spec.clusters:
            own = patched(propagated(template), {"spec": {"replicas": target.replicas}})
            manifest = overridden(own, CandidateCluster(target.name, {}), overrides).obj
            await self._ensure(binding, target.name, manifest)
        return Outcome.done

    async def _ensure(self, binding: ResourceBinding, cluster: str, manifest: Any) -> None:
        given = binding.spec.suspension
        some = given.dispatching_on_clusters if given is not None else None
        is_suspended = some is not None and cluster in some.cluster_names
        spec = {"workload": {"manifests": [manifest]}, "suspendDispatching": is_suspended}
        name, namespace = work_name("Deployment", "demo", binding.metadata.namespace or ""), work_namespace(cluster)
        try:
            there = await self._client.get(Work, name, namespace)
        except NotFound:
            notes = {BINDING_NAMESPACE: binding.metadata.namespace, BINDING_NAME: binding.metadata.name}
            meta = {"name": name, "namespace": namespace, "annotations": notes}
            await self._client.create(Work, {"metadata": meta, "spec": spec})
            return
        if to_builtins(there.spec) != to_builtins(msgspec.convert(spec, type(there.spec))):
            await self._client.patch(Work, name, MergePatch({"spec": spec}), namespace)


class ExecutionController:
    """Of one member."""

    def __init__(self, hub: Cluster, member: Cluster, name: str, *, clock: Clock, lag: Lag) -> None:
        self._hub, self._member, self._clock, self._lag = hub.client, member.client, clock, lag
        self._works = hub.cache(Work, work_namespace(name))
        self.controller = Controller(f"karmada execution {name}", self.reconcile, [hub.watch(self._works)])

    async def reconcile(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        if work is None:
            return Outcome.done
        status, reason = (FALSE, "SuspendDispatching") if work.spec.suspend_dispatching else (TRUE, "Dispatching")
        work = await self._say(
            work, new_condition("Dispatching", status, reason, "", now=self._clock.now(), generation=None)
        )
        await self._lag.passes()
        if work.spec.suspend_dispatching:
            return Outcome.done
        notes = {WORK_NAMESPACE: key.namespace, WORK_NAME: key.name}
        body = patched(work.spec.workload.manifests[0], {"metadata": {"annotations": notes}})
        await self._member.apply(TEMPLATES, body, manager="karmada", force=True)
        applied = new_condition("Applied", TRUE, "AppliedSuccessful", "", now=self._clock.now(), generation=None)
        await self._say(await self._hub.get(Work, key.name, key.namespace), applied)
        return Outcome.done

    async def _say(self, work: Work, condition: Condition) -> Work:
        conditions = set_condition(work.status.conditions, condition)
        if conditions == work.status.conditions:
            return work
        body = {"status": {"conditions": to_builtins(conditions)}}
        await self._hub.amend(Work, work.metadata, body, subresource="status")
        return work


class WorkStatusController:
    """Of one member. `tells_seq`: whether somebody taught Karmada to reflect the number of a spec as well."""

    def __init__(self, hub: Cluster, member: Cluster, name: str, *, lag: Lag, tells_seq: bool) -> None:
        self._hub, self._lag, self._tells_seq = hub.client, lag, tells_seq
        self._objects = member.cache(TEMPLATES)
        self.controller = Controller(f"karmada work status {name}", self.reconcile, [member.watch(self._objects)])

    async def reconcile(self, key: Key) -> Outcome:
        found: Untyped | None = self._objects.get(key.name, key.namespace)
        if found is None or WORK_NAME not in (found["metadata"].get("annotations") or {}):
            return Outcome.done
        await self._lag.passes()
        notes = found["metadata"]["annotations"]
        raw = dict(reflected(found if self._tells_seq else _without_seq(found)))
        names = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": key.name}
        identifier = {**names, "group": "apps", "namespace": key.namespace}
        statuses = [{"identifier": identifier, "status": raw}]
        work = await self._hub.get(Work, notes[WORK_NAME], notes[WORK_NAMESPACE])
        if [to_builtins(one)["status"] for one in work.status.manifest_statuses] != [raw]:
            body = {"status": {"manifestStatuses": statuses}}
            await self._hub.amend(Work, work.metadata, body, subresource="status")
        return Outcome.done


def _without_seq(obj: Untyped) -> Untyped:
    notes = {name: note for name, note in obj["metadata"]["annotations"].items() if name != SEQUENCE}
    return {**obj, "metadata": {**obj["metadata"], "annotations": notes}}


def cluster_of(work: Work) -> str:
    return (work.metadata.namespace or "").removeprefix(EXECUTION_PREFIX)
