"""Placement metrics: when each placement's status last changed, under the name that dashboards know (kubefleet.md §8).

One series for each placement: what it stands at, with the time at which it came to stand there.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from kedge.api.condition import TRUE, Condition
from kedge.api.placement_status import PlacementStatus
from kedge.kube.queue import Key
from kedge.plan.reporting.placement_status import is_complete

COMPLETED: Final = "Completed"


class PlacementMetrics:
    """What is told of the placements of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._times = Gauge(
            "fleet_workload_placement_status_last_timestamp_seconds",
            "When a placement came to stand where it stands",
            ("namespace", "name", "generation", "conditionType", "status", "reason"),
            registry=registry,
        )
        self._shown: dict[Key, tuple[str, ...]] = {}

    def stands(self, key: Key, generation: int, status: PlacementStatus, now: float) -> None:
        """A placement has this status now."""
        labels = (key.namespace or "", key.name, str(generation), *_standing(status))
        if self._shown.get(key) != labels:
            self.forget(key)
            self._shown[key] = labels
            self._times.labels(*labels).set(now)

    def forget(self, key: Key) -> None:
        """A placement is gone."""
        if (labels := self._shown.pop(key, None)) is not None:
            self._times.remove(*labels)


def _standing(status: PlacementStatus) -> tuple[str, str, str]:
    """The first step that is not taken; or that all are."""
    if is_complete(status):
        return COMPLETED, TRUE, COMPLETED
    open_step: Condition | None = next((one for one in status.conditions if one.status != TRUE), None)
    found = open_step or (status.conditions[-1] if status.conditions else None)
    return (found.type, found.status, found.reason) if found is not None else ("", "", "")
