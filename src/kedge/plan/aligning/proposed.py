"""Proposed: the binding of Karmada that stands for one in the short form of the proposal.

A binding is called after its resource and kind, so one that does not name its resource says it all the same.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.karmada.bindings import BoundResource
from kedge.api.karmada.proposed import ProposedBinding
from kedge.plan.aligning.names import binding_name
from kedge.plan.aligning.refusing import namespace_problem
from kedge.plan.aligning.workload_kinds import WORKLOAD_KINDS


class NotBound(ValueError):
    """Why a proposed binding stands for no resource, in words."""


def bound_resource(binding: ProposedBinding) -> BoundResource:
    """The resource that a binding means: the one it names, or the workload that it is called after. It is of the
    binding's own namespace. Raises `NotBound`."""
    meta, given = binding.metadata, binding.spec.resource
    if given is not None:
        if problem := namespace_problem(given.namespace, meta.namespace or ""):
            raise NotBound(problem)
        return replace(given, namespace=meta.namespace or "")
    for kind in WORKLOAD_KINDS:
        suffix = binding_name(kind.kind, "")
        if meta.name.endswith(suffix) and meta.name != suffix:
            return BoundResource(
                api_version=kind.api_version,
                kind=kind.kind,
                name=meta.name.removesuffix(suffix),
                namespace=meta.namespace or "",
            )
    known = " or ".join(binding_name(kind.kind, "NAME") for kind in WORKLOAD_KINDS)
    raise NotBound(f"{meta.name} says of no workload what clusters it runs in: set spec.resource, or call it {known}")


def proposed_spec(binding: ProposedBinding) -> dict[str, Any]:
    """The spec of Karmada's binding, as far as a proposed one decides on it."""
    resource = to_builtins(bound_resource(binding))
    clusters = [{"name": one.name, "replicas": one.replicas} for one in binding.spec.clusters]
    return {"resource": resource, "clusters": clusters, "replicas": sum(one.replicas for one in binding.spec.clusters)}
