"""Metrics are measured over real sockets, as their templates say; templates are on an embedded API server."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Secret
from kedge.api.crd import crd
from kedge.api.metric_template import MetricTemplate
from kedge.controllers.metric_queries import MetricQueries
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Answer, Call, HttpOutbound, Outbound
from kedge.kube.limits import Limiter
from kedge.kube.transport import Request, Response
from kedge.plan.measuring.measurement import Measured, Measurement, NotMeasured
from kedge.plan.measuring.query import MetricSubject
from kube.connect.tlsfixtures import Authority, api, raw, serving
from plan.measuring.making import metric
from support.stage import LoopClock
from support.virtual import run

NAMESPACE = "default"
SUBJECT = MetricSubject("web", NAMESPACE, "web-v2")
TEMPLATES, SECRETS, CRDS = (
    untyped(MetricTemplate.resource),
    untyped(Secret.resource),
    untyped(CustomResourceDefinition.resource),
)
DEFINITION = crd(MetricTemplate)  # reads source files, so not inside the loop
AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))
WHERE = "MetricTemplate default/errors"


def asleep() -> None:
    raise AssertionError("nobody is to be woken")


class Bed:
    """A client with the kind MetricTemplate, and queries that use it."""

    def __init__(self, client: Client, outbound: Outbound, patience: float = 30) -> None:
        self.client = client
        self.queries = MetricQueries(client, outbound, patience=patience)

    async def template(self, address: str, query: str = "up", **provider: object) -> None:
        spec = {"provider": {"type": "prometheus", "address": address, **provider}, "query": query}
        await self.client.create(TEMPLATES, {"metadata": {"name": "errors"}, "spec": spec}, NAMESPACE)

    async def secret(self, **data: str) -> None:
        encoded = {name.replace("_", "."): b64encode(value.encode()).decode() for name, value in data.items()}
        await self.client.create(SECRETS, {"metadata": {"name": "access"}, "data": encoded}, NAMESPACE)

    async def measure(self, **given: Any) -> Measurement | None:
        return await self.queries.measure(metric(**given), SUBJECT, asleep, key="uid-1")


@asynccontextmanager
async def made(outbound: Outbound, clock: SystemClock | LoopClock, patience: float = 30) -> AsyncIterator[Bed]:
    server = Server(clock=clock, rng=Random(1))
    client = Client(InProcessTransport(server, rng=Random(2)), limiter=Limiter(rate=0))
    await client.create(CRDS, DEFINITION)
    bed = Bed(client, outbound, patience)
    try:
        yield bed
    finally:
        await bed.queries.close()
        await outbound.close()
        await client.close()
        server.stop()


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with made(HttpOutbound(limit=10_000, environ={}), SystemClock()) as found:
        yield found


def answers(value: str) -> web.Response:
    series = [{"metric": {}, "value": [1709294400.0, value]}]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": series}})


class Prometheus:
    """Answers queries by their text, as its HTTP API does, and notes the requests."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.requests: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        query = str((await request.post())["query"])
        if query not in self.values:
            body = {"status": "error", "errorType": "bad_data", "error": f"invalid: {query}"}
            return web.json_response(body, status=400)
        return answers(self.values[query])


async def test_a_metric_is_measured_as_its_template_says(bed: Bed) -> None:
    prometheus = Prometheus({'rate(errors{pod=~"web-v2-.*"}[5m])': "0.25"})
    async with api(prometheus.answer) as server:
        await bed.template(
            f"{server}/prom/", 'rate(errors{pod=~"{{ target }}-.*"}[{{ interval }}])', headers={"X-Org": ["a", "b"]}
        )
        assert await bed.measure(interval="5m") == Measured(("0.25",))
        assert await bed.measure(interval="1m") == NotMeasured(
            'answered with 400: bad_data: invalid: rate(errors{pod=~"web-v2-.*"}[1m])'
        )
    asked = prometheus.requests[0]
    assert (asked.method, asked.path, asked.headers["X-Org"]) == ("POST", "/prom/api/v1/query", "a, b")
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize(
    ("data", "authorization"),
    [
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({"token": "t0ken\n"}, "Bearer t0ken"),
    ],
)
async def test_credentials_come_from_the_secret(bed: Bed, data: dict[str, str], authorization: str) -> None:
    prometheus = Prometheus({"up": "1"})
    async with api(prometheus.answer, SERVER) as server:
        await bed.secret(**data, ca_crt=AUTHORITY.pem.decode())
        await bed.template(server, secretRef={"name": "access"})
        assert await bed.measure() == Measured(("1",))
    assert prometheus.requests[0].headers["Authorization"] == authorization


async def test_a_secret_may_hold_a_ca_alone(bed: Bed) -> None:
    async with api(Prometheus({"up": "1"}).answer, SERVER) as server:
        await bed.secret(ca_crt=AUTHORITY.pem.decode())
        await bed.template(server, secretRef={"name": "access"})
        assert await bed.measure() == Measured(("1",))


