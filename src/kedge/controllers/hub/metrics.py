"""Metrics: what a hub counts about placements, under the names that dashboards know (kubefleet.md §8).

How long scheduling takes; the state of each placement and of each staged run, and since when; how long clusters and
approvals took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from kedge.api.condition import TRUE, Condition
from kedge.api.placement_kinds import Run
from kedge.api.placement_status import PlacementStatus
from kedge.api.reasons import APPROVAL_GIVEN, APPROVAL_REQUESTED, CLUSTER_STARTED, INITIALIZED, PROGRESSING, SUCCEEDED
from kedge.api.staged_status import ClusterUpdateStatus, RunStatus, StageTaskStatus
from kedge.kube.queue import Key
from kedge.plan.reporting.placement_status import is_complete
from kedge.plan.staging.approvals import When
from kedge.plan.staging.conditions import find, has_condition

_MILLISECONDS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)


class SchedulingMetrics:
    """What the schedulers of one process count together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cycles = Histogram(
            "scheduling_cycle_duration_milliseconds",
            "How long it took to schedule a placement",
            ("is_failed", "needs_requeue"),
            buckets=_MILLISECONDS,
            registry=registry,
        )
        self._active = Gauge("scheduling_active_workers", "Placements that are being scheduled", registry=registry)

    @contextmanager
    def cycle(self) -> Iterator[None]:
        """One placement is being scheduled, from beginning to end. Nothing is ever left for another cycle."""
        now = asyncio.get_running_loop().time
        started, failed = now(), "true"
        self._active.inc()
        try:
            yield
            failed = "false"
        finally:
            self._active.dec()
            self._cycles.labels(failed, "false").observe((now() - started) * 1000)


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
        labels = (key.namespace or "", key.name, str(generation), *_first_open_step(status))
        if self._shown.get(key) != labels:
            self.forget(key)
            self._shown[key] = labels
            self._times.labels(*labels).set(now)

    def forget(self, key: Key) -> None:
        """A placement is gone."""
        if (labels := self._shown.pop(key, None)) is not None:
            self._times.remove(*labels)


def _first_open_step(status: PlacementStatus) -> tuple[str, str, str]:
    """The first step that is not taken; or that all are."""
    if is_complete(status):
        return COMPLETED, TRUE, COMPLETED
    open_step: Condition | None = next((one for one in status.conditions if one.status != TRUE), None)
    found = open_step or (status.conditions[-1] if status.conditions else None)
    return (found.type, found.status, found.reason) if found is not None else ("", "", "")


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
        labels = (meta.namespace or "", meta.name, str(after.spec.state or ""), *_state_of(after.status), "")
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


def _state_of(status: RunStatus) -> tuple[str, str, str]:
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
