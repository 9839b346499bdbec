"""Outbound metrics: how long calls to pods take, and how they end, under the name that dashboards know.

    outbound = MeasuredOutbound(HttpOutbound(), registry)

Measures whatever passes through it. The label `path` is the path of the URL alone: hosts are pods, of which there are
many.
"""

from __future__ import annotations

import asyncio
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from yarl import URL

from kedge.kube.connect.outbound import Answer, Call, Outbound

NO_ANSWER: Final = "error"
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)


class MeasuredOutbound:
    """Calls through another `Outbound`, measured."""

    def __init__(self, outbound: Outbound, registry: CollectorRegistry) -> None:
        self._outbound = outbound
        self._seconds = Histogram(
            "rollout_operator_pod_http_client_request_duration_seconds",
            "Time (in seconds) spent waiting for answers of pods",
            ("path", "method", "status_code"),
            buckets=BUCKETS,
            registry=registry,
        )

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        now = asyncio.get_running_loop().time
        started, status = now(), NO_ANSWER
        try:
            answer = await self._outbound.fetch(call, timeout=timeout)
            status = str(answer.status)
        finally:
            self._seconds.labels(_path(call.url), call.method, status).observe(now() - started)
        return answer

    async def close(self) -> None:
        await self._outbound.close()


def _path(url: str) -> str:
    try:
        return URL(url).path
    except ValueError:
        return ""
