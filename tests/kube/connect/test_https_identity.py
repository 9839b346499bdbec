"""Identities over real sockets: refused and renewed, shown on new connections, through a proxy."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from kedge.kube.clock import SystemClock
from kedge.kube.connect.connection import Connection
from kedge.kube.connect.credentials import (
    ClientCertificate,
    Credentials,
    CredentialsFailed,
    Identity,
    IdentityFiles,
    bearer,
)
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.transport import ConnectionFailed, Request
from kube.connect.tlsfixtures import Authority, Tunnel, api, blunt, raw, serving, transport_to, user_of
from support.waiting import until

GET = Request("GET", "/api/v1/pods")
WATCH = Request("GET", "/api/v1/pods", (("watch", "1"),))
AUTHORITY = Authority()
PAIR = AUTHORITY.server("127.0.0.1", "localhost")
SERVER = serving(PAIR)
ASKS_FOR_CERTIFICATES = serving(PAIR, clients=AUTHORITY.pem)
TAKES_CERTIFICATES = serving(PAIR, clients=AUTHORITY.pem, optional=True)
OLD = AUTHORITY.client("old")
NEW = AUTHORITY.client("new")
EXPIRED = AUTHORITY.client("expired", ends=datetime.now(UTC) - timedelta(hours=1))


class Issuer:
    """Credentials that move on to the next identity when one is refused."""

    def __init__(self, *identities: Identity) -> None:
        self.left = list(identities)
        self.refusals = 0

    def held(self) -> Identity | None:
        return None

    async def identity(self) -> Identity:
        if not self.left:
            raise CredentialsFailed("the issuer is out of identities")
        return self.left[0]

    def refused(self, identity: Identity) -> bool:
        self.refusals += 1
        if self.left and self.left[0] == identity:
            self.left.pop(0)
        return True


def token(value: str) -> Identity:
    return Identity(bearer(value))


async def only_fresh(request: web.Request) -> web.StreamResponse:
    """Knows one token."""
    if request.headers.get("Authorization") != "Bearer fresh":
        return web.Response(status=401, body=b"who are you?")
    return web.Response(body=b"welcome\n")


async def users_name(request: web.Request) -> web.StreamResponse:
    """Answers with the name in the client's certificate."""
    assert request.transport is not None
    name = user_of(request.transport.get_extra_info("peercert"))
    return web.Response(body=name.encode(), status=200 if name else 401)


@asynccontextmanager
async def asking(credentials: Credentials, context: ssl.SSLContext = SERVER) -> AsyncIterator[HttpsTransport]:
    handler = only_fresh if context is SERVER else users_name
    async with api(handler, context) as server, transport_to(server, AUTHORITY.pem, credentials) as transport:
        yield transport


async def test_a_refused_token_is_renewed_and_the_request_sent_again() -> None:
    issuer = Issuer(token("stale"), token("fresh"))
    async with asking(issuer) as transport:
        answer = await transport.send(GET, timeout=5)
    assert (answer.status, issuer.refusals) == (200, 1)


async def test_a_refused_token_is_renewed_for_a_stream() -> None:
    async with (
        asking(Issuer(token("stale"), token("fresh"))) as transport,
        transport.stream(WATCH, timeout=5, silence=5) as stream,
    ):
        assert [line async for line in stream.lines()] == [b"welcome"]


async def test_a_body_is_sent_again_with_the_fresh_token() -> None:
    bodies: list[bytes] = []

    async def note(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.read())
        return await only_fresh(request)

    large = b"x" * 1_500_000
    issuer = Issuer(token("stale"), token("fresh"))
    async with api(note, SERVER) as server, transport_to(server, AUTHORITY.pem, issuer) as transport:
        assert (await transport.send(Request("POST", "/x", body=large), timeout=5)).status == 200
    assert bodies == [large, large]


async def test_there_is_one_more_try_and_not_two() -> None:
    issuer = Issuer(token("stale"), token("staler"), token("fresh"))
    async with asking(issuer) as transport:
        answer = await transport.send(GET, timeout=5)
    assert (answer.status, answer.body, issuer.refusals) == (401, b"who are you?", 1)


async def test_the_same_identity_is_not_shown_twice() -> None:
    class Stubborn(Issuer):
        def refused(self, identity: Identity) -> bool:
            return True

    asked: list[str] = []

    async def note(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=401)

    async with api(note) as server, transport_to(server, credentials=Stubborn(token("stale"))) as transport:
        assert (await transport.send(GET, timeout=5)).status == 401
    assert len(asked) == 1


