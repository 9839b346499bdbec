"""What whoever runs the process can ask it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from kedge.kube.health import Address, Check, Health
from kedge.kube.histogram import DurationHistogram
from kedge.kube.metrics import Metrics
from kedge.kube.queue import Key, Queue


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def ask(session: ClientSession, health: Health, path: str, **headers: str) -> tuple[int, str, str]:
    async with health.serve(Address(port=0)) as url, session.get(url + path, headers=headers) as answer:
        return answer.status, await answer.text(), answer.headers["Content-Type"]


async def test_a_living_process_says_so(session: ClientSession) -> None:
    health = Health(lambda: [Check("hub", "down")], CollectorRegistry())
    assert (await ask(session, health, "/healthz"))[:2] == (200, "ok\n")


@pytest.mark.parametrize(
    ("checks", "status", "text"),
    [
        pytest.param([], 200, "ready\n", id="nothing to check"),
        pytest.param([Check("hub")], 200, "[+] hub ok\nready\n", id="all is well"),
        pytest.param(
            [Check("hub", "refused"), Check("queue")],
            503,
            "[-] hub: refused\n[+] queue ok\nnot ready\n",
            id="a required one fails",
        ),
        pytest.param([Check("member", "refused", required=False)], 200, "[~] member: refused\nready\n", id="another"),
    ],
)
async def test_readiness_lists_every_check(session: ClientSession, checks: list[Check], status: int, text: str) -> None:
    assert (await ask(session, Health(lambda: checks, CollectorRegistry()), "/readyz"))[:2] == (status, text)


async def test_checks_are_asked_anew_each_time(session: ClientSession) -> None:
    checks = [Check("hub", "refused")]
    async with Health(lambda: checks, CollectorRegistry()).serve(Address(port=0)) as url:
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 503
        checks = [Check("hub")]
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200


async def test_by_default_only_this_machine_is_answered() -> None:
    async with Health(list, CollectorRegistry()).serve(Address(port=0)) as url:
        assert url.startswith("http://127.0.0.1:")


async def test_an_address_that_is_taken_is_an_error() -> None:
    health = Health(list, CollectorRegistry())
    async with health.serve(Address(port=0)) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            async with health.serve(Address(port=port)):
                pass


async def test_metrics_are_in_the_form_that_was_asked_for(session: ClientSession) -> None:
    metrics = Metrics()
    metrics.answered("GET", 200)
    health = Health(list, metrics.registry)
    status, text, kind = await ask(session, health, "/metrics")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert 'rest_client_requests_total{code="200",method="GET"} 1.0' in text
    _, text, kind = await ask(session, health, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


async def test_metrics_of_the_process_are_there_when_wanted(session: ClientSession) -> None:
    health = Health(list, Metrics(process=True).registry)
    assert "process_resident_memory_bytes" in (await ask(session, health, "/metrics"))[1]


async def test_what_a_queue_counts_is_shown_under_the_usual_names() -> None:
    metrics = Metrics()
    queue = Queue(rng=random.Random(1))
    metrics.watch_queue("rollout", queue)
    for name in "abc":
        queue.add(Key("hub", None, name))
    first = await queue.get()
    assert first is not None
    queue.retry(first)
    await asyncio.sleep(0.01)
    queue.done(first)
    second = await queue.get()
    assert second is not None

    def value(name: str, **labels: str) -> float:
        found = metrics.registry.get_sample_value(name, {"name": "rollout", **labels})
        assert found is not None, name
        return found

    assert value("workqueue_depth") == 2 or queue.delayed == 0  # the retry may be due already
    assert value("workqueue_adds_total") >= 3
    assert value("workqueue_retries_total") == 1
    assert value("workqueue_queue_duration_seconds_count") == 2
    assert value("workqueue_queue_duration_seconds_bucket", le="+Inf") == 2
    assert value("workqueue_work_duration_seconds_count") == 1
    assert value("workqueue_work_duration_seconds_sum") >= 0.01
    assert value("workqueue_longest_running_processor_seconds") >= 0
    assert value("workqueue_unfinished_work_seconds") >= 0


def test_no_metric_names_a_cluster_or_an_object() -> None:
    metrics = Metrics()
    metrics.controller("rollout")
    metrics.answered("GET", 0)
    metrics.leading("hub", True)
    labels = {label for family in metrics.registry.collect() for s in family.samples for label in s.labels}
    assert labels <= {"controller", "result", "le", "code", "method", "name"}


def test_requests_without_an_answer_are_counted_as_client_go_does() -> None:
    metrics = Metrics()
    metrics.answered("GET", 0)
    metrics.answered("GET", 0)
    found = metrics.registry.get_sample_value("rest_client_requests_total", {"code": "<error>", "method": "GET"})
    assert found == 2


def test_two_managers_in_one_process_count_apart() -> None:
    first, second = Metrics(), Metrics()
    first.answered("GET", 200)
    labels = {"code": "200", "method": "GET"}
    assert first.registry.get_sample_value("rest_client_requests_total", labels) == 1
    assert second.registry.get_sample_value("rest_client_requests_total", labels) is None


def test_what_is_shown_can_be_parsed_again() -> None:
    from prometheus_client import generate_latest

    metrics = Metrics()
    metrics.controller("rollout").ended("success", 0.2)
    names = {family.name for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())}
    assert {"controller_runtime_reconcile", "controller_runtime_reconcile_time_seconds", "workqueue_depth"} <= names


def test_a_tally_counts_what_took_at_most_each_bound() -> None:
    histogram = DurationHistogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 5.0):
        histogram.add(seconds)
    assert histogram.cumulative() == [("1.0", 2.0), ("2.0", 3.0), ("+Inf", 4.0)]
    assert (histogram.count, histogram.total) == (4, 8.0)


def test_bounds_that_do_not_grow_are_refused() -> None:
    with pytest.raises(ValueError, match="must grow"):
        DurationHistogram((2.0, 1.0))


async def test_an_empty_host_is_every_network_by_ipv4_and_ipv6(session: ClientSession, unused_tcp_port: int) -> None:
    health = Health(list, CollectorRegistry())
    async with health.serve(Address("", unused_tcp_port)):
        for host in ("127.0.0.1", "[::1]"):
            async with session.get(f"http://{host}:{unused_tcp_port}/healthz") as answer:
                assert answer.status == 200
