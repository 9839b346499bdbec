"""Beside policies: Kedge's own OverridePolicy beside a Karmada, and the policies whose workloads it aligns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from kedge.api.karmada.bindings import BindingSpec, ResourceBinding
from kedge.api.karmada.keys import ALIGN, CLUSTER_POLICY_NAME, POLICY_NAME, POLICY_NAMESPACE, SEQUENCE
from kedge.api.karmada.policies import (
    ClusterPropagationPolicy,
    Placement,
    PropagationPolicy,
    ReplicaSchedulingType,
    ResourceSelector,
)
from kedge.plan.aligning.interpreter import revised
from kedge.plan.aligning.ledger import UNKNOWN, Spec
from kedge.plan.fields import Object, at

OVERRIDDEN: Final = ("strategy", "updateStrategy", "replicas")
"""The fields of a workload's spec that are granted."""
OVERRIDE_PREFIX: Final = "kedge-align-"
"""Of the name of Kedge's own OverridePolicy of a binding."""
Policy = PropagationPolicy | ClusterPropagationPolicy


def override_name(binding: ResourceBinding) -> str:
    """The name of Kedge's own OverridePolicy of a binding."""
    return f"{OVERRIDE_PREFIX}{binding.metadata.name}"


def granted_spec(specs: Sequence[Spec]) -> Spec | None:
    """The last spec that was granted, not only taken as it is."""
    return next((spec for spec in reversed(specs) if spec.seq > 0 and spec.template != UNKNOWN), None)


def overridden_values(manifest: Object, spec: Spec) -> tuple[tuple[str, Any], ...]:
    """What an override says of a cluster that was granted a spec: paths and their values.

    It is never paused: one that is paused in its turn would hear that it is to go on only in the next one, which there
    may be none of.
    """
    asked = revised(manifest, spec)
    values = ((name, at(asked, "spec", name)) for name in OVERRIDDEN)
    number = (f"/metadata/annotations/{SEQUENCE.replace('/', '~1')}", str(spec.seq))
    return (*((f"/spec/{name}", value) for name, value in values if value is not None), ("/spec/paused", False), number)


# The policy of a binding


class PolicyName(Struct, frozen=True):
    """Which policy a binding came from."""

    kind: type[Policy]
    namespace: str | None
    name: str


def policy_name(binding: ResourceBinding) -> PolicyName | None:
    """The policy that a binding came from; None if it came from none."""
    notes = binding.metadata.annotations
    if POLICY_NAME in notes:
        return PolicyName(PropagationPolicy, notes.get(POLICY_NAMESPACE), notes[POLICY_NAME])
    if CLUSTER_POLICY_NAME in notes:
        return PolicyName(ClusterPropagationPolicy, None, notes[CLUSTER_POLICY_NAME])
    return None


def asks_for_alignment(policy: Policy) -> bool:
    """Whether `kedge align` is to align what a policy propagates."""
    return policy.metadata.annotations.get(ALIGN) == "true"


def policy_problem(selectors: Sequence[ResourceSelector], spec: BindingSpec) -> str:
    """Why a policy cannot let the clusters of one binding through one by one; empty if it can."""
    bound = spec.resource
    if (bound.api_version, bound.kind) != ("apps/v1", "Deployment"):
        return f"beside a Karmada only Deployments of apps/v1 are aligned, not {bound.kind} of {bound.api_version}"
    if len(selectors) != 1 or (selectors[0].kind, selectors[0].name) != (bound.kind, bound.name):
        named = f"{bound.kind} {bound.namespace}/{bound.name}"
        return f"the policy selects more than {named}, which would be let through as well: give it a policy of its own"
    return "" if _is_divided(spec) else "its replicas are not divided over the clusters"


def _is_divided(spec: BindingSpec) -> bool:
    given = msgspec.convert(spec.placement, Placement).replica_scheduling
    return given is not None and given.replica_scheduling_type is ReplicaSchedulingType.divided
