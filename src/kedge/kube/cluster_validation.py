"""Cluster validation: refuses requests that were meant for another cluster's process, by the header `X-Cluster`.

    validation = ClusterValidation("prod", excluded_paths=("admission/no-downscale",))
    app = web.Application(middlewares=[validation.middleware(ValidationMetrics(registry))])

Grafana's programs send the header with every call to each other. Probes and metrics are never refused, nor are the
paths and clients that are excluded. A refusal is a 511 with a JSON body that says what was expected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter

HEADER: Final = "X-Cluster"
REFUSED: Final = 511
MOST_LABELS: Final = 50
NEVER_CHECKED: Final = ("metrics", "ready", "healthz", "readyz")
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = logging.getLogger(__name__)


class ValidationMetrics:
    """Counts requests that were meant for others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._invalid = Counter(
            "rollout_operator_server_invalid_cluster_validation_label_requests_total",
            "Number of requests received by server with invalid cluster validation label",
            ("protocol", "method", "cluster_validation_label", "request_cluster_validation_label"),
            registry=registry,
        )
        self._given: set[str] = set()

    def invalid(self, route: str, expected: str, given: str) -> None:
        # Anyone may send any label, and each would be a series of its own.
        if given not in self._given and len(self._given) >= MOST_LABELS:
            given = "other"
        self._given.add(given)
        self._invalid.labels("http", route, expected, given).inc()


class ClusterValidation(Struct, frozen=True):
    """Which label requests must carry, and which need none."""

    label: str
    soft: bool = False
    """Whether wrong requests are only logged and counted."""
    excluded_paths: tuple[str, ...] = ()
    """Paths without their first slash."""
    excluded_user_agents: tuple[str, ...] = ()
    """Regular expressions; a client that one of them is found in is not checked."""

    def problem(self, path: str, label: str, user_agent: str = "") -> str:
        """What is wrong with a request, or nothing."""
        if label == self.label or self._is_excluded(path, user_agent):
            return ""
        what = f'wrong cluster validation label "{label}"' if label else "empty cluster validation label"
        return f"rejected request with {what} - it should be one of [{self.label}]"

    def middleware(self, metrics: ValidationMetrics) -> Middleware:
        """The check of every request of an application."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            given = request.headers.get(HEADER, "")
            problem = self.problem(request.path, given, request.headers.get("User-Agent", ""))
            if not problem:
                return await handler(request)
            metrics.invalid(_route(request), self.label, given)
            log.warning(
                "request with %s cluster validation label",
                "wrong" if given else "no",
                extra={"path": request.path, "request_cluster_validation_label": given, "soft_validation": self.soft},
            )
            return await handler(request) if self.soft else _refusal(problem)

        return check

    def _is_excluded(self, path: str, user_agent: str) -> bool:
        fixed = [*NEVER_CHECKED, *self.excluded_paths]
        allowed = "|".join([r"debug/pprof.*", *map(re.escape, fixed)])
        if re.search(f"/({allowed})", path):
            return True
        return any(re.search(pattern, user_agent) for pattern in self.excluded_user_agents)


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "notfound"


def _refusal(problem: str) -> web.Response:
    body = msgspec.json.encode({"cluster_validation_error_message": problem})
    return web.Response(status=REFUSED, body=body, headers={"Content-Type": "application/json"})
