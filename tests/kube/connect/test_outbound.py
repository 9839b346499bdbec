"""Calls to what is not a Kubernetes API, over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from yarl import URL

import kedge
from kedge.kube.connect.outbound import Answer, Call, HttpOutbound, Outbound, OutboundFailed
from kube.connect.tlsfixtures import Authority, Tunnel, api, raw, serving

AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))
SERVICE = serving(AUTHORITY.server("hooks.default.svc"))


@pytest.fixture
async def outbound() -> AsyncIterator[HttpOutbound]:
    made = HttpOutbound(limit=1000, environ={})
    yield made
    await made.close()


async def failure(outbound: Outbound, call: Call, timeout: float = 5) -> str:
    with pytest.raises(OutboundFailed) as caught:
        await outbound.fetch(call, timeout=timeout)
    return str(caught.value)


async def echo(request: web.Request) -> web.Response:
    shown = f"{request.method} {request.path_qs} {request.headers.get('X-Extra')} {request.headers['User-Agent']} "
    return web.Response(body=shown.encode() + await request.read(), headers={"X-Back": "yes"}, status=202)


@pytest.mark.parametrize("context", [None, SERVER])
async def test_a_call_is_answered(outbound: HttpOutbound, context: object) -> None:
    async with api(echo, SERVER if context else None) as server:
        call = Call("POST", f"{server}/go?x=1", {"X-Extra": "e"}, b"body", AUTHORITY.pem)
        for _ in range(2):
            answer = await outbound.fetch(call, timeout=5)
    assert answer.status == 202
    assert answer.body == f"POST /go?x=1 e kedge/{kedge.__version__} body".encode()
    assert answer.headers["x-back"] == "yes"


async def test_a_redirect_is_an_answer(outbound: HttpOutbound) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://elsewhere"})

    async with api(elsewhere) as server:
        assert (await outbound.fetch(Call("GET", server), timeout=5)).status == 302


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False), (5_000_000, False)])
async def test_an_answer_has_a_limit(outbound: HttpOutbound, size: int, fits: bool) -> None:
    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * size)

    async with api(large, SERVER) as server:
        call = Call("GET", server, ca=AUTHORITY.pem)
        if fits:
            assert len((await outbound.fetch(call, timeout=5)).body) == size
        else:
            assert "the answer is larger than 1000 bytes" in await failure(outbound, call)


async def test_a_large_body_arrives_whole() -> None:
    async def size(request: web.Request) -> web.Response:
        return web.Response(body=str(len(await request.read())).encode())

    outbound = HttpOutbound(environ={})
    async with api(size) as server:
        assert (await outbound.fetch(Call("POST", server, body=b"x" * 2_000_000), timeout=5)).body == b"2000000"
    await outbound.close()


async def test_a_failure_says_what_was_asked_without_its_secrets(outbound: HttpOutbound) -> None:
    async with raw(Tunnel()) as server:
        pass
    address = server.replace("://", "://me:hunter2@")
    told = await failure(outbound, Call("GET", f"{address}/hook?token=hunter2", {"X": "hunter2"}))
    assert told.startswith(f"GET {server}/hook: cannot connect: ")
    assert "hunter2" not in told


async def test_a_call_may_have_a_name_instead(outbound: HttpOutbound) -> None:
    call = Call("GET", "http://127.0.0.1:1/hunter2", name="hook notify")
    assert (await failure(outbound, call)).startswith("hook notify: ")
    assert "hunter2" not in repr(call)
    assert "hunter2" not in repr(call.__rich_repr__())


async def test_an_answer_that_does_not_come_in_time_is_a_failure(outbound: HttpOutbound) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw(hang, SERVER) as server:
        told = await failure(outbound, Call("GET", server, ca=AUTHORITY.pem), timeout=0.2)
    assert "no answer within 0.2 s" in told


async def test_a_server_that_cannot_be_trusted_is_a_failure(outbound: HttpOutbound) -> None:
    async with api(echo, SERVER) as server:
        assert "give its CA" in await failure(outbound, Call("GET", server))
        assert "is not the one that signed it" in await failure(outbound, Call("GET", server, ca=Authority().pem))
        assert "no PEM certificate" in await failure(outbound, Call("GET", server, ca=b"junk"))


@pytest.mark.parametrize("url", ["", "api/v1", "ftp://host/x", "http://", "http://host:port/"])
async def test_what_is_no_url_is_a_failure(outbound: HttpOutbound, url: str) -> None:
    assert await failure(outbound, Call("GET", url))


async def test_calls_go_through_the_proxy_of_the_environment() -> None:
    tunnel = Tunnel("403 Forbidden")
    async with raw(tunnel) as proxy:
        outbound = HttpOutbound(environ={"HTTPS_PROXY": proxy})
        told = await failure(outbound, Call("GET", "https://hooks.example/x"))
        await outbound.close()
    assert "the proxy refused with 403" in told
    assert tunnel.heads[0].startswith("CONNECT hooks.example:443 ")


async def test_many_cas_do_not_add_up(outbound: HttpOutbound) -> None:
    async with api(echo, SERVER) as server:
        for number in range(70):
            remark = f"# {number}\n".encode()
            assert (await outbound.fetch(Call("GET", server, ca=remark + AUTHORITY.pem), timeout=5)).status == 202


async def test_a_simulation_can_answer_instead() -> None:
    class Simulated:
        async def fetch(self, call: Call, *, timeout: float) -> Answer:
            return Answer(200, call.url.encode())

        async def close(self) -> None: ...

    simulated: Outbound = Simulated()
    assert (await simulated.fetch(Call("GET", "http://x"), timeout=1)).body == b"http://x"


async def test_a_call_may_go_to_another_address_than_that_of_its_name() -> None:
    async def named(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Host"])

    outbound = HttpOutbound(environ={"HTTPS_PROXY": "http://nowhere.example:1"})  # there is no way but to the address
    async with api(named, SERVICE) as server:
        address = ("127.0.0.1", URL(server).port or 0)
        call = Call("GET", "https://hooks.default.svc:443/", ca=AUTHORITY.pem, address=address)
        assert (await outbound.fetch(call, timeout=5)).body == b"hooks.default.svc"
        other = Call("GET", "https://other.default.svc:443/", ca=AUTHORITY.pem, address=address)
        assert "is for another name" in await failure(outbound, other)
    await outbound.close()


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.20.10",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "2852039166",  # how others write 169.254.169.254
        "0xa9fea9fe",
    ],
)
@pytest.mark.parametrize("proxy", [{}, {"HTTP_PROXY": "http://127.0.0.1:9"}])
async def test_nobody_is_called_at_the_addresses_of_metadata_services(host: str, proxy: dict[str, str]) -> None:
    outbound = HttpOutbound(environ=proxy)
    why = await failure(outbound, Call("GET", f"http://{host}/latest/meta-data/"))
    is_known = host[0] == "[" or "." in host  # what a proxy resolves is for the proxy to refuse
    assert ("nobody is called there" in why) == (is_known or not proxy), why
    await outbound.close()


async def test_a_name_that_leads_to_a_metadata_service_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolved(*_: object, **__: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", 80)), (2, 1, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    outbound = HttpOutbound(environ={})
    why = await failure(outbound, Call("GET", "http://hooks.example.com/"))
    assert "169.254.169.254 is a link-local address or one of a metadata service: nobody is called there" in why
    await outbound.close()
