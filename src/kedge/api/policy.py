"""The groups policy and discovery, as far as Kedge reads them: how many pods may be away, and which answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from kedge.api.condition import Condition
from kedge.api.meta import ObjectMeta, Value
from kedge.api.numbers import IntOrPercent
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector


class PodDisruptionBudgetSpec(Value, frozen=True, gc=False):
    """Which pods are guarded, and how well."""

    selector: LabelSelector | None = None
    min_available: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None


class PodDisruptionBudgetStatus(Value, frozen=True, gc=False):
    """How many of the guarded pods may go now. Kubernetes writes zeros too."""

    observed_generation: int = 0
    disruptions_allowed: int = field(default_factory=int)
    current_healthy: int = field(default_factory=int)
    desired_healthy: int = field(default_factory=int)
    expected_pods: int = field(default_factory=int)
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Value, frozen=True, gc=False):
    """How many pods of a kind may be away at once."""

    resource: ClassVar[Resource] = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class EndpointSlice(Value, frozen=True, gc=False):
    """Some of the pods behind a service. Go writes an empty list as null."""

    resource: ClassVar[Resource] = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    address_type: str = ""
    endpoints: tuple[Mapping[str, Any], ...] | None = None
    ports: tuple[Mapping[str, Any], ...] | None = None
