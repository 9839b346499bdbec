"""Credentials: secrets that do not show, files that rotate, and renewal, in virtual time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import Struct

from kedge.kube.clock import SystemClock
from kedge.kube.connect.credentials import (
    ClientCertificate,
    CredentialsFailed,
    FixedCredentials,
    Identity,
    IdentityFiles,
    IssuedIdentity,
    RefreshingCredentials,
    basic,
    bearer,
)
from support.virtual import run

START = datetime(2026, 1, 1, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)


# Secrets


@pytest.mark.parametrize(
    "value",
    [
        Identity("Bearer hunter2", ClientCertificate(b"hunter2", b"hunter2")),
        ClientCertificate(b"hunter2", b"hunter2"),
        FixedCredentials(Identity("Bearer hunter2")),
        IssuedIdentity(Identity("Bearer hunter2")),
        IdentityFiles(authorization="Bearer hunter2", key=b"hunter2"),
    ],
)
def test_no_secret_shows_when_it_is_printed(value: Struct) -> None:
    for text in (repr(value), str(value), f"{value}", repr([value]), repr(value.__rich_repr__())):
        assert "hunter2" not in text


def test_equal_secrets_are_equal() -> None:
    assert Identity("Bearer a") == Identity("Bearer a") != Identity("Bearer b")


@pytest.mark.parametrize("token", ["", "  \n", "two words", "two\nlines", "naïve"])
def test_what_no_header_can_hold_is_no_token(token: str) -> None:
    with pytest.raises(ValueError, match=r"the token"):
        bearer(token)


def test_a_token_may_end_in_a_line_break() -> None:
    assert bearer("abc\n") == "Bearer abc"


def test_a_password_is_shown_as_the_server_expects_it() -> None:
    assert basic("Aladdin", "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


async def test_a_fixed_identity_cannot_be_renewed() -> None:
    fixed = FixedCredentials(Identity("Bearer a"))
    assert not fixed.refused(await fixed.identity())


# Renewal


class LoopClock:
    """A wall-clock that goes with the loop."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())


class Source:
    """Issues tokens a, b, c…, each good for a while; takes its time, and fails when told to."""

    def __init__(self, life: timedelta | None = None, takes: float = 0.0) -> None:
        self.life = life
        self.takes = takes
        self.runs = 0
        self.under_way = 0
        self.most_under_way = 0
        self.broken = False

    async def __call__(self) -> IssuedIdentity:
        self.runs += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.under_way -= 1
        if self.broken:
            raise CredentialsFailed(f"attempt {self.runs} failed")
        now = LoopClock().now()
        return IssuedIdentity(Identity(f"Bearer {chr(96 + self.runs)}"), now + self.life if self.life else None)


def renewing(source: Source, *, every: float | None = None, pause: float = 5.0) -> RefreshingCredentials:
    return RefreshingCredentials(source, clock=LoopClock(), every=every, pause=pause)


async def shown(credentials: RefreshingCredentials) -> str:
    return ((await credentials.identity()).authorization or "").removeprefix("Bearer ")


def scenario(work: Callable[[], Awaitable[None]]) -> None:
    async def outer() -> None:
        await work()

    run(outer())


def test_an_identity_is_kept_while_it_is_good() -> None:
    async def work() -> None:
        source = Source(life=AN_HOUR)
        credentials = renewing(source)
        for _ in range(10):
            assert await shown(credentials) == "a"
            await asyncio.sleep(300)
        assert source.runs == 1

    scenario(work)


def test_callers_at_the_same_time_share_one_attempt() -> None:
    async def work() -> None:
        source = Source(takes=1.0)
        credentials = renewing(source)
        assert await asyncio.gather(*(shown(credentials) for _ in range(50))) == ["a"] * 50
        assert source.runs == 1

    scenario(work)


def test_a_caller_that_gives_up_does_not_end_the_attempt_for_others() -> None:
    async def work() -> None:
        source = Source(takes=1.0)
        credentials = renewing(source)
        first = asyncio.create_task(shown(credentials))
        second = asyncio.create_task(shown(credentials))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await second == "a"
        assert first.cancelled()
        assert source.runs == 1

    scenario(work)


