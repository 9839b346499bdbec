"""Request metrics: how many requests an HTTP server of an operator answers, how fast and how large.

Names, labels and buckets are those of Grafana's rollout-operator, so its dashboards work. One `RequestMetrics` serves
all HTTP servers of a process: give each application its `middleware`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge, Histogram

DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
SIZES: Final = tuple(float(4 * 4**step) for step in range(15))
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})


class RequestMetrics:
    """What the HTTP servers of one process count together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        route = ("method", "route")
        self._seconds = Histogram(
            "rollout_operator_request_duration_seconds",
            "Time (in seconds) spent serving HTTP requests",
            ("method", "route", "status_code", "ws"),
            buckets=DURATIONS,
            registry=registry,
        )
        self._asked = Histogram(
            "rollout_operator_request_message_bytes",
            "Size (in bytes) of messages received in requests",
            route,
            buckets=SIZES,
            registry=registry,
        )
        self._answered = Histogram(
            "rollout_operator_response_message_bytes",
            "Size (in bytes) of messages sent in responses",
            route,
            buckets=SIZES,
            registry=registry,
        )
        self._inflight = Gauge(
            "rollout_operator_inflight_requests", "Requests that are being answered", route, registry=registry
        )

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Count one request, however it ends."""
        labels = (request.method if request.method in _METHODS else "other", route_of(request))
        started = asyncio.get_running_loop().time()
        status, sent = 500, 0
        self._inflight.labels(*labels).inc()
        try:
            answer = await handler(request)
            status, sent = answer.status, _size(answer)
        except web.HTTPException as error:
            status, sent = error.status, _size(error)
            raise
        else:
            return answer
        finally:
            self._inflight.labels(*labels).dec()
            seconds = asyncio.get_running_loop().time() - started
            self._seconds.labels(*labels, str(status), "false").observe(seconds)
            self._asked.labels(*labels).observe(request.content_length or 0)
            self._answered.labels(*labels).observe(sent)


def route_of(request: web.Request) -> str:
    """The label of a path that is served: `admission_no_downscale`; others have one label in common."""
    resource = request.match_info.route.resource
    if resource is None:
        return "notfound" if isinstance(request.match_info.http_exception, web.HTTPNotFound) else "other"
    return resource.canonical.partition("{")[0].strip("/").replace("/", "_").replace("-", "_") or "root"


def _size(answer: web.StreamResponse) -> int:
    return (answer.content_length or 0) if isinstance(answer, web.Response) else 0
