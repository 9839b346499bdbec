"""Heartbeats, as a table of what a hub hears and when it counts a member as silent."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster, MemberClusterStatus
from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.plan.heartbeats import Receipt, hearing, patience, received, with_silence
from plan.test_membership import NOW, agent, condition, member, said

HOUR = timedelta(hours=1)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def showing(at: datetime | None, *, period: int = 15) -> MemberCluster:
    """A member whose last heartbeat is shown as of then."""
    shown = replace(agent(TRUE), last_received_heartbeat=at)
    return member(period=period, status=MemberClusterStatus(agent_status=(shown,)))


def unreachable(found: MemberCluster) -> MemberCluster:
    silent = hearing(found, None, Receipt(after(-60), after(-60), 0.0, heard=True), 1e6)
    return replace(found, status=replace(found.status, conditions=with_silence(found, silent, NOW)))


@pytest.mark.parametrize(
    ("period", "ago", "silent"),
    [(15, 44.0, False), (15, 45.0, True), (1, 29.0, False), (1, 30.0, True), (60, 179.0, False), (60, 181.0, True)],
)
def test_a_member_is_silent_after_three_heartbeats_and_half_a_minute_at_least(
    period: int, ago: float, silent: bool
) -> None:
    last = Receipt(NOW, NOW, 100.0, heard=True)
    assert hearing(member(period=period), said(agent(TRUE)), last, 100.0 + ago).is_silent == silent


@pytest.mark.parametrize("joined", [None, FALSE, UNKNOWN])
def test_who_has_not_joined_is_not_listened_for(joined: str | None) -> None:
    last = Receipt(NOW, NOW, 0.0, heard=True)
    assert hearing(member(), said(agent(joined)), last, 9999.0).last is None


def test_who_never_sent_a_heartbeat_is_not_listened_for() -> None:
    assert received(None, member(), None, NOW, 0.0) is None
    assert hearing(member(), None, None, 9999.0).last is None


@pytest.mark.parametrize("off", [-HOUR, timedelta(0), HOUR])
def test_a_heartbeat_is_received_by_the_hubs_clock(off: timedelta) -> None:
    first = received(None, member(), said(replace(agent(TRUE), last_received_heartbeat=NOW + off)), NOW, 5.0)
    assert first == Receipt(NOW + off, NOW, 5.0, heard=True)
    next_said = said(replace(agent(TRUE), last_received_heartbeat=after(15) + off))
    assert received(first, member(), next_said, after(16.5), 21.5) == Receipt(after(15) + off, after(16), 21.5, True)


def test_the_same_word_again_is_no_heartbeat() -> None:
    first = received(None, member(), said(agent(TRUE)), NOW, 0.0)
    assert received(first, member(), said(agent(TRUE)), after(40), 40.0) == first


def test_a_members_clock_that_is_put_back_is_a_heartbeat() -> None:
    first = received(None, member(), said(agent(TRUE)), NOW, 0.0)
    back = received(first, member(), said(agent(TRUE, ago=3600)), after(15), 15.0)
    assert back is not None
    assert (back.at, back.moment) == (after(15), 15.0)


@pytest.mark.parametrize(
    ("shown", "told", "at"),
    [
        pytest.param(-600, -60, -60, id="sent while no hub listened"),
        pytest.param(-60, -60, -60, id="the last one heard"),
        pytest.param(-60, 3540, 0, id="of a member whose clock is ahead"),
        pytest.param(-60, -3660, -60, id="of a member whose clock is behind"),
        pytest.param(600, -60, 0, id="heard by a hub whose clock was ahead"),
    ],
)
def test_a_hub_that_begins_to_listen_gives_every_member_its_patience(shown: float, told: float, at: float) -> None:
    found, word = showing(after(shown)), said(replace(agent(TRUE), last_received_heartbeat=after(told)))
    last = received(None, found, word, NOW, 100.0)
    assert last is not None
    assert last.at == after(at)
    assert not hearing(found, word, last, 144.0).is_silent
    assert hearing(found, word, last, 145.0).is_silent


@pytest.mark.parametrize("told", [-60, 3540])
def test_who_counted_as_silent_has_to_be_heard_by_a_hub_that_begins_to_listen(told: float) -> None:
    found, word = unreachable(showing(after(-60))), said(replace(agent(TRUE), last_received_heartbeat=after(told)))
    last = received(None, found, word, NOW, 100.0)
    heard = hearing(found, word, last, 100.0)
    assert (heard.is_silent, heard.last) == (True, after(-60))
    assert with_silence(found, heard, NOW) == found.status.conditions
    again = said(replace(agent(TRUE), last_received_heartbeat=after(told + 15)))
    heard = hearing(found, again, received(last, found, again, after(15), 115.0), 115.0)
    assert with_silence(found, heard, after(15)) == ()


def test_silence_is_a_condition_that_comes_and_goes() -> None:
    found = showing(after(-60))
    found = replace(found, status=replace(found.status, conditions=(condition("A", TRUE),)))
    heard = hearing(found, None, Receipt(after(-60), after(-60), 0.0, heard=True), 60.0)
    conditions = with_silence(found, heard, NOW)
    unhealthy = conditions[1]
    assert (unhealthy.type, unhealthy.status, unhealthy.reason) == ("Healthy", FALSE, "MemberClusterUnreachable")
    assert "its last heartbeat was at 2030-01-01T11:59:00Z" in unhealthy.message
    back = replace(found, status=replace(found.status, conditions=conditions))
    heard = hearing(back, None, Receipt(NOW, NOW, 60.0, heard=True), 60.0)
    assert with_silence(back, heard, NOW) == found.status.conditions


@given(
    off=st.integers(-86400, 86400),
    jump=st.integers(-86400, 86400),
    gaps=st.lists(st.integers(1, 44), min_size=1, max_size=8),
)
def test_no_clock_makes_a_member_silent_that_beats_or_heard_that_does_not(off: int, jump: int, gaps: list[int]) -> None:
    """`off` is how wrong the member's clock is; the hub's own is put wrong by `jump` midway."""
    found, last, moment = member(period=15), None, 0.0
    for number, gap in enumerate(gaps):
        word = said(replace(agent(TRUE), last_received_heartbeat=after(moment + off)))
        last = received(last, found, word, after(moment + (jump if number > 1 else 0)), moment)
        assert not hearing(found, word, last, moment + gap).is_silent
        assert hearing(found, word, last, moment + patience(found)).is_silent
        moment += gap