async def test_credentials_that_cannot_be_had_are_a_failed_connection() -> None:
    async with asking(Issuer()) as transport:
        with pytest.raises(ConnectionFailed, match=r"the issuer is out of identities") as caught:
            await transport.send(GET, timeout=5)
        assert not caught.value.sent
        with pytest.raises(ConnectionFailed, match=r"out of identities"):
            async with transport.stream(WATCH, timeout=5, silence=5):
                pass


async def test_credentials_that_cannot_be_renewed_say_why() -> None:
    async with asking(Issuer(token("stale"))) as transport:
        with pytest.raises(ConnectionFailed, match=r"out of identities") as caught:
            await transport.send(GET, timeout=5)
    assert not caught.value.sent


async def test_credentials_that_take_too_long_are_a_time_out() -> None:
    class Slow(Issuer):
        async def identity(self) -> Identity:
            await asyncio.sleep(60)
            return token("late")

    async with asking(Slow()) as transport:
        with pytest.raises(ConnectionFailed, match=r"within 0.1 s") as caught:
            await transport.send(GET, timeout=0.1)
    assert not caught.value.sent


async def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("stale\n")
    credentials = await asyncio.to_thread(IdentityFiles(token_file=path).credentials, SystemClock())
    async with asking(credentials) as transport:
        assert (await transport.send(GET, timeout=5)).status == 401
        path.write_text("fresh\n")
        assert (await transport.send(GET, timeout=5)).status == 200


# Certificates


async def test_a_client_certificate_is_shown() -> None:
    async with asking(Issuer(Identity(certificate=NEW)), ASKS_FOR_CERTIFICATES) as transport:
        assert (await transport.send(GET, timeout=5)).body == b"new"


@pytest.mark.parametrize("shown", [EXPIRED, None, Authority("unknown").client("stranger")])
async def test_a_certificate_refused_in_the_handshake_is_renewed(shown: ClientCertificate | None) -> None:
    issuer = Issuer(Identity(certificate=shown), Identity(certificate=NEW))
    with blunt(ASKS_FOR_CERTIFICATES) as server:
        async with transport_to(server, AUTHORITY.pem, issuer) as transport:
            assert (await transport.send(GET, timeout=5)).body == b"new"
    assert issuer.refusals == 1


async def test_a_certificate_refused_for_good_was_not_sent() -> None:
    issuer = Issuer(Identity(certificate=EXPIRED), Identity())
    with blunt(ASKS_FOR_CERTIFICATES) as server:
        async with transport_to(server, AUTHORITY.pem, issuer) as transport:
            with pytest.raises(ConnectionFailed, match=r"refused our client certificate") as caught:
                await transport.send(Request("POST", "/x", body=b"{}"), timeout=5)
    assert not caught.value.sent


async def test_a_certificate_refused_with_401_is_renewed() -> None:
    async with asking(Issuer(Identity(), Identity(certificate=NEW)), TAKES_CERTIFICATES) as transport:
        assert (await transport.send(GET, timeout=5)).body == b"new"


async def test_a_certificate_that_does_not_fit_its_key_is_renewed() -> None:
    """Two files are never replaced at once: whoever reads between sees the new one and the old one."""
    torn = Identity(certificate=ClientCertificate(NEW.certificate, OLD.key))
    async with asking(Issuer(torn, Identity(certificate=NEW)), ASKS_FOR_CERTIFICATES) as transport:
        assert (await transport.send(GET, timeout=5)).body == b"new"


async def test_a_certificate_that_cannot_be_used_says_why() -> None:
    torn = Identity(certificate=ClientCertificate(NEW.certificate, OLD.key))
    async with asking(Issuer(torn, torn), ASKS_FOR_CERTIFICATES) as transport:
        with pytest.raises(ConnectionFailed, match=r"do not belong together") as caught:
            await transport.send(GET, timeout=5)
    assert not caught.value.sent


async def test_rotated_certificate_files_take_effect_for_new_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kedge.kube.connect.credentials.READ_AGAIN", 0.0)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write(pair: ClientCertificate) -> None:
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)

    write(OLD)
    files = IdentityFiles(certificate=certificate, key=key)
    credentials = await asyncio.to_thread(files.credentials, SystemClock())
    async with asking(credentials, ASKS_FOR_CERTIFICATES) as transport:
        assert (await transport.send(GET, timeout=5)).body == b"old"
        write(NEW)
        assert (await transport.send(GET, timeout=5)).body == b"new"


