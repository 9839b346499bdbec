"""The certificate in its Secret: made, shared by replicas, repaired and renewed, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from controllers.zone.certificate_bed import HOST, NAME, NAMESPACE, Bed, play, until_shown
from kedge.simulate.clock import START
from support.certificates import data_of, made, with_next

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets"


def test_without_a_Secret_one_is_created_and_served() -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica() as one:
            await until_shown(one)
            stored = await bed.until_stored()
            assert one.now_shown == stored.current
            assert stored.current.names == (HOST,)
            assert one.gate.writes() == [f"POST {SECRET}"]

    play(act)


def test_a_good_Secret_is_served_as_it_is() -> None:
    async def act(bed: Bed) -> None:
        data = data_of(made(at=START))
        await bed.put(data)
        async with bed.replica() as one:
            await until_shown(one, pem=data["cert"])
            await asyncio.sleep(3600)
            assert await bed.data() == data
            assert not one.gate.writes()
            assert len(one.shown) == 1

    play(act)


def test_only_the_one_Secret_is_read_and_not_too_often() -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica() as one:
            await until_shown(one)
            before = len(one.gate.asked)
            await asyncio.sleep(3600)
            asked = [ask for ask in one.gate.asked[before:] if "secrets" in ask]
            assert set(asked) == {f"GET {SECRET}/{NAME}"}
            assert len(asked) <= 160

    play(act)


@pytest.mark.parametrize("seed", range(6))
def test_replicas_that_start_together_agree_on_one_certificate(seed: int) -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica() as one, bed.replica() as other, bed.replica() as third:
            await until_shown(one, other, third)
            stored = await bed.until_stored()
            assert {each.now_shown for each in (one, other, third)} == {stored.current}
            assert [len(each.shown) for each in (one, other, third)] == [1, 1, 1]
            await asyncio.sleep(600)
            assert await bed.stored() == stored

    play(act, seed=seed)


DAMAGED = {
    "empty": {},
    "no key": {**data_of(made(at=START)), "key": b""},
    "garbage": {**data_of(made(at=START)), "cert": b"garbage"},
    "foreign": {**data_of(made(at=START)), "ca": made(at=START).ca},
    "key of another": {**data_of(made(at=START)), "key": made(at=START).key},
    "expired": data_of(made(at=START - 400 * DAY)),
    "not yet valid": data_of(made(at=START + 2 * DAY)),
}


@pytest.mark.parametrize("row", DAMAGED)
def test_what_cannot_be_served_is_replaced_at_the_start(row: str) -> None:
    async def act(bed: Bed) -> None:
        await bed.put({**DAMAGED[row], "mine": b"kept"})
        await bed.configure("hook")
        async with bed.replica() as one:
            await until_shown(one)
            stored = await bed.until_stored()
            assert one.now_shown == stored.current
            assert (await bed.data() or {})["mine"] == b"kept"
            await bed.until_injected("hook")
            assert not await bed.call("hook")

    play(act)


@pytest.mark.parametrize("row", [*DAMAGED, "deleted"])
def test_what_is_damaged_by_hand_is_written_back_and_no_call_fails(row: str) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica() as one, bed.replica() as other:
            await until_shown(one, other)
            await bed.until_injected("hook")
            before = await bed.data()
            await (bed.delete() if row == "deleted" else bed.put(DAMAGED[row]))
            for _ in range(100):
                await asyncio.sleep(1)
                assert not await bed.call("hook")
            assert await bed.data() == before
            assert len(one.made) + len(other.made) <= 2  # at the start

    play(act)


def test_another_good_certificate_that_somebody_stores_is_taken_over_without_a_failed_call() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica() as one, bed.replica() as other:
            await until_shown(one, other)
            await bed.until_injected("hook")
            new = made(at=START)
            await bed.put(data_of(new))
            for _ in range(200):
                await asyncio.sleep(1)
                assert not await bed.call("hook")
            await until_shown(one, other, pem=new.certificate)

    play(act)


@pytest.mark.parametrize("expiration", [timedelta(minutes=10), HOUR])
def test_it_is_renewed_before_its_end_without_a_failed_call(expiration: timedelta) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook", hooks=2)
        async with bed.replica(expiration=expiration) as one, bed.replica(expiration=expiration) as other:
            await until_shown(one, other)
            await bed.until_injected("hook")
            first = one.now_shown
            looks = 1000
            for _ in range(looks):
                await asyncio.sleep(2.5 * expiration.total_seconds() / looks)
                assert not await bed.call("hook")
            assert one.now_shown == other.now_shown != first
            # As many as needed, not more: each lives for about two thirds of its time.
            assert 2 <= len({pair.certificate for _, pair in one.shown}) <= 5

    play(act)


def test_a_certificate_of_a_year_is_renewed_in_its_last_month() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica() as one, bed.replica() as other:
            await until_shown(one, other)
            await bed.until_injected("hook")
            asyncio.get_running_loop().skip(334 * DAY.total_seconds())  # type: ignore[attr-defined]
            await asyncio.sleep(300)
            assert [len(one.shown), len(other.shown)] == [1, 1]
            asyncio.get_running_loop().skip(5 * DAY.total_seconds())  # type: ignore[attr-defined]
            for _ in range(200):
                await asyncio.sleep(1)
                assert not await bed.call("hook")
            assert [len(one.shown), len(other.shown)] == [2, 2]
            assert one.now_shown == other.now_shown

    play(act)


def test_old_authorities_are_removed_when_they_have_expired() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica(expiration=HOUR) as one:
            await until_shown(one)
            await asyncio.sleep(3 * HOUR.total_seconds())
            stored = await bed.until_stored()
            assert len(stored.authorities) <= 2
            assert await bed.until_injected("hook") == stored.ca

    play(act)


def test_the_new_certificate_is_shown_only_after_every_configuration_has_its_authority_for_a_minute() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica(expiration=HOUR) as one:
            await until_shown(one)
            old = await bed.until_injected("hook")
            async with asyncio.timeout(HOUR.total_seconds()):
                while (bundle := (await bed.bundles_of("hook"))[0]) == old:
                    await asyncio.sleep(1)
            assert old in bundle
            injected = bed.clock.now()
            while len(one.shown) == 1:
                await asyncio.sleep(1)
            assert timedelta(seconds=55) < one.shown[1][0] - injected < timedelta(seconds=120)

    play(act)


def test_without_injection_the_user_has_time_to_copy_the_new_authority() -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica(expiration=HOUR, injects=False) as one:
            await until_shown(one)
            await asyncio.sleep(HOUR.total_seconds() * 0.75)
            assert len((await bed.until_stored()).authorities) == 2
            assert len(one.shown) == 1
            await asyncio.sleep(HOUR.total_seconds() * 0.15)
            assert len(one.shown) == 2
            assert one.now_shown == (await bed.until_stored()).current

    play(act)


def test_a_certificate_without_a_wanted_name_is_renewed() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica():
            await bed.until_injected("hook")
        async with bed.replica(names=("other.shop.svc",)) as one, bed.replica() as other:
            await asyncio.sleep(600)
            for each in (one, other):
                assert each.now_shown is not None
                assert set(each.now_shown.names) == {HOST, "other.shop.svc"}
            assert len(one.made) + len(other.made) == 1

    play(act)


@pytest.mark.parametrize("writes", range(8))
def test_a_replica_that_crashes_at_any_write_leaves_nothing_broken(writes: int) -> None:
    """Creation, injection, renewal: each write is the last one once, done with its answer lost."""

    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(bed.replica(expiration=HOUR, crash_after=writes))
            await asyncio.sleep(HOUR.total_seconds() * 0.7)
        del bed.replicas[:]
        async with bed.replica(expiration=HOUR) as one:
            await until_shown(one)
            await bed.until_injected("hook")
            for _ in range(300):
                await asyncio.sleep(HOUR.total_seconds() / 200)
                assert not await bed.call("hook")
            assert "next-cert" not in (await bed.data() or {})

    play(act)


def test_a_clock_that_jumps_to_the_end_has_the_certificate_replaced_at_once() -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica() as one:
            await until_shown(one)
            first = one.now_shown
            one.clock.jump(366 * DAY.total_seconds())
            await asyncio.sleep(60)
            assert one.now_shown != first
            assert one.now_shown is not None
            assert not one.now_shown.problem(one.clock.now())

    play(act)


def test_a_clock_that_jumps_back_does_not_make_more_and_more_certificates() -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica() as one:
            await until_shown(one)
            one.clock.jump(-2 * DAY.total_seconds())
            await asyncio.sleep(3600)
            one.clock.jump(2 * DAY.total_seconds())
            await asyncio.sleep(3600)
            assert len(one.made) <= 2
            assert one.now_shown is not None
            assert not one.now_shown.problem(one.clock.now())

    play(act)


def test_a_damaged_next_certificate_is_made_again() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        start = data_of(made(at=START, expiration=10 * DAY))
        late = made(at=START, expiration=10 * DAY)
        await bed.put({**with_next(start, late), "next-key": b"garbage"})
        async with bed.replica(expiration=10 * DAY) as one:
            await until_shown(one, pem=start["cert"])
            await asyncio.sleep(60)
            assert set(await bed.data() or {}) == {"ca", "cert", "key"}
            assert not await bed.call("hook")

    play(act)


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_a_missing_right_is_reported_once_and_made_up_for_when_it_is_granted(
    verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(bed: Bed) -> None:
        async with bed.replica(refuses=lambda asked, path: asked == verb and "/secrets" in path) as one:
            await asyncio.sleep(600)
            assert not one.shown
            one.gate.refuses = lambda *_: False
            await until_shown(one)

    play(act)
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert said == [f"Secret shop/{NAME}: grant create of secrets, and get and update of this one (not granted)"]


def test_an_API_that_is_away_for_a_while_harms_nothing() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("hook")
        async with bed.replica(expiration=HOUR) as one:
            await until_shown(one)
            await bed.until_injected("hook")
            one.gate.disconnect()
            await asyncio.sleep(0.6 * HOUR.total_seconds())
            one.gate.connect()
            for _ in range(200):
                await asyncio.sleep(5)
                assert not await bed.call("hook")
            assert len(one.shown) == 2

    play(act)
