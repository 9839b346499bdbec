"""Scheduling metrics: how long scheduling takes, under the names that dashboards know (kubefleet.md §8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

BUCKETS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)


class SchedulingMetrics:
    """What the schedulers of one process count together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cycles = Histogram(
            "scheduling_cycle_duration_milliseconds",
            "How long it took to schedule a placement",
            ("is_failed", "needs_requeue"),
            buckets=BUCKETS,
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
