"""A service account's token that is renewed before it ends, in virtual time."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec
import pytest

from kedge.kube.connect.credentials import Credentials, CredentialsFailed, Identity
from kedge.kube.connect.service_tokens import NotSaved, Renewal, service_token
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.scripted import Scripted
from support.stage import START, LoopClock
from support.virtual import run

HOUR = timedelta(hours=1)


def token(issued: datetime, life: timedelta = HOUR, subject: str = "system:serviceaccount:fleet-system:agent") -> str:
    claims = {"sub": subject, "iat": issued.timestamp(), "exp": (issued + life).timestamp()}
    parts = ({"alg": "none"}, claims)
    return ".".join(base64.urlsafe_b64encode(msgspec.json.encode(part)).decode().rstrip("=") for part in parts) + ".x"


class Server:
    """An API server that knows tokens, and where one is kept."""

    def __init__(self) -> None:
        self.kept = token(START)
        self.asked: list[Request] = []
        self.is_down = False
        self.refuses = 0
        self.is_full = False

    def as_somebody(self, identity: Identity) -> Scripted:
        transport = Scripted([Response(200)])

        async def send(request: Request, *, timeout: float) -> Response:
            return self._answer(request, identity)

        transport.send = send  # type: ignore[method-assign]
        return transport

    def accepts(self, identity: Identity) -> bool:
        shown = service_token((identity.authorization or "").removeprefix("Bearer "))
        return shown is not None and LoopClock().now() < shown.expires

    def _answer(self, request: Request, identity: Identity) -> Response:
        if self.is_down:
            raise ConnectionFailed("nobody is there", sent=False)
        self.asked.append(request)
        if not self.accepts(identity):
            return Response(401)
        if self.refuses:
            return Response(self.refuses)
        seconds = msgspec.json.decode(request.body)["spec"]["expirationSeconds"]
        made = token(LoopClock().now(), timedelta(seconds=seconds))
        return Response(201, msgspec.json.encode({"status": {"token": made}}))

    async def read(self) -> str:
        return self.kept

    async def save(self, text: str) -> None:
        if self.is_full:
            raise NotSaved("read-only file system")
        self.kept = text

    def agent(self) -> Credentials:
        """One that starts now, with what is kept."""
        found = service_token(self.kept)
        assert found is not None
        return Renewal(
            found,
            transport=self.as_somebody,
            read=self.read,
            save=self.save,
            clock=LoopClock(),
            remedy="write a new one there",
        ).credentials()


async def heartbeats(server: Server, agent: Credentials, how_long: timedelta) -> int:
    """One a minute; gives how many the server refused."""
    refused = 0
    for _ in range(round(how_long.total_seconds() / 60)):
        refused += not server.accepts(await agent.identity())
        await asyncio.sleep(60)
    return refused


def play(scene: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene(Server())

    run(main())


def test_an_agent_goes_on_for_days_with_tokens_of_an_hour() -> None:
    async def scene(server: Server) -> None:
        assert await heartbeats(server, server.agent(), 72 * HOUR) == 0
        assert len(server.asked) == pytest.approx(144, abs=6), "each time half of its life is over"
        assert {one.path for one in server.asked} == {"/api/v1/namespaces/fleet-system/serviceaccounts/agent/token"}

    play(scene)


def test_one_that_starts_again_finds_the_renewed_token() -> None:
    async def scene(server: Server) -> None:
        await heartbeats(server, server.agent(), 5 * HOUR)
        assert await heartbeats(server, server.agent(), HOUR) == 0

    play(scene)


def test_a_hub_that_cannot_be_reached_for_less_than_half_of_a_life_locks_nobody_out() -> None:
    async def scene(server: Server) -> None:
        agent = server.agent()
        await heartbeats(server, agent, HOUR / 2 - timedelta(minutes=1))
        server.is_down = True
        await heartbeats(server, agent, timedelta(minutes=25))
        server.is_down = False
        assert await heartbeats(server, agent, 3 * HOUR) == 0

    play(scene)


def test_a_token_that_ended_says_what_to_do_and_a_new_one_is_found_without_a_restart() -> None:
    async def scene(server: Server) -> None:
        await asyncio.sleep(2 * 3600)
        agent = server.agent()
        with pytest.raises(CredentialsFailed, match="ended at 2030-01-01T01:00:00Z: write a new one there"):
            await agent.identity()
        server.kept = token(LoopClock().now())
        await asyncio.sleep(120)
        assert server.accepts(await agent.identity())

    play(scene)


@pytest.mark.parametrize(("status", "says"), [(403, "`kedge join` for the same member grants it"), (500, "500")])
def test_a_token_that_may_not_be_renewed_stays_in_use_until_it_ends(
    status: int, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(server: Server) -> None:
        server.refuses = status
        with caplog.at_level(logging.WARNING):
            assert await heartbeats(server, server.agent(), HOUR) == 0
        assert says in caplog.text
        assert server.kept not in caplog.text

    play(scene)


def test_what_cannot_be_saved_is_used_all_the_same_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(server: Server) -> None:
        server.is_full = True
        with caplog.at_level(logging.WARNING):
            assert await heartbeats(server, server.agent(), 5 * HOUR) == 0
        assert "not saved: read-only file system; it is good until 2030-01-01T01:3" in caplog.text

    play(scene)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b.c",
        "a.e30.c",
        token(START, subject="somebody"),
        token(START, subject="system:serviceaccount:alone"),
    ],
)
def test_what_is_no_service_accounts_token_is_left_alone(text: str) -> None:
    assert service_token(text) is None


def test_a_short_token_is_renewed_for_as_long_as_servers_give_at_least() -> None:
    async def scene(server: Server) -> None:
        server.kept = token(START, timedelta(minutes=2))
        assert await heartbeats(server, server.agent(), HOUR) == 0
        first = msgspec.json.decode(server.asked[0].body)
        assert first["spec"]["expirationSeconds"] == 600

    play(scene)
