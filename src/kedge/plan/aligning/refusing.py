"""Refusing: why nothing is done about a binding, in words. What was written for it before stays as it is.

Found out before its resource is read: a binding of a namespace speaks for that namespace alone. Whoever may write one
must not be able to copy what another namespace holds, or what the whole cluster shares.
"""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.karmada.bindings import BindingSpec, ClusterResourceBinding
from kedge.api.karmada.keys import BINDING_NAME, BINDING_NAMESPACE, CLUSTER_BINDING_NAME
from kedge.api.karmada.works import Work
from kedge.api.resource import Resource
from kedge.plan.aligning.names import work_name
from kedge.plan.aligning.observed import AnyBinding, BadPlacement, cluster_of, is_work_of, read_placement, resource_of
from kedge.plan.text import listed, object_name, path_of


def refusal(
    binding: AnyBinding, kind: Resource | None, others: Iterable[AnyBinding] = (), works: Iterable[Work] = ()
) -> str:
    """Why nothing is done about a binding; empty if something is.

    `kind`: the kind of its resource; None if the hub does not serve it. `others`: bindings, and `works`: Works, that
    may be of the same resource.
    """
    bound = resource_of(binding)
    if not bound.name:
        return "spec.resource.name is empty: name the resource"
    if kind is None:
        return f"the hub serves no {bound.kind} of {bound.api_version}: what runs stays as it is"
    if problem := _scope_problem(binding, kind) or _clusters_problem(binding.spec):
        return problem
    try:
        read_placement(binding.spec)
    except BadPlacement as error:
        return str(error)
    return _taken(binding, others, works)


def _scope_problem(binding: AnyBinding, kind: Resource) -> str:
    bound = resource_of(binding)
    if isinstance(binding, ClusterResourceBinding):
        is_missing = kind.namespaced and not bound.namespace
        return f"spec.resource.namespace is empty, but {bound.kind} is of a namespace: set it" if is_missing else ""
    if not kind.namespaced:
        return f"{bound.kind} {bound.name} is of the whole cluster: it takes a ClusterResourceBinding"
    return namespace_problem(bound.namespace, binding.metadata.namespace or "")


def namespace_problem(named: str, own: str) -> str:
    """Why a binding of one namespace may not name a resource of another; empty if it may."""
    if named in ("", own):
        return ""
    return (
        f"spec.resource.namespace is {named}, but the binding is in {own}, and a binding is for resources of its own"
        f" namespace alone: leave the field out, or create the binding in {named}"
    )


def _clusters_problem(spec: BindingSpec) -> str:
    """Why the clusters of a binding cannot be followed: one that is named twice would have two numbers."""
    replicas: dict[str, list[str]] = {}
    for one in spec.clusters:
        replicas.setdefault(one.name, []).append(str(one.replicas))
    for name, numbers in replicas.items():
        if len(numbers) > 1:
            return f"spec.clusters names {name} {len(numbers)} times, with {listed(numbers)} replicas: name it once"
    return ""


def _taken(binding: AnyBinding, others: Iterable[AnyBinding], works: Iterable[Work]) -> str:
    """Who else propagates the resource: whoever wrote its Works; of several that wrote none, the oldest."""
    own_works, other_works = _split(works, binding)
    wanted = {one.name for one in binding.spec.clusters}
    owners = [_owner(one) for one in other_works if cluster_of(one) in wanted]
    first = min((*(one for one in others if _is_for_same_resource(one, binding)), binding), key=_age)
    if not owners and not own_works and first is not binding:
        owners = [_title(first)]
    if not owners:
        return ""
    bound = resource_of(binding)
    return f"{object_name(bound.kind, bound.namespace, bound.name)} is propagated by {owners[0]} already: delete one"


def _split(works: Iterable[Work], binding: AnyBinding) -> tuple[list[Work], list[Work]]:
    """The Works of a binding, and those of others."""
    own: list[Work] = []
    other: list[Work] = []
    for one in works:
        (own if is_work_of(one, binding) else other).append(one)
    return own, other


def _is_for_same_resource(other: AnyBinding, binding: AnyBinding) -> bool:
    """Whether another binding is for the same resource, and may be."""
    if other.metadata.name == binding.metadata.name or other.metadata.deletion_timestamp is not None:
        return False
    is_alike = other.resource == binding.resource and other.metadata.namespace == binding.metadata.namespace
    return is_alike and work_name_of(other) == work_name_of(binding)


def _age(binding: AnyBinding) -> tuple[str, str]:
    """By when it was created: one that is only previewed comes last."""
    created = binding.metadata.creation_timestamp
    return created.isoformat() if created is not None else "~", binding.metadata.name


def work_name_of(binding: AnyBinding) -> str:
    """What the Works of a binding are called: two bindings whose Works have one name are for one resource."""
    bound = resource_of(binding)
    return work_name(bound.kind, bound.name, bound.namespace)


def _title(binding: AnyBinding) -> str:
    return f"{binding.resource.kind} {path_of(binding.metadata.namespace, binding.metadata.name)}"


def _owner(work: Work) -> str:
    """Whose a Work is, in words."""
    notes = work.metadata.annotations
    if CLUSTER_BINDING_NAME in notes:
        return f"ClusterResourceBinding {notes[CLUSTER_BINDING_NAME]}"
    if BINDING_NAME in notes:
        return f"ResourceBinding {path_of(notes.get(BINDING_NAMESPACE), notes[BINDING_NAME])}"
    return f"Work {path_of(work.metadata.namespace, work.metadata.name)}, which is of no binding,"
