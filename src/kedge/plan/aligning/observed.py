"""Observed: what a decision about one binding needs, from the objects that the hub holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kedge.api.condition import is_true
from kedge.api.karmada.bindings import BindingSpec, BoundResource, ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import BINDING_NAME, BINDING_NAMESPACE, CLUSTER_BINDING_NAME, EXECUTION_PREFIX, LEDGER
from kedge.api.karmada.policies import Placement, ReplicaSchedulingType
from kedge.api.karmada.works import Work
from kedge.plan.aligning.binding import BindingInput, BoundCluster
from kedge.plan.aligning.ledger_text import BadLedger, read_ledger
from kedge.plan.aligning.overriding import AnyOverridePolicy
from kedge.plan.aligning.scheduling import CandidateCluster
from kedge.plan.aligning.work_spec import is_suspended
from kedge.plan.fields import Object

AnyBinding = ResourceBinding | ClusterResourceBinding


class BadPlacement(ValueError):
    """Why the placement of a binding cannot be read, in words."""


def read_placement(spec: BindingSpec) -> Placement:
    """The placement of a binding. Raises `BadPlacement`."""
    try:
        return msgspec.convert(spec.placement, Placement)
    except msgspec.ValidationError as error:
        raise BadPlacement(f"spec.placement cannot be read: {error}") from error


def resource_of(binding: AnyBinding) -> BoundResource:
    """The resource that a binding propagates. One that a namespace has is in that of its binding, if none is named."""
    bound = binding.spec.resource
    if bound.namespace or isinstance(binding, ClusterResourceBinding):
        return bound
    return replace(bound, namespace=binding.metadata.namespace or "")


def binding_input(
    binding: AnyBinding,
    template: Object | None,
    works: Mapping[str, Work],
    members: Mapping[str, Cluster],
    overrides: Iterable[AnyOverridePolicy],
) -> BindingInput:
    """A binding as it was observed: its resource, its Works and all clusters by name, and the policies there are. Of
    those, overrides of the cluster count, and of the namespace of its resource.

    A cluster that was asked for something is among them also if it is no longer wanted and has no Work: that may be on
    its way.
    """
    meta = binding.metadata
    ledger = meta.annotations.get(LEDGER, "")
    names = {one.name for one in binding.spec.clusters} | set(works) | _asked(ledger)
    namespaces = (None, "", resource_of(binding).namespace)
    clusters = {
        name: BoundCluster(
            CandidateCluster(name, members[name].metadata.labels),
            is_true(members[name].status.conditions, "Ready"),
            works.get(name),
            is_suspended=is_suspended(binding.spec, name),
        )
        for name in sorted(names & set(members))
    }
    return BindingInput(
        binding.spec,
        template,
        clusters,
        tuple(one for one in overrides if one.metadata.namespace in namespaces),
        ledger,
        is_divided=_is_divided(binding),
        is_deleting=meta.deletion_timestamp is not None,
    )


def _asked(ledger: str) -> set[str]:
    try:
        return set(read_ledger(ledger).specs)
    except BadLedger:
        return set()  # it stops the binding: plan_binding says so


def _is_divided(binding: AnyBinding) -> bool:
    """A binding that has a placement says so there: every cluster runs all replicas unless it says otherwise."""
    if not binding.spec.placement:
        return True
    try:
        given = read_placement(binding.spec).replica_scheduling
    except BadPlacement:
        return False  # it is refused: see `plan.aligning.refusing`
    return given is not None and given.replica_scheduling_type is ReplicaSchedulingType.divided


def works_of(binding: AnyBinding, works: Iterable[Work]) -> dict[str, Work]:
    """The Works of a binding, by cluster."""
    return {cluster_of(one): one for one in works if is_work_of(one, binding)}


def cluster_of(work: Work) -> str:
    """The cluster that a Work is for."""
    return (work.metadata.namespace or "").removeprefix(EXECUTION_PREFIX)


def is_work_of(work: Work, binding: AnyBinding) -> bool:
    """Whether a Work says that it is of a binding."""
    notes, meta = work.metadata.annotations, binding.metadata
    if isinstance(binding, ClusterResourceBinding):
        return notes.get(CLUSTER_BINDING_NAME) == meta.name
    return (notes.get(BINDING_NAMESPACE), notes.get(BINDING_NAME)) == (meta.namespace, meta.name)
