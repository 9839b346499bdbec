"""Metrics: what dashboards for Kubernetes controllers already ask for, under the names they know.

Every manager has its own registry, so that many can live in one process. No label names a cluster or an object: there
may be thousands. The counts of queues are read when metrics are collected, and cost nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kedge.kube.histogram import SECONDS, DurationHistogram
from kedge.kube.queue import Queue

SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER = "success", "error", "requeue", "requeue_after"
NO_ANSWER = "<error>"  # client-go's word in the place of a code


class ControllerMetrics:
    """What one controller counts. Holds the children of its labels: looking them up costs more than counting."""

    def __init__(self, parent: Metrics, controller: str) -> None:
        total = parent.reconciles
        self._results = {
            result: total.labels(controller, result) for result in (SUCCESS, ERROR, REQUEUE, REQUEUE_AFTER)
        }
        self._errors = parent.reconcile_errors.labels(controller)
        self._seconds = parent.reconcile_seconds.labels(controller)
        self._stale = parent.stale_waits.labels(controller)
        self.active = parent.active_workers.labels(controller)
        self.workers = parent.workers.labels(controller)

    def ended(self, result: str, seconds: float) -> None:
        """A reconcile came to its end."""
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result == ERROR:
            self._errors.inc()

    def waited_for_cache(self) -> None:
        """A reconcile had to wait for a cache to show an own write."""
        self._stale.inc()


class Metrics:
    """All that one manager counts, in one registry."""

    def __init__(self, registry: CollectorRegistry | None = None, *, process: bool = False) -> None:
        """`process` adds memory, CPU and open files of the whole process: wanted once per process."""
        self.registry = registry = registry or CollectorRegistry()
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by how they ended",
            ("controller", "result"),
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed", ("controller",), registry=registry
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a reconcile took",
            ("controller",),
            buckets=SECONDS,
            registry=registry,
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers", "Workers with something to do", ("controller",), registry=registry
        )
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers there are", ("controller",), registry=registry
        )
        self.stale_waits = Counter(
            "stale_sync_waits_total",
            "Reconciles that waited for a cache to show an own write",
            ("controller",),
            registry=registry,
        )
        self._requests = Counter(
            "rest_client_requests_total", "Answers of API servers", ("code", "method"), registry=registry
        )
        self._leading = Gauge(
            "leader_election_master_status", "Whether this process leads", ("name",), registry=registry
        )
        self._answers: dict[tuple[str, int], Counter] = {}
        self._queues = QueueCollector()
        registry.register(self._queues)
        if process:
            ProcessCollector(registry=registry)

    def controller(self, name: str) -> ControllerMetrics:
        return ControllerMetrics(self, name)

    def answered(self, method: str, code: int) -> None:
        """An API server answered so; code 0: not at all. Fits `Client(on_answer=...)`."""
        child = self._answers.get((method, code))
        if child is None:
            child = self._requests.labels(str(code) if code else NO_ANSWER, method)
            self._answers[method, code] = child
        child.inc()

    def leading(self, name: str, leads: bool) -> None:
        self._leading.labels(name).set(leads)

    def watch_queue(self, name: str, queue: Queue) -> None:
        """Show this queue under this name, instead of the one that had it."""
        self._queues.queues[name] = queue


class QueueCollector(Collector):
    """Reads queues when asked. May be asked from another thread than theirs."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}

    def describe(self) -> Iterable[Metric]:
        return ()  # or a registry would collect at once, to learn the names

    def collect(self) -> Iterable[Metric]:
        yield self._gauge("workqueue_depth", "Keys ready for a worker", len)
        yield self._counter("workqueue_adds", "Keys added that were not waiting already", lambda queue: queue.adds)
        yield self._counter("workqueue_retries", "Keys added again after a failure", lambda queue: queue.retries)
        yield self._gauge(
            "workqueue_unfinished_work_seconds", "Time spent on what is in work", lambda queue: sum(queue.in_work())
        )
        yield self._gauge(
            "workqueue_longest_running_processor_seconds",
            "Time spent on what has been in work for longest",
            lambda queue: max(queue.in_work(), default=0.0),
        )
        yield self._durations("workqueue_queue_duration_seconds", "Time in line", lambda queue: queue.waited)
        yield self._durations("workqueue_work_duration_seconds", "Time in work", lambda queue: queue.worked)

    def _gauge(self, name: str, text: str, value: Callable[[Queue], float]) -> Metric:
        family = GaugeMetricFamily(name, text, labels=["name"])
        for controller, queue in list(self.queues.items()):
            family.add_metric([controller], value(queue))
        return family

    def _counter(self, name: str, text: str, value: Callable[[Queue], float]) -> Metric:
        family = CounterMetricFamily(name, text, labels=["name"])
        for controller, queue in list(self.queues.items()):
            family.add_metric([controller], value(queue))
        return family

    def _durations(self, name: str, text: str, histogram: Callable[[Queue], DurationHistogram]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=["name"])
        for controller, queue in list(self.queues.items()):
            seconds = histogram(queue)
            family.add_metric([controller], buckets=seconds.cumulative(), sum_value=seconds.total)
        return family