async def test_a_stream_outlives_the_certificate_it_began_with() -> None:
    gate = asyncio.Event()
    peers: set[asyncio.BaseTransport] = set()

    async def serve(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport)
        if "watch" not in request.query:
            return await users_name(request)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await gate.wait()
        await response.write(b"two\n")
        return response

    issuer = Issuer(Identity(certificate=OLD), Identity(certificate=NEW))
    async with (
        api(serve, ASKS_FOR_CERTIFICATES) as server,
        transport_to(server, AUTHORITY.pem, issuer) as transport,
    ):
        async with transport.stream(WATCH, timeout=5, silence=5) as stream:
            lines = stream.lines()
            assert await anext(lines) == b"one"
            assert (await transport.send(GET, timeout=5)).body == b"old"
            issuer.left.pop(0)
            assert (await transport.send(GET, timeout=5)).body == b"new"
            gate.set()
            assert [line async for line in lines] == [b"two"]
        # The old connections, busy or idle, are gone with the last to use them.
        await until(lambda: len([peer for peer in peers if not peer.is_closing()]) == 1)


async def test_idle_connections_of_an_old_certificate_are_dropped_at_once() -> None:
    peers: list[asyncio.BaseTransport] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport)
        return await users_name(request)

    issuer = Issuer(Identity(certificate=OLD), Identity(certificate=NEW))
    async with api(serve, ASKS_FOR_CERTIFICATES) as server, transport_to(server, AUTHORITY.pem, issuer) as transport:
        await transport.send(GET, timeout=5)
        issuer.left.pop(0)
        await transport.send(GET, timeout=5)
        await until(peers[0].is_closing)
        assert not peers[1].is_closing()


# Proxies


async def test_a_server_is_reached_through_a_proxy() -> None:
    tunnel = Tunnel()
    async with (
        api(users_name, ASKS_FOR_CERTIFICATES) as server,
        raw(tunnel) as proxy,
        transport_to(server, AUTHORITY.pem, Issuer(Identity(certificate=NEW)), proxy=proxy) as transport,
    ):
        for _ in range(2):
            assert (await transport.send(GET, timeout=5)).body == b"new"
    assert len(tunnel.heads) == 1
    assert tunnel.heads[0].startswith(f"CONNECT {server.removeprefix('https://')} ")


async def test_a_proxy_gets_its_password_and_not_our_token() -> None:
    tunnel = Tunnel()
    async with (
        api(only_fresh, SERVER) as server,
        raw(tunnel) as proxy,
        transport_to(
            server, AUTHORITY.pem, Issuer(token("fresh")), proxy=proxy.replace("://", "://me:hunter2@")
        ) as transport,
    ):
        assert (await transport.send(GET, timeout=5)).status == 200
    assert "Proxy-Authorization: Basic bWU6aHVudGVyMg==" in tunnel.heads[0]
    assert "fresh" not in tunnel.heads[0]


async def test_a_proxy_may_itself_speak_tls() -> None:
    async with (
        api(only_fresh, SERVER) as server,
        raw(Tunnel(), SERVER) as proxy,
        transport_to(server, AUTHORITY.pem, Issuer(token("fresh")), proxy=proxy) as transport,
    ):
        assert (await transport.send(GET, timeout=5)).status == 200


async def test_a_proxy_that_refuses_is_named() -> None:
    async with (
        raw(Tunnel("407 Proxy Authentication Required")) as proxy,
        transport_to("https://api.example", AUTHORITY.pem, proxy=proxy) as transport,
    ):
        with pytest.raises(ConnectionFailed, match=r"the proxy refused with 407") as caught:
            await transport.send(GET, timeout=5)
    assert not caught.value.sent


async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with raw(Tunnel()) as proxy:
        pass
    async with transport_to("https://api.example", AUTHORITY.pem, proxy=proxy) as transport:
        with pytest.raises(ConnectionFailed, match=r"the proxy cannot be reached") as caught:
            await transport.send(GET, timeout=5)
    assert not caught.value.sent


async def test_many_transports_to_one_server_do_not_mix() -> None:
    async with api(users_name, ASKS_FOR_CERTIFICATES) as server:
        transports = [
            HttpsTransport(
                Connection(server, ca=AUTHORITY.pem, credentials=Issuer(Identity(certificate=AUTHORITY.client(name))))
            )
            for name in ("ann", "bob")
        ]
        try:
            answers = await asyncio.gather(*(transport.send(GET, timeout=5) for transport in transports * 5))
        finally:
            for transport in transports:
                await transport.close()
    assert [answer.body for answer in answers] == [b"ann", b"bob"] * 5
