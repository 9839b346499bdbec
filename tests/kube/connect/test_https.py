"""Requests over real sockets: what is sent, what comes back, and what failure tells."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import uvloop
from aiohttp import web
from msgspec import Struct

import kedge
from kedge.kube.connect.connection import Connection, Impersonation
from kedge.kube.connect.credentials import FixedCredentials, Identity, bearer
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.transport import ConnectionFailed, Request
from kube.connect.tlsfixtures import Authority, api, raw, serving, transport_to

GET = Request("GET", "/api/v1/pods")
AUTHORITY = Authority()
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
SERVER = serving(AUTHORITY.server("127.0.0.1", "localhost"))
NAMED_OTHERWISE = serving(AUTHORITY.server("api.example"))
EXPIRED = serving(AUTHORITY.server("127.0.0.1", ends=YESTERDAY))


async def echo(request: web.Request) -> web.Response:
    """Answers with what was asked."""
    sent = {
        "method": request.method,
        "target": request.raw_path,
        "headers": [[name.lower(), value] for name, value in request.headers.items()],
        "body": (await request.read()).decode(),
    }
    return web.json_response(sent)


@pytest.fixture
async def transport() -> AsyncIterator[HttpsTransport]:
    identity = Identity(bearer("sesame"))
    async with api(echo, SERVER) as server, transport_to(server, AUTHORITY.pem, FixedCredentials(identity)) as made:
        yield made


class Sent(Struct):
    """What `echo` saw."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: str


async def sent(transport: HttpsTransport, request: Request) -> Sent:
    return msgspec.json.decode((await transport.send(request, timeout=5)).body, type=Sent)


async def test_a_request_goes_out_as_it_was_given(transport: HttpsTransport) -> None:
    request = Request(
        "PATCH",
        "/api/v1/namespaces/shop/configmaps/web",
        (("fieldManager", "kedge"), ("labelSelector", "a=b,c in (d)")),
        body=b'{"x": 1}',
        content_type="application/merge-patch+json",
        accept="application/json;as=Table",
    )
    seen = await sent(transport, request)
    headers = dict(seen.headers)
    assert seen.method == "PATCH"
    assert seen.target == (
        "/api/v1/namespaces/shop/configmaps/web?fieldManager=kedge&labelSelector=a%3Db%2Cc%20in%20%28d%29"
    )
    assert seen.body == '{"x": 1}'
    assert headers["content-type"] == "application/merge-patch+json"
    assert headers["accept"] == "application/json;as=Table"
    assert headers["authorization"] == "Bearer sesame"
    assert headers["user-agent"] == f"kedge/{kedge.__version__}"
    assert "cookie" not in headers


async def test_a_request_without_a_body_has_no_content_type(transport: HttpsTransport) -> None:
    assert "content-type" not in dict((await sent(transport, GET)).headers)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/apis/rbac/v1/clusterroles/system:node", "/apis/rbac/v1/clusterroles/system:node"),
        ("/api/v1/namespaces/a%2Fb", "/api/v1/namespaces/a%2Fb"),
        ("/api/v1/namespaces/a b?c#d", "/api/v1/namespaces/a%20b%3Fc%23d"),
    ],
)
async def test_a_path_stays_one_path(transport: HttpsTransport, path: str, target: str) -> None:
    assert (await sent(transport, Request("GET", path))).target == target


async def test_the_path_of_a_server_comes_first() -> None:
    async with api(echo) as server, transport_to(f"{server}/k8s/clusters/c-1") as transport:
        assert (await sent(transport, GET)).target == "/k8s/clusters/c-1/api/v1/pods"


async def test_a_large_body_arrives_whole(transport: HttpsTransport) -> None:
    body = b"x" * 3_000_000
    assert (await sent(transport, Request("POST", "/large", body=body))).body == body.decode()


