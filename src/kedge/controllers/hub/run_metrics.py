"""Run metrics: where each staged run stands and since when, how long clusters took, and people.

Under the names that dashboards know (kubefleet.md §8).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from kedge.api.condition import TRUE
from kedge.api.reasons import APPROVAL_GIVEN, APPROVAL_REQUESTED, CLUSTER_STARTED, INITIALIZED, PROGRESSING, SUCCEEDED
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageTaskStatus
from kedge.api.twins import Run
from kedge.plan.staging.approvals import When
from kedge.plan.staging.conditions import find, has_condition

_SECONDS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_LONG: Final = (60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400, 259200)
_PREFIX: Final = "fleet_workload_update_run"


class RunMetrics:
    """What is told of the runs of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("namespace", "name", "state", "condition", "status", "reason", "failureType")
        name = f"{_PREFIX}_status_last_timestamp_seconds"
        self._times = Gauge(name, "When a run came to stand where it stands", labels, registry=registry)
        self._clusters = Histogram(
            f"{_PREFIX}_stage_cluster_updating_duration_seconds",
            "How long a cluster took from when its update began",
            ("namespace", "name"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._approvals = Histogram(
            f"{_PREFIX}_approval_request_latency_seconds",
            "How long a request waited for its approval",
            ("namespace", "name", "taskType"),
            buckets=_LONG,
            registry=registry,
        )
        self._shown: dict[str, tuple[str, ...]] = {}  # by uid

    def said(self, before: Run, after: Run, now: float) -> None:
        """A run says something new."""
        meta = after.metadata
        labels = (meta.namespace or "", meta.name, str(after.spec.state or ""), *_standing(after.status), "")
        if self._shown.get(meta.uid) != labels:
            self.forget(after)
            self._shown[meta.uid] = labels
            self._times.labels(*labels).set(now)
        done = {one.cluster_name for one in _clusters(before.status) if has_condition(one, SUCCEEDED)}
        for cluster in _clusters(after.status):
            if cluster.cluster_name not in done and (took := _took(cluster)) is not None:
                self._clusters.labels(meta.namespace or "", meta.name).observe(took.total_seconds())
        given = {task.approval_request_name for _, task in _tasks(before.status) if has_condition(task, APPROVAL_GIVEN)}
        for when, task in _tasks(after.status):
            if task.approval_request_name not in given and (took := _waited(task)) is not None:
                self._approvals.labels(meta.namespace or "", meta.name, when.value).observe(took.total_seconds())

    def forget(self, run: Run) -> None:
        """A run is gone."""
        if (labels := self._shown.pop(run.metadata.uid, None)) is not None:
            self._times.remove(*labels)


def _standing(status: RunStatus) -> tuple[str, str, str]:
    found = find(status, SUCCEEDED) or find(status, PROGRESSING) or find(status, INITIALIZED)
    return (found.type, found.status, found.reason) if found is not None else ("", "", "")


def _took(cluster: ClusterUpdateStatus) -> timedelta | None:
    begun, done = find(cluster, CLUSTER_STARTED), find(cluster, SUCCEEDED)
    if begun is None or done is None or done.status != TRUE:
        return None
    return done.last_transition_time - begun.last_transition_time


def _waited(task: StageTaskStatus) -> timedelta | None:
    asked, given = find(task, APPROVAL_REQUESTED), find(task, APPROVAL_GIVEN)
    return None if asked is None or given is None else given.last_transition_time - asked.last_transition_time


def _clusters(status: RunStatus) -> Iterator[ClusterUpdateStatus]:
    return (cluster for stage in status.stages_status for cluster in stage.clusters)


def _tasks(status: RunStatus) -> Iterator[tuple[When, StageTaskStatus]]:
    for stage in status.stages_status:
        yield from ((When.before, task) for task in stage.before_stage_task_status)
        yield from ((When.after, task) for task in stage.after_stage_task_status)
