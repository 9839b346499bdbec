"""Detecting: which policy a resource is propagated by, and the binding that stands for both.

A policy of the resource's namespace comes before one of the cluster; of each kind the one of the highest priority, then
the one that means the resource most exactly, then the first by name. Who holds a resource keeps it as long as it means
it, unless a policy of a higher priority, or of the namespace where the holder is of the cluster, preempts it
(`preemption: Always`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct, to_builtins

from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.keys import (
    BINDING_FINALIZER,
    BINDING_ID,
    CLUSTER_BINDING_FINALIZER,
    CLUSTER_BINDING_ID,
    CLUSTER_POLICY_ID,
    CLUSTER_POLICY_NAME,
    DEFAULT_SCHEDULER,
    EXECUTION_PREFIX,
    POLICY_ID,
    POLICY_NAME,
    POLICY_NAMESPACE,
)
from kedge.api.karmada.policies import (
    ClusterPropagationPolicy,
    Placement,
    PropagationPolicy,
    ReplicaSchedulingType,
)
from kedge.api.meta import ObjectMeta, controller_of
from kedge.api.resource import Resource
from kedge.plan.aligning.names import binding_name
from kedge.plan.aligning.overriding import selected
from kedge.plan.aligning.supporting import AnyPolicy
from kedge.plan.aligning.workload_kinds import is_counted
from kedge.plan.fields import Object, text, whole
from kedge.plan.selecting.candidates import is_hub_object
from kedge.plan.selecting.kinds import is_hub_only
from kedge.plan.workloads.handler import desired_replicas

_RESERVED: Final = ("kube-", "karmada-system", "karmada-cluster", EXECUTION_PREFIX)
"""How namespaces of Kubernetes' and of Karmada's own begin."""
_OWN_GROUPS: Final = frozenset(
    {
        "karmada.io",
        *(
            f"{name}.karmada.io"
            for name in ("apps", "autoscaling", "cluster", "config", "networking", "policy", "remedy", "search", "work")
        ),
    }
)
"""Of Karmada's own kinds. Others may end with its name, too."""
CLAIM_LABELS: Final = (POLICY_ID, CLUSTER_POLICY_ID)
_CLAIM_NOTES: Final = (POLICY_NAMESPACE, POLICY_NAME, CLUSTER_POLICY_NAME)


class PolicyClaim(Struct, frozen=True):
    """The labels and annotations by which a binding says which policy it came from."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


def is_propagated(resource: Resource, found: Object) -> bool:
    """Whether an object is propagated if a policy means it: what is the hub's own, or is being deleted, is not."""
    meta = msgspec.convert(found["metadata"], ObjectMeta)
    return not (is_kept_kind(resource) or is_hub_object(resource, meta, found, reserves=_is_reserved))


def is_kept_kind(resource: Resource) -> bool:
    """Whether all of a kind stays on the hub: what is Karmada's own, and what only means something on the hub."""
    return resource.group in _OWN_GROUPS or is_hub_only(resource)


def _is_reserved(namespace: str) -> bool:
    """Whether a namespace belongs to the system. Others may have any name, also one that KubeFleet reserves."""
    return namespace in ("default", SYSTEM_NAMESPACE) or namespace.startswith(_RESERVED)


def meant_kinds(policies: Iterable[AnyPolicy]) -> tuple[tuple[str, str], ...]:
    """The kinds that policies mean, each with its version, in order."""
    found = {(one.api_version, one.kind) for policy in policies for one in policy.spec.resource_selectors}
    return tuple(sorted(found))


def chosen_policy(obj: Object, policies: Iterable[AnyPolicy], holder: str | None = None) -> AnyPolicy | None:
    """The policy that a resource is propagated by; `holder` is the id of the one that has it now."""
    found = [(rank, policy) for policy in policies if (rank := _rank(policy, obj)) is not None]
    ranked = sorted(found, key=itemgetter(0))
    held = next((rank for rank, one in ranked if permanent_id(one) == holder), None)
    for rank, one in ranked:
        if held is None or rank == held or (one.spec.preemption == "Always" and rank.is_above(held)):
            return one
    return None


class _Rank(Struct, frozen=True, order=True):
    """Policies that count first come first."""

    is_of_cluster: bool
    priority: int
    exactness: int
    name: str

    def is_above(self, other: _Rank) -> bool:
        """Whether a policy may take resources from another. That it means them more exactly is not enough."""
        return (self.is_of_cluster, self.priority) < (other.is_of_cluster, other.priority)


def _rank(policy: AnyPolicy, obj: Object) -> _Rank | None:
    """Where a policy stands among those that mean a resource; None if it does not mean it."""
    namespace = policy.metadata.namespace
    if isinstance(policy, PropagationPolicy) and namespace != text(obj, "metadata", "namespace"):
        return None
    found = [exactness for one in policy.spec.resource_selectors if (exactness := selected(one, obj)) is not None]
    if not found:
        return None
    is_of_cluster = isinstance(policy, ClusterPropagationPolicy)
    return _Rank(is_of_cluster, -policy.spec.priority, -max(found), policy.metadata.name)


def permanent_id(policy: AnyPolicy) -> str:
    """By which a binding remembers its policy: what tells it from others of its name."""
    return policy.metadata.uid or ""