async def test_impersonation_is_asked_for() -> None:
    acting = Impersonation("jane", ("devs", "ops"), "42", (("scopes", "read"), ("acme.com/team", "a")))
    async with api(echo) as server, transport_to(server, impersonate=acting) as transport:
        headers = (await sent(transport, GET)).headers
    assert [pair for pair in headers if pair[0].startswith("impersonate")] == [
        ("impersonate-user", "jane"),
        ("impersonate-uid", "42"),
        ("impersonate-group", "devs"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-scopes", "read"),
        ("impersonate-extra-acme.com%2fteam", "a"),
    ]


async def test_any_answer_is_an_answer() -> None:
    async def gone(request: web.Request) -> web.Response:
        response = web.Response(status=410, body=b"too old")
        response.headers.add("Warning", '299 - "first, of two"')
        response.headers.add("Warning", '299 - "second"')
        return response

    async with api(gone) as server, transport_to(server) as transport:
        answer = await transport.send(GET, timeout=5)
    assert (answer.status, answer.body) == (410, b"too old")
    assert answer.warnings == ("first, of two", "second")


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with api(elsewhere) as server, transport_to(server) as transport:
        answer = await transport.send(GET, timeout=5)
    assert (answer.status, answer.headers["location"]) == (307, "/elsewhere")


async def test_a_compressed_answer_is_unpacked() -> None:
    async def packed(request: web.Request) -> web.Response:
        response = web.Response(body=b"list" * 10_000)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with api(packed) as server, transport_to(server) as transport:
        assert (await transport.send(GET, timeout=5)).body == b"list" * 10_000


async def test_no_cookie_is_kept() -> None:
    cookies: list[str | None] = []

    async def sticky(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "route=1"})

    async with api(sticky) as server, transport_to(server.replace("127.0.0.1", "localhost")) as transport:
        for _ in range(2):
            await transport.send(GET, timeout=5)
    assert cookies == [None, None]