def test_an_attempt_that_everyone_gave_up_still_counts() -> None:
    async def work() -> None:
        source = Source(takes=1.0)
        credentials = renewing(source)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(credentials.identity(), 0.5)
        await asyncio.sleep(1)
        assert await shown(credentials) == "a"
        assert source.runs == 1

    scenario(work)


def test_an_identity_is_renewed_in_the_background_before_it_ends() -> None:
    async def work() -> None:
        source = Source(life=AN_HOUR, takes=2.0)
        credentials = renewing(source)
        await credentials.identity()
        await asyncio.sleep(3600 - 50)
        before = asyncio.get_running_loop().time()
        assert await shown(credentials) == "a"
        assert asyncio.get_running_loop().time() == before, "nobody waits for it"
        await asyncio.sleep(3)
        assert await shown(credentials) == "b"
        assert (source.runs, source.most_under_way) == (2, 1)

    scenario(work)


def test_a_short_lived_identity_is_not_renewed_all_the_time() -> None:
    async def work() -> None:
        source = Source(life=timedelta(seconds=30))
        credentials = renewing(source)
        for _ in range(240):
            await credentials.identity()
            await asyncio.sleep(0.25)
        assert source.runs <= 4

    scenario(work)


def test_an_ended_identity_is_never_shown_again_if_there_is_another() -> None:
    async def work() -> None:
        credentials = renewing(Source(life=AN_HOUR, takes=1.0))
        assert await shown(credentials) == "a"
        await asyncio.sleep(3601)
        assert await shown(credentials) == "b"

    scenario(work)


def test_a_source_that_issues_what_has_ended_is_not_asked_in_a_loop() -> None:
    async def work() -> None:
        source = Source(life=-AN_HOUR)
        credentials = renewing(source)
        for _ in range(100):
            await credentials.identity()
            await asyncio.sleep(0.1)
        assert source.runs <= 3

    scenario(work)


def test_a_refused_identity_is_renewed_at_once() -> None:
    async def work() -> None:
        credentials = renewing(Source())
        refused = await credentials.identity()
        await asyncio.sleep(60)
        assert credentials.refused(refused)
        assert await shown(credentials) == "b"

    scenario(work)


def test_a_server_that_refuses_everything_makes_no_loop() -> None:
    async def work() -> None:
        source = Source()
        credentials = renewing(source)
        for _ in range(600):
            credentials.refused(await credentials.identity())
            await asyncio.sleep(0.1)
        assert source.runs <= 13, "a run each five seconds, for a minute"

    scenario(work)


def test_what_was_refused_a_moment_after_it_was_issued_waits_for_the_pause() -> None:
    async def work() -> None:
        credentials = renewing(Source())
        assert not credentials.refused(await credentials.identity())
        assert await shown(credentials) == "a"
        await asyncio.sleep(5)
        assert await shown(credentials) == "b"

    scenario(work)


def test_many_refusals_of_one_identity_lead_to_one_renewal() -> None:
    async def work() -> None:
        source = Source(takes=1.0)
        credentials = renewing(source)
        old = await credentials.identity()
        await asyncio.sleep(60)

        async def refuse_and_ask() -> str:
            assert credentials.refused(old)
            return await shown(credentials)

        assert set(await asyncio.gather(*(refuse_and_ask() for _ in range(20)))) == {"b"}
        assert credentials.refused(old), "a late refusal of the old one: there is a newer one"
        assert await shown(credentials) == "b"
        assert source.runs == 2

    scenario(work)


def test_a_good_identity_stays_in_use_while_renewal_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        source = Source(life=AN_HOUR)
        credentials = renewing(source)
        await credentials.identity()
        source.broken = True
        await asyncio.sleep(3600 - 30)
        for _ in range(20):
            assert await shown(credentials) == "a"
            await asyncio.sleep(1)
        assert source.runs <= 6
        await asyncio.sleep(20)
        with pytest.raises(CredentialsFailed, match=r"attempt \d failed"):
            await credentials.identity()
        source.broken = False
        await asyncio.sleep(5)
        assert len(await shown(credentials)) == 1

    with caplog.at_level(logging.WARNING):
        scenario(work)
    assert "credentials not renewed" in caplog.text


