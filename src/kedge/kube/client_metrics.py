"""Client metrics: how API servers answer a process, by resource, under the names of Grafana's rollout-operator.

Labels hold no names of objects. One for all connections of a process.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from kedge.kube.api_paths import resource_of

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
NO_ANSWER: Final = "error"


class ClientMetrics:
    """What is counted about requests to API servers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "rollout_operator_kubernetes_api_client_request_duration_seconds",
            "Time (in seconds) spent waiting for responses from the Kubernetes API",
            ("path", "method", "status_code"),
            buckets=SECONDS,
            registry=registry,
        )
        self._limited = Counter(
            "rollout_operator_kubernetes_api_client_rate_limited_requests_total",
            "Requests to the Kubernetes API that were not sent: they were given up while the rate limit held them back",
            ("api_group",),
            registry=registry,
        )
        self._delayed = Counter(
            "kedge_kubernetes_api_client_delayed_requests_total",
            "Requests to the Kubernetes API that waited for the rate limit of this client",
            ("api_group",),
            registry=registry,
        )

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """An answer came after this time; status 0: none came."""
        self._seconds.labels(resource_of(path), method, str(status) if status else NO_ANSWER).observe(seconds)

    def delayed(self, api_group: str) -> None:
        """A request has to wait for its turn."""
        self._delayed.labels(api_group).inc()

    def limited(self, api_group: str) -> None:
        """A request was given up before its turn came, and never sent. The peer's alert is about these."""
        self._limited.labels(api_group).inc()