async def test_requests_share_a_connection() -> None:
    ports: set[object] = set()

    async def note(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        return web.Response()

    async with api(note, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        for _ in range(5):
            await transport.send(GET, timeout=5)
    assert len(ports) == 1


# What failure tells


async def failing(transport: HttpsTransport, request: Request = GET, timeout: float = 5) -> ConnectionFailed:
    with pytest.raises(ConnectionFailed) as caught:
        await transport.send(request, timeout=timeout)
    return caught.value


async def test_a_refused_connection_was_not_sent() -> None:
    async with raw(_hang) as server:
        pass
    async with transport_to(server) as transport:
        error = await failing(transport)
    assert not error.sent
    assert str(error).startswith(f"{server}: cannot connect: ")


async def test_an_unknown_name_was_not_sent() -> None:
    async with transport_to("https://nowhere.invalid:6443") as transport:
        error = await failing(transport)
    assert not error.sent
    assert "'nowhere.invalid' cannot be resolved" in str(error)


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_a_server_that_does_not_answer_in_time_may_have_been_reached() -> None:
    async with raw(_hang, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        error = await failing(transport, timeout=0.2)
    assert error.sent
    assert "no answer within 0.2 s" in str(error)


async def test_a_handshake_that_does_not_end_in_time_was_not_sent() -> None:
    async with raw(_hang) as server, transport_to(server.replace("http", "https"), AUTHORITY.pem) as transport:
        error = await failing(transport, timeout=0.2)
    assert not error.sent
    assert "no connection within 0.2 s" in str(error)


async def test_a_server_that_hangs_up_may_have_been_reached() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with raw(hang_up, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        error = await failing(transport, Request("POST", "/api", body=b"{}"))
    assert error.sent


async def test_an_answer_cut_in_the_middle_is_none() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        await writer.drain()

    async with raw(half) as server, transport_to(server) as transport:
        error = await failing(transport)
    assert error.sent
    assert "in the middle of the answer" in str(error)


async def test_what_is_no_http_is_no_answer() -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()

    async with raw(noise) as server, transport_to(server) as transport:
        assert (await failing(transport)).sent


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 1), ("DELETE", 1), ("POST", 1), ("PATCH", 1)])
async def test_only_a_read_goes_out_again_when_a_kept_connection_breaks(method: str, times: int) -> None:
    heads: list[bytes] = []

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        heads.append(await reader.readuntil(b"\r\n\r\n"))

    async with raw(answer_one) as server, transport_to(server) as transport:
        await transport.send(Request("GET", "/first"), timeout=5)
        if method == "GET":
            assert (await transport.send(Request("GET", "/second"), timeout=5)).status == 200
        else:
            assert (await failing(transport, Request(method, "/second"))).sent
    assert len([head for head in heads if b"/second" in head]) == times


async def test_giving_up_is_passed_on() -> None:
    async with raw(_hang) as server, transport_to(server) as transport:
        task = asyncio.create_task(transport.send(GET, timeout=5))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_closed_transport_sends_nothing() -> None:
    transport = HttpsTransport(Connection("http://127.0.0.1:1"))
    await transport.close()
    error = await failing(transport)
    assert not error.sent
    assert "closed" in str(error)


async def test_closing_ends_requests_that_wait() -> None:
    async with raw(_hang, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        task = asyncio.create_task(transport.send(GET, timeout=5))
        await asyncio.sleep(0.1)
        await transport.close()
        with pytest.raises(ConnectionFailed):
            await task


# Trust


@pytest.mark.parametrize(
    ("context", "ca", "told"),
    [
        (SERVER, Authority("another").pem, "not trusted (unable to get local issuer certificate): the CA given is not"),
        (SERVER, Authority().pem, "not trusted (certificate signature failure): the CA given is not"),
        (SERVER, None, "not trusted (unable to get local issuer certificate): give its CA"),
        (NAMED_OTHERWISE, AUTHORITY.pem, "for another name"),
        (EXPIRED, AUTHORITY.pem, "out of its time"),
    ],
)
async def test_a_server_that_cannot_be_trusted_gets_nothing(
    context: ssl.SSLContext, ca: bytes | None, told: str
) -> None:
    asked: list[str] = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with api(note, context) as server, transport_to(server, ca) as transport:
        error = await failing(transport)
    assert not error.sent
    assert told in str(error)
    assert not asked


async def test_a_plain_server_is_told_from_a_tls_server() -> None:
    async with api(echo) as server, transport_to(server.replace("http", "https"), AUTHORITY.pem) as transport:
        error = await failing(transport)
    assert not error.sent
    assert "does not speak TLS" in str(error)


async def test_a_certificate_for_another_name_is_good_with_tls_server_name() -> None:
    async with (
        api(echo, NAMED_OTHERWISE) as server,
        transport_to(server, AUTHORITY.pem, tls_server_name="api.example") as transport,
    ):
        assert (await transport.send(GET, timeout=5)).status == 200


async def test_insecure_trusts_anyone() -> None:
    async with api(echo, EXPIRED) as server, transport_to(server, insecure=True) as transport:
        assert (await transport.send(GET, timeout=5)).status == 200


async def test_a_broken_ca_is_an_error_that_says_so() -> None:
    async with transport_to("https://127.0.0.1:1", b"junk") as transport:
        error = await failing(transport)
    assert not error.sent
    assert "no PEM certificate" in str(error)


def test_a_transport_shows_its_server_and_nothing_else() -> None:
    connection = Connection(
        "https://api:6443",
        proxy="http://me:hunter2@proxy:3128",
        credentials=FixedCredentials(Identity("Bearer sesame")),
    )
    for text in (repr(connection), repr(HttpsTransport(connection))):
        assert "api:6443" in text
        assert "hunter2" not in text
        assert "sesame" not in text


def test_all_of_it_works_on_uvloop() -> None:
    async def count(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(1000):
            await response.write(b"%d\n" % number)
        return response

    async def work() -> None:
        async with api(count, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
            assert len((await transport.send(GET, timeout=5)).body.split()) == 1000
            async with transport.stream(GET, timeout=5, silence=5) as stream:
                assert [int(line) async for line in stream.lines()] == list(range(1000))
        async with raw(_hang, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
            assert (await failing(transport, timeout=0.2)).sent
        async with raw(_hang) as server, transport_to(server.replace("http", "https")) as transport:
            assert not (await failing(transport, timeout=0.2)).sent
        async with api(echo, EXPIRED) as server, transport_to(server, AUTHORITY.pem) as transport:
            assert "out of its time" in str(await failing(transport))

    uvloop.run(work())


# A last look before a request is sent


class Refused(Exception):
    pass


@pytest.mark.parametrize(
    "request_",
    [Request("DELETE", "/x"), Request("POST", "/x", body=b"{}"), Request("PATCH", "/x", body=b"x" * 3_000_000)],
    ids=str,
)
@pytest.mark.parametrize("looks", [0, 1])
async def test_what_is_refused_at_the_last_moment_is_not_sent(request_: Request, looks: int) -> None:
    """Connecting takes time: what held when a request was handed over may not hold when there is a connection."""
    seen: list[str] = []
    done: list[Request] = []

    async def note(request: web.Request) -> web.Response:
        await request.read()
        seen.append(request.method)
        return web.Response()

    def look(request: Request) -> None:
        if request.method != "GET":
            done.append(request)
            if len(done) > looks:
                raise Refused("no longer")

    async with api(note, SERVER) as server:
        transport = HttpsTransport(Connection(server, ca=AUTHORITY.pem), before_send=look)
        try:
            with pytest.raises(Refused):
                await transport.send(request_, timeout=5)
            assert (await transport.send(GET, timeout=5)).status == 200
        finally:
            await transport.close()
    assert seen == ["GET"]
