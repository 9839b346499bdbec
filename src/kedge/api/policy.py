"""The policy group, as far as Kedge reads it: how many pods may be away at once."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
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
    """How many of the guarded pods may go now."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Observed, ...] = ()


class PodDisruptionBudget(Value, frozen=True, gc=False):
    """How many pods of a kind may be away at once."""

    resource: ClassVar[Resource] = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