@pytest.mark.parametrize("data", [{}, {"username": "me"}, {"password": "pw", "ca_crt": "x"}, {"other": "x"}])
async def test_a_secret_without_credentials_is_said(bed: Bed, data: dict[str, str]) -> None:
    await bed.secret(**data)
    await bed.template("http://prometheus", secretRef={"name": "access"})
    why = "Secret access holds neither username and password nor token"
    assert await bed.measure() == NotMeasured(f"{WHERE}: {why}")


async def test_a_secret_that_is_no_text_is_said(bed: Bed) -> None:
    body = {"metadata": {"name": "access"}, "data": {"token": b64encode(b"\xff").decode()}}
    await bed.client.create(SECRETS, body, NAMESPACE)
    await bed.template("http://prometheus", secretRef={"name": "access"})
    assert await bed.measure() == NotMeasured(f"{WHERE}: Secret access cannot be read")


async def test_what_is_missing_is_said(bed: Bed) -> None:
    assert await bed.measure() == NotMeasured(f"{WHERE}: it does not exist")
    elsewhere = await bed.measure(templateRef={"name": "errors", "namespace": "other"})
    assert elsewhere == NotMeasured("MetricTemplate other/errors: it does not exist")
    await bed.template("http://prometheus", secretRef={"name": "access"})
    assert await bed.measure() == NotMeasured(f"{WHERE}: Secret access: it does not exist")


async def test_a_template_that_is_refused_is_said(bed: Bed) -> None:
    await bed.template("http://prometheus", "{{ service }}")
    found = await bed.measure()
    assert isinstance(found, NotMeasured)
    assert found.reason.startswith(f"{WHERE}: spec.query has {{{{ service }}}}")


async def test_an_answer_that_is_too_large_is_none(bed: Bed) -> None:
    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1_000_000)

    async with api(large) as server:
        await bed.template(server)
        found = await bed.measure()
    assert found == NotMeasured("the answer is larger than 10000 bytes, so it is not used")


async def test_no_password_is_in_what_is_said(bed: Bed) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with raw(close) as server:
        await bed.secret(username="me", password="hunter2")
        await bed.template(server.replace("://", "://me:hunter2@") + "/?key=hunter2", secretRef={"name": "access"})
        found = await bed.measure()
    assert isinstance(found, NotMeasured)
    assert "hunter2" not in found.reason


class Slow:
    """Answers after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.calls = 0
        self._seconds = seconds

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        self.calls += 1
        number = str(self.calls)
        await asyncio.sleep(self._seconds)
        body = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, number]}}
        return Answer(200, msgspec.json.encode(body))

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("later", "value"), [(20, "1"), (40, "2")])
def test_an_answer_that_takes_long_is_given_later_but_not_when_it_is_old(later: float, value: str) -> None:
    async def main() -> None:
        async with made(Slow(1.5), LoopClock(), patience=1) as bed:
            await bed.template("http://prometheus")
            woken = asyncio.Event()
            assert await bed.queries.measure(metric(), SUBJECT, woken.set, key="a") is None
            await woken.wait()
            await asyncio.sleep(later)
            found = await bed.queries.measure(metric(), SUBJECT, woken.set, key="a")
            if found is None:
                await asyncio.sleep(2)
                found = await bed.queries.measure(metric(), SUBJECT, asleep, key="a")
            assert found == Measured((value,))

    run(main())


def test_measurements_of_one_key_are_not_given_to_another() -> None:
    async def main() -> None:
        async with made(Slow(1.5), LoopClock(), patience=1) as bed:
            await bed.template("http://prometheus")
            woken = asyncio.Event()
            for key in ("a", "b"):
                assert await bed.queries.measure(metric(), SUBJECT, woken.set, key=key) is None
            await asyncio.sleep(3)
            found = [await bed.queries.measure(metric(), SUBJECT, asleep, key=key) for key in ("a", "b")]
            assert found == [Measured(("1",)), Measured(("2",))]

    run(main())


def test_a_prometheus_that_hangs_is_no_answer() -> None:
    async def main() -> None:
        async with made(Slow(1e9), LoopClock()) as bed:
            await bed.template("http://prometheus")
            assert await bed.measure() == NotMeasured("no answer within 10 s")

    run(main())


def test_what_may_not_be_read_is_said() -> None:
    class Forbidding(InProcessTransport):
        async def send(self, request: Request, *, timeout: float) -> Response:
            body = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "denied"}
            return Response(403, msgspec.json.encode(body))

    async def main() -> None:
        server = Server(clock=LoopClock(), rng=Random(1))
        client = Client(Forbidding(server, rng=Random(2)), limiter=Limiter(rate=0))
        found = await Bed(client, Slow(0)).measure()
        assert found == NotMeasured(f"{WHERE}: reading it is not allowed")
        await client.close()
        server.stop()

    run(main())