def claim_of(policy: AnyPolicy | None) -> PolicyClaim:
    """How a binding says that it came from a policy; with None, that it came from none any more."""
    labels: dict[str, str | None] = dict.fromkeys(CLAIM_LABELS)
    notes: dict[str, str | None] = dict.fromkeys(_CLAIM_NOTES)
    match policy:
        case PropagationPolicy():
            labels[POLICY_ID] = permanent_id(policy)
            notes |= {POLICY_NAMESPACE: policy.metadata.namespace, POLICY_NAME: policy.metadata.name}
        case ClusterPropagationPolicy():
            labels[CLUSTER_POLICY_ID] = permanent_id(policy)
            notes[CLUSTER_POLICY_NAME] = policy.metadata.name
    return PolicyClaim(labels, notes)


def holder_of(meta: ObjectMeta) -> str | None:
    """The id of the policy that has a binding now; None if none has."""
    return next((meta.labels[label] for label in CLAIM_LABELS if label in meta.labels), None)


def came_from_policy(meta: ObjectMeta, obj: Object) -> bool:
    """Whether a policy brought the binding of a resource, also if that policy let go of it since.

    Then it still has the resource as its controller, and an id made from the resource's own. A binding that was written
    by hand may have such an owner, but it has an id of its own.
    """
    if holder_of(meta) is not None:
        return True
    owner = controller_of(meta)
    if owner is None or owner.uid != text(obj, "metadata", "uid"):
        return False
    return meta.labels.get(_own_keys(obj).label) == _detected_id(obj)


def detected_binding(obj: Object, policy: AnyPolicy) -> dict[str, Any]:
    """The binding of a resource that has none yet, as Karmada would store it; without clusters, which are scheduled."""
    meta, claim = obj["metadata"], claim_of(policy)
    namespace, own_keys = text(obj, "metadata", "namespace"), _own_keys(obj)
    owner = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": False,  # or it would take a right on every kind that a policy may mean
    }
    return {
        "metadata": {
            "name": binding_name(text(obj, "kind"), meta["name"]),
            **({"namespace": namespace} if namespace else {}),
            "labels": {**_given(claim.labels), own_keys.label: _detected_id(obj)},
            "annotations": _given(claim.annotations),
            "finalizers": [own_keys.finalizer],
            "ownerReferences": [owner],
        },
        "spec": detected_spec(obj, policy),
    }


class _OwnKeys(Struct, frozen=True):
    """What a binding is marked with, by its kind."""

    label: str
    """Of its permanent id."""
    finalizer: str


def _own_keys(obj: Object) -> _OwnKeys:
    """The marks of the binding of a resource: of a namespace, or of the whole cluster."""
    if text(obj, "metadata", "namespace"):
        return _OwnKeys(BINDING_ID, BINDING_FINALIZER)
    return _OwnKeys(CLUSTER_BINDING_ID, CLUSTER_BINDING_FINALIZER)


def _detected_id(obj: Object) -> str:
    """The permanent id of the binding that a policy brings for a resource."""
    name = binding_name(text(obj, "kind"), text(obj, "metadata", "name"))
    return str(uuid5(UUID(text(obj, "metadata", "uid")), name))


def detected_spec(obj: Object, policy: AnyPolicy) -> dict[str, Any]:
    """What a resource and its policy say of a binding. What they leave out is None, to be taken away."""
    spec, meta = policy.spec, obj["metadata"]
    # A CloneSet that leaves them out has one; nothing fills that in on a hub without OpenKruise.
    replicas = desired_replicas(obj) if is_counted(obj) else whole(obj, "spec", "replicas")
    return {
        "resource": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": meta["name"],
            **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "replicas": replicas,
        "placement": _placement(spec.placement),
        "schedulerName": DEFAULT_SCHEDULER,
        "conflictResolution": spec.conflict_resolution,
        "suspension": to_builtins(spec.suspension),
        "preserveResourcesOnDeletion": spec.preserve_resources_on_deletion or None,
    }


def _placement(given: Placement) -> dict[str, Any]:
    """A placement that says what becomes of replicas: each cluster runs all of them if it was left out.

    With lists, as one that was read has them: with others it would never be the same.
    """
    scheduling = given.replica_scheduling
    kind = scheduling.replica_scheduling_type if scheduling is not None else ReplicaSchedulingType.duplicated
    said = {"replicaSchedulingType": kind.value, **(to_builtins(scheduling) if scheduling is not None else {})}
    placement: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode({**to_builtins(given), "replicaScheduling": said})
    )
    return placement


def detected_so_far(there: BindingSpec) -> dict[str, Any]:
    """What a binding says of its resource and its policy."""
    return {
        "resource": to_builtins(there.resource),
        "replicas": there.replicas or None,
        "placement": to_builtins(there.placement),
        "schedulerName": there.scheduler_name,
        "conflictResolution": there.conflict_resolution,
        "suspension": to_builtins(there.suspension),
        "preserveResourcesOnDeletion": there.preserve_resources_on_deletion or None,
    }


def is_detected(now: Mapping[str, Any], wanted: Mapping[str, Any], obj: Object) -> bool:
    """Whether a binding says already what it should.

    The version of a workload whose pods are counted changes with each count, so it counts only beside other changes.
    """
    expected = {**wanted, "replicas": wanted["replicas"] or None}
    if is_counted(obj):
        version = now["resource"].get("resourceVersion", "")
        expected = {**expected, "resource": {**wanted["resource"], "resourceVersion": version}}
    return now == expected


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
