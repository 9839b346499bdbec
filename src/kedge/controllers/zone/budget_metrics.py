"""Budget metrics: what is counted of ZoneAwarePodDisruptionBudgets, under the names of Grafana's rollout-operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from kedge.plan.zoning.disruption import Decision

UPDATED: Final = "updated"
IGNORED: Final = "ignored"
INVALID: Final = "invalid"
DELETED: Final = "deleted"
DELETE_IGNORED: Final = "delete-ignored"
RESULTS: Final = (UPDATED, IGNORED, INVALID, DELETED, DELETE_IGNORED)


class BudgetMetrics:
    """What one process counts of budgets and of the decisions by them.

    Changes of budgets are counted from 0: a rate does not see a series that begins with 1.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._observed = Counter(
            "rollout_operator_zpdb_configurations_observed_total",
            "Changes of ZoneAwarePodDisruptionBudgets, by what came of them",
            ("result",),
            registry=registry,
        )
        for result in RESULTS:
            self._observed.labels(result)
        self._requests = Counter(
            "rollout_operator_zpdb_eviction_requests_total",
            "Decisions on pods that were to go, those of rollouts too",
            ("reason", "status"),
            registry=registry,
        )
        self._inflight = Gauge(
            "rollout_operator_zpdb_inflight_eviction_requests",
            "Evictions, and deletions of rollouts, that are being decided on",
            registry=registry,
        )

    def observed(self, result: str) -> None:
        """A budget changed, and this came of it; or it still is invalid."""
        self._observed.labels(result).inc()

    def decided(self, decision: Decision) -> None:
        """It was decided whether a pod may go."""
        self._requests.labels(decision.reason, str(decision.status)).inc()

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """An eviction, or what a rollout is to delete, is being decided on."""
        self._inflight.inc()
        try:
            yield
        finally:
            self._inflight.dec()
