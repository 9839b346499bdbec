"""Group metrics: how reconciles of rollout groups end, under the names of Grafana's rollout-operator.

    metrics.start(group)
    metrics.success(group, seconds, clock.now())      # or metrics.failed(group, seconds)
    metrics.forget(group)                             # the group is gone, and with it its series

Every series of a group exists from its first reconcile on, so that an alert on a rate sees the first failure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class GroupMetrics:
    """What is counted about rollout groups, by the value of their label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("rollout_group",)
        self._reconciles = Counter(
            "rollout_operator_group_reconciles_total",
            "Total number of reconciles started for a specific rollout group",
            label,
            registry=registry,
        )
        self._failed = Counter(
            "rollout_operator_group_reconciles_failed_total",
            "Total number of reconciles failed for a specific rollout group",
            label,
            registry=registry,
        )
        self._seconds = Histogram(
            "rollout_operator_group_reconcile_duration_seconds",
            "Total time spent reconciling a specific rollout group",
            label,
            buckets=SECONDS,
            registry=registry,
        )
        self._last_success = Gauge(
            "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
            "Unix timestamp of last successful reconcile run for a specific rollout group",
            label,
            registry=registry,
        )
        self._groups: set[str] = set()

    @property
    def groups(self) -> frozenset[str]:
        """The groups that have series."""
        return frozenset(self._groups)

    def start(self, group: str) -> None:
        """A reconcile begins."""
        self._groups.add(group)
        self._reconciles.labels(group).inc()
        self._failed.labels(group)
        self._last_success.labels(group)

    def failed(self, group: str, seconds: float) -> None:
        """It failed, after this time."""
        self._seconds.labels(group).observe(seconds)
        self._failed.labels(group).inc()

    def success(self, group: str, seconds: float, now: datetime) -> None:
        """It came to its end, after this time."""
        self._seconds.labels(group).observe(seconds)
        self._last_success.labels(group).set(now.timestamp())

    def forget(self, group: str) -> None:
        """The group has no StatefulSets any more."""
        if group in self._groups:
            self._groups.remove(group)
            for metric in (self._reconciles, self._failed, self._seconds, self._last_success):
                metric.remove(group)
