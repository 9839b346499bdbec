"""Detector: the controller that makes a binding of each resource that a policy means.

Kinds are watched from the moment some policy means them, by their metadata alone. The binding says which policy it came
from; the resource itself is not touched. A binding that somebody wrote by hand stays as it is, and so does one whose
policy is gone: nobody loses pods because a policy was deleted. The next policy that means its resource claims it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.condition import FALSE, TRUE, new_condition, set_condition
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy, PropagationStatus
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.controllers.align.binding_kinds import BINDING_KINDS, CLUSTER_SCOPED, NAMESPACED, BindingKind
from kedge.controllers.kinds import Kinds
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of, untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject, generation_changed
from kedge.plan.aligning.detecting import (
    came_from_policy,
    chosen_policy,
    claim_of,
    detected_binding,
    detected_so_far,
    detected_spec,
    holder_of,
    is_detected,
    is_kept_kind,
    is_propagated,
    meant_kinds,
)
from kedge.plan.aligning.names import binding_name
from kedge.plan.aligning.observed import resource_of
from kedge.plan.aligning.scheduling import missing_clusters
from kedge.plan.aligning.supporting import AnyPolicy, idle_selectors, policy_problems
from kedge.plan.fields import Object
from kedge.plan.text import object_name

MANAGER: Final = "kedge-detector"
AGAIN: Final = 15.0
"""Seconds after which it is asked again for kinds that are not served."""
_BAR: Final = "|"


class Detector:
    """The controller of resources that policies mean."""

    def __init__(self, cluster: Cluster, *, clock: Clock) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._events = cluster.events
        self._clock = clock
        self._kinds = Kinds(cluster.client)
        self._policies = cluster.cache(PropagationPolicy)
        self._cluster_policies = cluster.cache(ClusterPropagationPolicy)
        self._members = cluster.cache(Member)
        self._bindings: Mapping[BindingKind, Cache[Any]] = {one: one.cache(cluster) for one in BINDING_KINDS}
        self._unclaimed: set[str | None] = set()
        """Bindings that are told to be written by hand, by uid."""
        self._resources: dict[tuple[str, str], Resource] = {}
        self._metadata: dict[tuple[str, str], Cache[PartialObject]] = {}
        self._itself = Key(cluster.name, None, "policies")
        sources: list[Source] = [
            cluster.watch(self._policies, to=self._of_policy, when=generation_changed),
            cluster.watch(self._cluster_policies, to=self._of_policy, when=generation_changed),
            cluster.watch(self._members, to=self._of_member, when=generation_changed),
            *(cluster.watch(cache, to=_of_binding, when=generation_changed) for cache in self._bindings.values()),
        ]
        self.controller = Controller("detector", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        if key == self._itself:
            return await self._policies_changed()
        api_version, kind, name = key.name.split(_BAR, 2)
        resource = self._resources.get((api_version, kind))
        if resource is None or not name or resource.namespaced != (key.namespace is not None):
            return Outcome.done  # no policy means its kind, or a binding names none there can be; what is there stays
        return await self._detect(resource, name, key.namespace)

    # Policies

    def _all_policies(self) -> list[AnyPolicy]:
        found: tuple[AnyPolicy, ...] = (*self._policies.all(), *self._cluster_policies.all())
        return [one for one in found if one.metadata.deletion_timestamp is None]

    async def _policies_changed(self) -> Outcome:
        """Watch the kinds that policies mean, and say of each policy whether it is followed."""
        policies = self._all_policies()
        wanted = [one for one in meant_kinds(policies) if one not in self._resources]
        if wanted:
            await self._kinds.ask()
        for api_version, kind in wanted:
            group, _, version = api_version.rpartition("/")
            resource = self._kinds.lookup(group, version, kind)
            if resource is not None:
                self._follow(api_version, kind, resource)
        missing = {one for one in wanted if one not in self._resources}
        for policy in policies:
            await self._accept(policy, missing)
        return Outcome.again(after=AGAIN) if missing else Outcome.done

    def _follow(self, api_version: str, kind: str, resource: Resource) -> None:
        self._resources[api_version, kind] = resource
        cache = self._cluster.cache(metadata_of(resource), optional=True)
        self._metadata[api_version, kind] = cache
        self.controller.add_source(self._cluster.watch(cache, to=partial(_of_object, api_version, kind)))

    async def _accept(self, policy: AnyPolicy, missing: Iterable[tuple[str, str]]) -> None:
        problems = list(policy_problems(policy.spec))
        means = {(one.api_version, one.kind) for one in policy.spec.resource_selectors}
        problems += [f"the hub serves no {kind} of {version}" for version, kind in sorted(means & set(missing))]
        accepted = new_condition(
            "Accepted",
            status=FALSE if problems else TRUE,
            reason="NotSupported" if problems else "Accepted",
            message="; ".join(problems) or self._followed(policy),
            generation=policy.metadata.generation,
            now=self._clock.now(),
        )
        status = PropagationStatus(conditions=set_condition(policy.status.conditions, accepted))
        if status != policy.status:
            if problems:
                self._events.warning(policy, "NotAccepted", accepted.message)
            change = {"status": difference(to_builtins(policy.status), to_builtins(status))}
            await self._client.amend(type(policy), policy.metadata, change, manager=MANAGER, subresource="status")

    def _followed(self, policy: AnyPolicy) -> str:
        """That a policy is followed, what it can never mean, and which of its clusters do not exist."""
        missing = missing_clusters(policy.spec.placement, (one.metadata.name for one in self._members.all()))
        said = [*self._idle(policy), *([missing] if missing else [])]
        return " ".join(["The policy is followed.", *said]) if said else "The policy is followed"

    def _idle(self, policy: AnyPolicy) -> tuple[str, ...]:
        of_cluster = {kind for kind, resource in self._resources.items() if not resource.namespaced}
        kept = {kind for kind, resource in self._resources.items() if is_kept_kind(resource)}
        return idle_selectors(policy, of_cluster, kept)

    def _of_member(self, _: WatchedObject[Member]) -> Iterable[Key]:
        """A cluster that comes or goes wakes the policies, which may name it."""
        yield self._itself

    def _of_policy(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        """A policy that changed wakes everything of the kinds that it means."""
        yield self._itself
        for api_version, kind in meant_kinds([seen.object]):
            cache = self._metadata.get((api_version, kind))
            for one in cache.all() if cache is not None else ():
                yield _key(seen.cluster, api_version, kind, one.metadata)

    # Resources

    async def _detect(self, resource: Resource, name: str, namespace: str | None) -> Outcome:
        binding_kind = NAMESPACED if resource.namespaced else CLUSTER_SCOPED
        there = self._bindings[binding_kind].get(binding_name(resource.kind, name), namespace)
        try:
            found = await self._client.get(untyped(resource), name, namespace)
        except NotFound:
            return Outcome.done  # its binding goes with it
        obj = {**found, "apiVersion": resource.api_version, "kind": resource.kind}
        if not is_propagated(resource, obj):
            return Outcome.done
        policy = chosen_policy(obj, self._all_policies(), holder_of(there.metadata) if there is not None else None)
        if there is None:
            return await self._create(binding_kind, obj, policy)
        return await self._update(binding_kind, there, obj, policy)

    async def _create(self, kind: BindingKind, obj: Object, policy: AnyPolicy | None) -> Outcome:
        if policy is not None and not policy_problems(policy.spec):
            await self._client.create(kind.type, detected_binding(obj, policy), manager=MANAGER)
        return Outcome.done

    async def _update(
        self, kind: BindingKind, there: ResourceBinding, obj: Object, policy: AnyPolicy | None
    ) -> Outcome:
        meta = there.metadata
        if meta.deletion_timestamp is not None:
            return Outcome.done  # made anew when it is gone
        if not came_from_policy(meta, obj):
            self._tell_of_handwritten(there, policy)
            return Outcome.done
        if policy is not None and policy_problems(policy.spec):
            return Outcome.done
        claim = claim_of(policy)
        change = _meta_change(meta, claim.labels, claim.annotations)
        if policy is not None:
            now, wanted = detected_so_far(there.spec), detected_spec(obj, policy)
            if not is_detected(now, wanted, obj):
                change["spec"] = difference(now, wanted)
        if change:
            await self._client.amend(kind.type, meta, change, manager=MANAGER)
        return Outcome.done

    def _tell_of_handwritten(self, there: ResourceBinding, policy: AnyPolicy | None) -> None:
        uid = there.metadata.uid
        if policy is None or uid in self._unclaimed:
            return
        self._unclaimed.add(uid)
        named = object_name(policy.resource.kind, policy.metadata.namespace, policy.metadata.name)
        self._events.warning(
            there, "NotClaimed", f"{named} means its resource, but this binding was written by hand: it stays as it is"
        )


def _meta_change(
    meta: ObjectMeta, labels: Mapping[str, str | None], annotations: Mapping[str, str | None]
) -> dict[str, Any]:
    """What to change so that a binding says which policy it came from."""
    found = {
        name: changed
        for name, now, wanted in (("labels", meta.labels, labels), ("annotations", meta.annotations, annotations))
        if (changed := {key: value for key, value in wanted.items() if now.get(key) != value})
    }
    return {"metadata": found} if found else {}


def _key(cluster: str, api_version: str, kind: str, meta: ObjectMeta) -> Key:
    return Key(cluster, meta.namespace, _BAR.join((api_version, kind, meta.name)))


def _of_object(api_version: str, kind: str, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
    yield _key(seen.cluster, api_version, kind, seen.meta)


def _of_binding(seen: WatchedObject[Any]) -> Iterable[Key]:
    """A binding that changed wakes its resource."""
    bound = resource_of(seen.object)
    name = _BAR.join((bound.api_version, bound.kind, bound.name))
    yield Key(seen.cluster, bound.namespace or None, name)
