"""Supporting: what of Karmada's policies is not followed here, in words: nothing that is written is ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

from kedge.api.karmada.keys import DEFAULT_SCHEDULER
from kedge.api.karmada.overrides import OverrideSpec
from kedge.api.karmada.policies import (
    ClusterAffinity,
    ClusterPropagationPolicy,
    Placement,
    PropagationPolicy,
    PropagationSpec,
    ResourceSelector,
)

KindName: TypeAlias = tuple[str, str]
"""The version and the name of a kind."""
AnyPolicy: TypeAlias = PropagationPolicy | ClusterPropagationPolicy
_WIDER: Final = "that takes a ClusterPropagationPolicy"
_ESTIMATE: Final = "needs an estimate of what is free in each cluster, which nobody makes here"


def policy_problems(spec: PropagationSpec) -> tuple[str, ...]:
    """Why a policy is not followed, a sentence for each field; nothing if it is."""
    return (*_policy_problems(spec), *placement_problems(spec.placement))


def _policy_problems(spec: PropagationSpec) -> Iterator[str]:
    if spec.propagate_deps or spec.association:
        yield "spec.propagateDeps is set, but what a resource uses is not looked for here: name it in resourceSelectors"
    if spec.dependent_overrides:
        yield "spec.dependentOverrides is set, but nobody waits for overrides here: remove it, and write them first"
    if spec.failover is not None:
        yield "spec.failover is set, but nothing is moved away from what fails here: remove it"
    if spec.activation_preference:
        yield "spec.activationPreference Lazy is set, but changes of policies count at once here: remove it"
    if spec.schedule_priority is not None:
        yield "spec.schedulePriority is set, but nobody waits to be scheduled here: remove it"
    if spec.scheduler_name not in ("", DEFAULT_SCHEDULER):
        yield f"spec.schedulerName is {spec.scheduler_name}, but only {DEFAULT_SCHEDULER} is here: remove it"


def idle_selectors(
    policy: AnyPolicy, cluster_kinds: Collection[KindName], kept_kinds: Collection[KindName] = ()
) -> tuple[str, ...]:
    """What a policy cannot mean though it names it, a sentence for each selector.

    Of the kinds that it names, each with its version, `cluster_kinds` are those of the whole cluster, and `kept_kinds`
    those that stay on the hub.
    """
    found = (_idle(policy, one, cluster_kinds, kept_kinds) for one in policy.spec.resource_selectors)
    return tuple(dict.fromkeys(one for one in found if one))


def _idle(
    policy: AnyPolicy, selector: ResourceSelector, cluster_kinds: Collection[KindName], kept_kinds: Collection[KindName]
) -> str:
    kind, own = (selector.api_version, selector.kind), policy.metadata.namespace
    if kind in kept_kinds:
        return f"It means no {selector.kind}: that kind stays on the hub."
    if isinstance(policy, ClusterPropagationPolicy):
        return ""
    if kind in cluster_kinds:
        return f"It means no {selector.kind}, which is of the whole cluster: {_WIDER}."
    if selector.namespace not in ("", own):
        return f"It means no {selector.kind} of the namespace {selector.namespace}: {_WIDER}."
    return ""


def placement_problems(placement: Placement) -> tuple[str, ...]:
    """Why nothing can be scheduled by a placement, a sentence for each field; nothing if it can."""
    return tuple(_placement_problems(placement))


def _placement_problems(placement: Placement) -> Iterator[str]:
    scheduling = placement.replica_scheduling
    weights = scheduling.weight_preference if scheduling is not None else None
    if placement.cluster_affinities:
        yield "placement.clusterAffinities is set, but groups are not tried one after the other: use clusterAffinity"
    if placement.spread_constraints:
        yield "placement.spreadConstraints is set, but nothing is spread here: name the clusters in clusterAffinity"
    if placement.workload_affinity is not None:
        yield "placement.workloadAffinity is set, but what runs elsewhere is not looked at here: remove it"
    if scheduling is not None and scheduling.replica_division_preference not in ("", "Weighted"):
        preference = scheduling.replica_division_preference
        yield f"replicaDivisionPreference {preference} {_ESTIMATE}: use Weighted with a staticWeightList"
    if weights is not None and weights.dynamic_weight:
        yield f"dynamicWeight {weights.dynamic_weight} {_ESTIMATE}: use a staticWeightList"
    rules = weights.static_weight_list if weights is not None else ()
    if any(map(_asks_for_fields, (placement.cluster_affinity, *(one.target_cluster for one in rules)))):
        yield "clusterAffinity.fieldSelector is set, but only names and labels are looked at: use labelSelector"


def override_problems(spec: OverrideSpec) -> tuple[str, ...]:
    """Why an override policy cannot be followed, a sentence for each field; nothing if it can."""
    return tuple(_override_problems(spec))


def _override_problems(spec: OverrideSpec) -> Iterator[str]:
    if spec.overriders is not None or spec.target_cluster is not None:
        yield "spec.overriders and spec.targetCluster are an older form: write them in spec.overrideRules"
    yield from dict.fromkeys(f"{name} is not known here: use plaintext" for name in _unknown_overriders(spec))
    if any(_asks_for_fields(rule.target_cluster) for rule in spec.override_rules):
        yield "targetCluster.fieldSelector is set, but only names and labels are looked at: use labelSelector"


def _unknown_overriders(spec: OverrideSpec) -> Iterable[str]:
    for rule in spec.override_rules:
        given = rule.overriders
        yield from ["commandOverrider"] if given.command_overrider else []
        yield from ["argsOverrider"] if given.args_overrider else []
        yield from ["labelsOverrider"] if given.labels_overrider else []
        yield from ["annotationsOverrider"] if given.annotations_overrider else []
        yield from ["fieldOverrider"] if given.field_overrider else []


def _asks_for_fields(affinity: ClusterAffinity | None) -> bool:
    return affinity is not None and affinity.field_selector is not None