def test_a_failure_is_told_to_all_who_ask_within_the_pause() -> None:
    async def work() -> None:
        source = Source()
        source.broken = True
        credentials = renewing(source)
        for _ in range(20):
            with pytest.raises(CredentialsFailed, match=r"attempt 1 failed"):
                await credentials.identity()
            await asyncio.sleep(0.1)

    scenario(work)


def test_what_fails_in_an_unforeseen_way_does_not_show_what_it_held() -> None:
    async def surprise() -> IssuedIdentity:
        raise KeyError("hunter2")

    async def work() -> None:
        credentials = RefreshingCredentials(surprise, clock=LoopClock(), pause=5)
        with pytest.raises(KeyError):
            await credentials.identity()
        with pytest.raises(CredentialsFailed, match=r"could not be had: KeyError$"):
            await credentials.identity()

    scenario(work)


def test_a_source_is_asked_every_so_often() -> None:
    async def work() -> None:
        source = Source()
        credentials = renewing(source, every=60.0)
        seen = []
        for _ in range(13):
            seen.append(await shown(credentials))
            await asyncio.sleep(10)
        assert seen == ["a"] * 6 + ["b"] * 6 + ["c"]

    scenario(work)


def test_a_source_that_fails_now_and_then_keeps_what_it_had() -> None:
    async def work() -> None:
        source = Source()
        credentials = renewing(source, every=60.0, pause=0.0)
        await credentials.identity()
        source.broken = True
        await asyncio.sleep(61)
        for _ in range(10):
            assert await shown(credentials) == "a"
        assert source.runs == 2

    scenario(work)


# Files


def files(**parts: Path | bytes | str) -> IdentityFiles:
    return IdentityFiles(**parts)  # type: ignore[arg-type]


def test_what_is_in_place_needs_no_renewal() -> None:
    made = files(authorization="Bearer a", certificate=b"c", key=b"k").credentials(SystemClock())
    assert made == FixedCredentials(Identity("Bearer a", ClientCertificate(b"c", b"k")))


def test_a_token_file_wins_over_a_token_while_it_can_be_read(tmp_path: Path) -> None:
    made = files(authorization="Bearer a", token_file=tmp_path / "token")
    assert made.read().authorization == "Bearer a"
    (tmp_path / "token").write_text("b\n")
    assert made.read().authorization == "Bearer b"


@pytest.mark.parametrize(
    ("content", "told"), [(None, "cannot be read: No such file"), ("", "is empty"), ("a b", "spaces")]
)
def test_a_file_that_holds_no_token_is_named(tmp_path: Path, content: str | None, told: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsFailed) as caught:
        files(token_file=path).credentials(SystemClock())
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


async def test_files_are_read_again_when_their_time_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kedge.kube.connect.credentials.READ_AGAIN", 0.0)
    token, certificate, key = tmp_path / "token", tmp_path / "tls.crt", tmp_path / "tls.key"
    for path in (token, certificate, key):
        path.write_text("old")
    made = await asyncio.to_thread(files(token_file=token, certificate=certificate, key=key).credentials, SystemClock())
    assert await made.identity() == Identity("Bearer old", ClientCertificate(b"old", b"old"))
    for path in (token, certificate, key):
        path.write_text("new")
    assert await made.identity() == Identity("Bearer new", ClientCertificate(b"new", b"new"))


async def test_files_are_not_read_for_every_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    made = await asyncio.to_thread(files(token_file=token).credentials, SystemClock())
    await made.identity()
    token.write_text("new")
    assert (await made.identity()).authorization == "Bearer old"
    assert made.refused(await made.identity())
    assert (await made.identity()).authorization == "Bearer new"


async def test_a_token_file_that_vanishes_leaves_its_token_in_use_until_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kedge.kube.connect.credentials.READ_AGAIN", 0.0)
    token = tmp_path / "token"
    token.write_text("old")
    made = await asyncio.to_thread(files(token_file=token).credentials, SystemClock())
    held = await made.identity()
    token.unlink()
    assert await made.identity() == held
    assert made.refused(held)
    with pytest.raises(CredentialsFailed, match=r"cannot be read"):
        await made.identity()
