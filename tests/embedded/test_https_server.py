"""The embedded server over HTTPS: who may come in, and what a client over a socket gets."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import aiohttp
import msgspec
import pytest

from embedded.admission.hooks import VALIDATING, Webhook, deny, hook
from kedge.api.core import ConfigMap
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.https_server import MAX_BODY_BYTES, HttpsServer
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import Event, Untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.outbound import Outbound
from kedge.kube.errors import ApiError, Unreachable
from kedge.kube.transport import ConnectionFailed, Request

TOKEN = "a-secret"
MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def opened(outbound: Outbound | None = None) -> AsyncIterator[tuple[Server, HttpsServer, ServingCertificate]]:
    server = Server(clock=SystemClock(), rng=Random(1), outbound=outbound)
    serving = await asyncio.to_thread(ServingCertificate, datetime.now(UTC))
    https = HttpsServer(server, tokens={TOKEN: Caller()}, tls=serving.context)
    await https.open()
    try:
        yield server, https, serving
    finally:
        await https.close()


async def transport(
    tmp_path: Path, https: HttpsServer, serving: ServingCertificate, token: str = TOKEN
) -> HttpsTransport:
    from kedge.cli import kubeconfig

    file = tmp_path / "kubeconfig"

    def prepared() -> HttpsTransport:
        kubeconfig.write(file, {"one": https.url}, authority=serving.authority, token=token)
        return HttpsTransport(load([file]))

    return await asyncio.to_thread(prepared)


async def status(https: HttpsServer, path: str, *, token: str = "", body: io.BytesIO | None = None) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session:
        method = "GET" if body is None else "POST"
        async with session.request(method, https.url + path, headers=headers, data=body, ssl=False) as answer:
            return answer.status, await answer.text()


async def test_webhooks_are_asked_about_writes(tmp_path: Path) -> None:
    async with opened(Webhook(deny)) as (server, https, serving):
        body = msgspec.json.encode({"metadata": {"name": "hooks"}, "webhooks": [hook("configmaps")]})
        assert server.handle(Request("POST", VALIDATING.resource.path(), (), body)).status == 201
        client = Client(await transport(tmp_path, https, serving))
        with pytest.raises(ApiError, match="denied the request: no"):
            await client.create(ConfigMap, {"metadata": {"name": "a"}}, "default")
        assert (await client.list(ConfigMap, "default")).items == ()
        await client.close()


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_nobody_comes_in_without_a_token(token: str) -> None:
    async with opened() as (_, https, _):
        code, body = await status(https, MAPS, token=token)
        assert (code, '"reason":"Unauthorized"' in body) == (401, True)


@pytest.mark.parametrize(
    ("token", "found"),
    [
        (TOKEN, {"authenticated": True, "user": {"username": "system:admin", "groups": list(Caller().groups)}}),
        ("wrong", {"user": {}, "error": "invalid bearer token"}),
        ("", {"user": {}, "error": "invalid bearer token"}),
    ],
)
async def test_a_client_may_ask_whose_its_token_is(token: str, found: Untyped) -> None:
    async with opened() as (_, https, _):
        url = f"{https.url}/apis/authentication.k8s.io/v1/tokenreviews"
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
            session.post(url, json={"spec": {"token": token}}, ssl=False) as answer,
        ):
            assert (answer.status, (await answer.json())["status"]) == (201, found)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
async def test_anyone_may_ask_how_it_is(path: str) -> None:
    async with opened() as (_, https, _):
        assert (await status(https, path))[0] == 200


async def test_it_listens_on_loopback_only() -> None:
    async with opened() as (_, https, _):
        assert https.url.startswith("https://127.0.0.1:")


async def test_a_body_that_is_too_large_is_refused_in_kubernetes_words() -> None:
    async with opened() as (_, https, _):
        code, body = await status(https, MAPS, token=TOKEN, body=io.BytesIO(b" " * (MAX_BODY_BYTES + 1)))
        assert (code, "Request entity too large: limit is 3145728" in body) == (413, True)


async def test_kedges_own_client_works_through_it(tmp_path: Path) -> None:
    async with opened() as (_, https, serving):
        client = Client(await transport(tmp_path, https, serving))
        made = await client.create(ConfigMap, {"metadata": {"name": "a"}, "data": {"k": "v"}}, "default")
        assert (await client.get(ConfigMap, "a", "default")).data == made.data
        async with client.watch(ConfigMap, "default", resource_version=made.metadata.resource_version) as events:
            await client.delete(ConfigMap, "a", "default")
            event = await anext(events)
            assert isinstance(event, Event)
            assert event.type == "DELETED"
        await client.close()


async def test_a_server_that_stops_cuts_its_watches_and_answers_nobody(tmp_path: Path) -> None:
    async with opened() as (server, https, serving):
        way = await transport(tmp_path, https, serving)
        client = Client(way)
        with pytest.raises(Unreachable):
            async with client.watch(ConfigMap, "default", resource_version="0") as events:
                server.stop()
                await anext(events)
        with pytest.raises(ConnectionFailed):
            await way.send(Request("GET", "/version"), timeout=5)
        server.start()
        assert (await way.send(Request("GET", "/version"), timeout=5)).status == 200
        await client.close()
