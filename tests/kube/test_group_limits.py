"""What is counted of requests to an API server, and how many are sent of each group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from kedge.kube.api_paths import group_of, resource_of
from kedge.kube.client_metrics import ClientMetrics
from kedge.kube.group_limits import GroupLimitedTransport, MeasuredTransport
from kedge.kube.transport import BufferedStream, ConnectionFailed, Request, Response, Stream
from support.virtual import run

SECONDS = "rollout_operator_kubernetes_api_client_request_duration_seconds"
LIMITED = "rollout_operator_kubernetes_api_client_rate_limited_requests_total"
DELAYED = "kedge_kubernetes_api_client_delayed_requests_total"
PODS, SETS, EVENTS = (
    "/api/v1/namespaces/n/pods/p",
    "/apis/apps/v1/namespaces/n/statefulsets",
    "/api/v1/namespaces/n/events",
)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/api/v1/nodes", "core/v1/nodes collection"),
        ("/api/v1/nodes/n", "core/v1/nodes object"),
        ("/api/v1/nodes/n/status", "core/v1/nodes object status subresource"),
        ("/api/v1/namespaces", "core/v1/namespaces collection"),
        ("/api/v1/namespaces/ns", "core/v1/namespaces object"),
        ("/api/v1/namespaces/ns/status", "core/v1/namespaces object status subresource"),
        ("/api/v1/namespaces/ns/finalize", "core/v1/namespaces object finalize subresource"),
        ("/api/v1/namespaces/ns/pods", "core/v1/pods collection"),
        ("/api/v1/namespaces/ns/pods/p", "core/v1/pods object"),
        ("/api/v1/namespaces/ns/pods/p/eviction", "core/v1/pods object eviction subresource"),
        ("/apis/apps/v1/namespaces/ns/statefulsets/s/status", "apps/v1/statefulsets object status subresource"),
        ("/apis/apps/v1/statefulsets", "apps/v1/statefulsets collection"),
        ("/apis/apps/v1", "/apis/apps/v1"),
        ("/api/v1", "/api/v1"),
        ("/version", "/version"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_a_path_is_shown_without_names(path: str, shown: str) -> None:
    assert resource_of(path) == shown


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/api/v1/pods", "core"),
        ("/api", "core"),
        ("/apis/apps/v1/statefulsets", "apps"),
        ("/apis/apps", "apps"),
        ("/apis", "apis"),
        ("/healthz", "/healthz"),
        ("/openapi/v2", "/openapi"),
        ("/", "/"),
        ("", "/"),
    ],
)
def test_a_path_is_of_a_group(path: str, group: str) -> None:
    assert group_of(path) == group


class Server:
    """Answers after a time, and remembers when it was asked for what."""

    def __init__(self, takes: float = 0.0, *, broken: bool = False) -> None:
        self.asked: list[tuple[float, str]] = []
        self.closed = False
        self._takes = takes
        self._broken = broken

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.asked.append((asyncio.get_running_loop().time(), request.path))
        await asyncio.sleep(self._takes)
        if self._broken:
            raise ConnectionFailed("reset", sent=True)
        return Response(200)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        yield BufferedStream(await self.send(request, timeout=timeout))

    async def close(self) -> None:
        self.closed = True


def count(registry: CollectorRegistry, path: str, code: str = "200") -> float | None:
    return registry.get_sample_value(f"{SECONDS}_count", {"path": path, "method": "GET", "status_code": code})


def test_every_answer_is_measured_by_resource() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        transport = MeasuredTransport(Server(takes=0.2), ClientMetrics(registry))
        await transport.send(Request("GET", PODS), timeout=5)
        async with transport.stream(Request("GET", SETS), timeout=5, silence=5):
            await asyncio.sleep(60)
        with pytest.raises(ConnectionFailed):
            await MeasuredTransport(Server(broken=True), ClientMetrics(CollectorRegistry())).send(
                Request("GET", PODS), timeout=5
            )

    run(work())
    assert count(registry, "core/v1/pods object") == 1
    assert count(registry, "apps/v1/statefulsets collection") == 1
    labels = {"path": "apps/v1/statefulsets collection", "method": "GET", "status_code": "200", "le": "0.25"}
    assert registry.get_sample_value(f"{SECONDS}_bucket", labels) == 1, "how long a watch stays open is not counted"


def test_no_answer_is_counted_as_an_error() -> None:
    registry = CollectorRegistry()

    async def work() -> None:
        transport = MeasuredTransport(Server(broken=True), ClientMetrics(registry))
        with pytest.raises(ConnectionFailed):
            await transport.send(Request("GET", PODS), timeout=5)
        with pytest.raises(ConnectionFailed):
            async with transport.stream(Request("GET", PODS), timeout=5, silence=5):
                pass
        await transport.close()

    run(work())
    assert count(registry, "core/v1/pods object", "error") == 2


def test_a_group_that_has_used_up_its_burst_holds_up_no_other_group_and_no_events() -> None:
    registry, server = CollectorRegistry(), Server()

    async def work() -> None:
        transport = GroupLimitedTransport(server, qps=5, burst=2, metrics=ClientMetrics(registry))
        async with asyncio.TaskGroup() as tasks:
            for path in (PODS, PODS, PODS, PODS, SETS, EVENTS):
                tasks.create_task(transport.send(Request("GET", path), timeout=60))
        async with transport.stream(Request("GET", SETS), timeout=5, silence=5):
            pass
        await transport.close()

    run(work())
    began = server.asked[0][0]
    late = [(round(at - began, 6), path) for at, path in server.asked if at > began]
    assert late == [(0.2, PODS), (0.4, PODS), (0.4, SETS)], "the last one is the stream"
    assert registry.get_sample_value(DELAYED, {"api_group": "core"}) == 2
    assert registry.get_sample_value(DELAYED, {"api_group": "apps"}) is None
    assert registry.get_sample_value(LIMITED, {"api_group": "core"}) is None, "all of them were sent"
    assert registry.get_sample_value(LIMITED, {"api_group": "apps"}) is None
    assert server.closed


def test_a_request_waits_no_longer_for_its_turn_than_it_may_take() -> None:
    async def work() -> None:
        transport = GroupLimitedTransport(Server(), qps=0.1, burst=1, metrics=ClientMetrics(CollectorRegistry()))
        await transport.send(Request("GET", PODS), timeout=5)
        with pytest.raises(ConnectionFailed) as failed:
            await transport.send(Request("GET", PODS), timeout=5)
        assert (
            str(failed.value) == 'client-side rate limiter for Kubernetes API group "core": context deadline exceeded'
        )
        assert not failed.value.sent

    run(work())


def test_a_request_that_is_given_up_while_it_waits_counts_as_one_that_was_not_sent() -> None:
    registry, server = CollectorRegistry(), Server()

    async def work() -> None:
        transport = GroupLimitedTransport(server, qps=0.1, burst=1, metrics=ClientMetrics(registry))
        await transport.send(Request("GET", PODS), timeout=5)
        with pytest.raises(ConnectionFailed):
            await transport.send(Request("GET", PODS), timeout=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await transport.send(Request("GET", PODS), timeout=60)

    run(work())
    assert len(server.asked) == 1
    assert registry.get_sample_value(LIMITED, {"api_group": "core"}) == 2


def test_a_rate_of_zero_is_no_limit() -> None:
    server = Server()

    async def work() -> None:
        transport = GroupLimitedTransport(server, qps=0, burst=0, metrics=ClientMetrics(CollectorRegistry()))
        for _ in range(100):
            await transport.send(Request("GET", PODS), timeout=5)

    run(work())
    assert len({at for at, _ in server.asked}) == 1
