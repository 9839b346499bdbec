"""The webhook server over HTTP: its answers, its limits, what it counts and what it logs."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from kedge.admission.request_metrics import RequestMetrics
from kedge.admission.review import allow, deny
from kedge.admission.server import MAX_BODY_BYTES, Rule, WebhookServer, rule_deadline
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.kube.logs import fields

PATH = "/admission/some-rule"


def asked(uid: str = "u-1", **request: Any) -> dict[str, Any]:
    named = {"name": "web", "namespace": "shop", "resource": {"group": "apps", "resource": "statefulsets"}}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": uid, **named, **request},
    }


@asynccontextmanager
async def serving(rules: Mapping[str, Rule], **options: Any) -> AsyncIterator[TestClient[Any, Any]]:
    metrics = options.pop("metrics", None)
    app = WebhookServer(rules, **options).application([metrics.middleware] if metrics is not None else ())
    async with TestClient(TestServer(app)) as client:
        yield client


async def post(client: TestClient[Any, Any], body: Any, path: str = PATH) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    async with client.post(path, data=io.BytesIO(data), headers={"Content-Type": "application/json"}) as answer:
        said = await answer.read()
        return answer.status, msgspec.json.decode(said) if answer.status == 200 else said.decode()


async def yes(request: AdmissionRequest) -> AdmissionResponse:
    return allow(request)


async def no(request: AdmissionRequest) -> AdmissionResponse:
    return deny(request, "not today")


async def broken(request: AdmissionRequest) -> AdmissionResponse:
    raise KeyError("oops")


async def forever(request: AdmissionRequest) -> AdmissionResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def times_out_itself(request: AdmissionRequest) -> AdmissionResponse:
    raise TimeoutError("something else took too long")


async def test_both_answers_are_200() -> None:
    async with serving({PATH: yes, "/admission/no": no}) as client:
        status, answer = await post(client, asked())
        assert (status, answer["response"]) == (200, {"uid": "u-1", "allowed": True})
        status, answer = await post(client, asked("u-2"), "/admission/no")
        assert (status, answer["response"]) == (
            200,
            {"uid": "u-2", "allowed": False, "status": {"message": "not today"}},
        )


async def test_an_answer_is_JSON() -> None:
    async with serving({PATH: yes}) as client:
        body = msgspec.json.encode(asked())
        async with client.post(PATH, data=body, headers={"Content-Type": "application/json"}) as answer:
            assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"garbage", "Request could not be decoded: "),
        ({"apiVersion": "v1", "kind": "Pod"}, "Unsupported group version kind: /v1, Kind=Pod\n"),
        ({**asked(), "request": None}, "Request could not be decoded: the AdmissionReview has no request\n"),
    ],
)
async def test_what_is_no_review_is_a_bad_request(body: Any, text: str) -> None:
    async with serving({PATH: yes}) as client:
        status, said = await post(client, body)
        assert status == 400
        assert said.startswith(text)


async def test_without_a_content_type_it_is_a_bad_request() -> None:
    async with serving({PATH: yes}) as client, client.get(PATH) as answer:
        assert (answer.status, await answer.text()) == (400, "wrong content type\n")


async def test_unknown_paths_are_not_found() -> None:
    async with serving({PATH: yes}) as client:
        assert (await post(client, asked(), "/admission/other"))[0] == 404


async def test_a_body_as_large_as_two_objects_is_read_and_a_larger_one_refused() -> None:
    async with serving({PATH: yes}) as client:
        large = asked(object={"data": "x" * 3 * 2**20}, oldObject={"data": "x" * 3 * 2**20})
        assert (await post(client, large))[0] == 200
        assert (await post(client, b" " * (MAX_BODY_BYTES + 1)))[0] == 413


async def test_a_rule_that_breaks_is_500_and_logged_with_its_object(caplog: pytest.LogCaptureFixture) -> None:
    told: list[dict[str, object]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(fields(record))

    log, keep = logging.getLogger("kedge.admission.server"), Keep()
    log.addHandler(keep)
    try:
        async with serving({PATH: broken, "/fine": yes}) as client:
            status, said = await post(client, asked())
            assert (status, said) == (500, f"{PATH} failed: its log says why\n")
            assert (await post(client, asked(), "/fine"))[0] == 200
    finally:
        log.removeHandler(keep)
    assert told[0] | {"traceback": ""} == {
        "webhook": PATH,
        "resource": "statefulsets",
        "namespace": "shop",
        "name": "web",
        "uid": "u-1",
        "operation": "",
        "error": "KeyError: 'oops'",
        "traceback": "",
    }


async def test_a_rule_that_does_not_decide_in_time_denies() -> None:
    async with serving({PATH: forever}, request_timeout=0.1) as client:
        status, answer = await post(client, asked())
    assert status == 200
    assert answer["response"] == {
        "uid": "u-1",
        "allowed": False,
        "status": {"message": "no decision on statefulsets/web in shop within 90ms: try again", "code": 504},
    }


def test_a_rule_has_nine_tenths_of_the_time() -> None:
    assert rule_deadline() == 9.0
    assert rule_deadline(20.0) == 18.0


async def test_a_time_out_of_the_rule_itself_is_a_failure_of_the_rule() -> None:
    async with serving({PATH: times_out_itself}) as client:
        assert (await post(client, asked()))[0] == 500


async def test_a_slow_rule_does_not_hold_up_another_request() -> None:
    release = asyncio.Event()

    async def slow(request: AdmissionRequest) -> AdmissionResponse:
        if request.uid == "slow":
            await release.wait()
        return allow(request)

    async with serving({PATH: slow, "/fast": yes}) as client:
        waiting = asyncio.create_task(post(client, asked("slow")))
        assert (await post(client, asked("quick")))[0] == 200
        assert (await post(client, asked(), "/fast"))[0] == 200
        assert not waiting.done()
        release.set()
        assert (await waiting)[0] == 200


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"rollout_operator_{name}", labels)


async def test_requests_are_counted_under_the_names_that_dashboards_know() -> None:
    registry = CollectorRegistry()
    rules = {"/admission/no-downscale": yes, "/admission/broken": broken}
    async with serving(rules, metrics=RequestMetrics(registry)) as client:
        body = msgspec.json.encode(asked())
        await post(client, body, "/admission/no-downscale")
        await post(client, body, "/admission/broken")
        await post(client, b"x", "/admission/no-downscale")
        await post(client, body, "/elsewhere")
    counts = {
        ("admission_no_downscale", "200"): 1,
        ("admission_no_downscale", "400"): 1,
        ("admission_broken", "500"): 1,
        ("notfound", "404"): 1,
    }
    for (route, code), count in counts.items():
        labels = {"method": "POST", "route": route, "status_code": code, "ws": "false"}
        assert value(registry, "request_duration_seconds_count", **labels) == count
    of = {"method": "POST", "route": "admission_no_downscale"}
    assert value(registry, "request_message_bytes_sum", **of) == len(body) + 1
    assert value(registry, "response_message_bytes_count", **of) == 2
    assert value(registry, "inflight_requests", **of) == 0
    assert value(registry, "request_message_bytes_bucket", le="1024.0", **of) == 2
    seconds = {**of, "status_code": "200", "ws": "false", "le": "100.0"}
    assert value(registry, "request_duration_seconds_bucket", **seconds) == 1


async def test_requests_that_are_being_answered_are_counted() -> None:
    registry, release, begun = CollectorRegistry(), asyncio.Event(), asyncio.Event()

    async def slow(request: AdmissionRequest) -> AdmissionResponse:
        begun.set()
        await release.wait()
        return allow(request)

    async with serving({PATH: slow}, metrics=RequestMetrics(registry)) as client:
        waiting = asyncio.create_task(post(client, asked()))
        await begun.wait()
        assert value(registry, "inflight_requests", method="POST", route="admission_some_rule") == 1
        release.set()
        await waiting
    assert value(registry, "inflight_requests", method="POST", route="admission_some_rule") == 0
