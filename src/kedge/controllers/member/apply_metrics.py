"""Apply metrics: how members fare with their Works, under the names KubeFleet's dashboards know (kubefleet.md §8).

One for all members of a process. No label names a Work or a member: those come by the thousand.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

from kedge.kube.tally import SECONDS
from kedge.plan.applying.work_status import ApplyResult

_WORK = ("apply_status", "availability_status", "diff_reporting_status")
_MANIFEST = (*_WORK, "drift_detection_status", "diff_detection_status")
_SKIPPED = "skipped"


class ApplyMetrics:
    """What is counted about applying."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._seconds = Histogram(
            "work_apply_time_seconds", "How long a pass over a Work took", buckets=SECONDS, registry=registry
        )
        self._works = Counter(
            "fleet_work_processing_requests_total", "Passes over Works by how they ended", _WORK, registry=registry
        )
        self._manifests = Counter(
            "fleet_manifest_processing_requests_total", "The same of each object", _MANIFEST, registry=registry
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> ApplyMetrics:
        """The one in this registry: made by the first of its members."""
        found = _OF.get(registry)
        if found is None:
            found = _OF[registry] = cls(registry)
        return found

    def passed(self, results: Iterable[ApplyResult], seconds: float) -> None:
        """A pass over a Work came to its end."""
        states = [_states(result) for result in results]
        self._seconds.observe(seconds)
        applied = "applied" if all(state[0] == "applied" for state in states) else "failed"
        available = "available" if all(state[1] != "unavailable" for state in states) else "unavailable"
        self._works.labels(applied, available if applied == "applied" else _SKIPPED, _SKIPPED).inc()
        for state in states:
            self._manifests.labels(*state, _SKIPPED, _SKIPPED, _SKIPPED).inc()


def _states(result: ApplyResult) -> tuple[str, str]:
    if not result.applied or result.verdict is None:
        return ("applied" if result.applied else "failed"), _SKIPPED
    if not result.verdict.available:
        return "applied", "unavailable"
    return "applied", "available" if result.verdict.trackable else "untrackable"


_OF: WeakKeyDictionary[CollectorRegistry, ApplyMetrics] = WeakKeyDictionary()
