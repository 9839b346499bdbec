"""Heartbeats, as a table of what a hub hears and when it counts a member as silent."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster, MemberClusterStatus
from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.plan.heartbeats import (
    ReceivedHeartbeat,
    heartbeat_state,
    heartbeat_timeout,
    last_heartbeat,
    with_unreachable_condition,
)
from plan.test_membership import NOW, agent, condition, member, said

HOUR = timedelta(hours=1)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def showing(at: datetime | None, *, period: int = 15) -> MemberCluster:
    """A member whose last heartbeat is shown as of then."""
    shown = replace(agent(TRUE), last_received_heartbeat=at)
    return member(period=period, status=MemberClusterStatus(agent_status=(shown,)))


def unreachable(found: MemberCluster) -> MemberCluster:
    silent = heartbeat_state(found, None, ReceivedHeartbeat(after(-60), after(-60), 0.0, while_listening=True), 1e6)
    return replace(found, status=replace(found.status, conditions=with_unreachable_condition(found, silent, NOW)))


@pytest.mark.parametrize(
    ("period", "ago", "silent"),
    [(15, 44.0, False), (15, 45.0, True), (1, 29.0, False), (1, 30.0, True), (60, 179.0, False), (60, 181.0, True)],
)
def test_a_member_is_silent_after_three_heartbeat_periods_and_at_least_half_a_minute(
    period: int, ago: float, silent: bool
) -> None:
    last = ReceivedHeartbeat(NOW, NOW, 100.0, while_listening=True)
    assert heartbeat_state(member(period=period), said(agent(TRUE)), last, 100.0 + ago).is_silent == silent


@pytest.mark.parametrize("joined", [None, FALSE, UNKNOWN])
def test_a_member_that_has_not_joined_is_never_silent(joined: str | None) -> None:
    last = ReceivedHeartbeat(NOW, NOW, 0.0, while_listening=True)
    assert heartbeat_state(member(), said(agent(joined)), last, 9999.0).last is None


def test_a_member_that_never_sent_a_heartbeat_is_never_silent() -> None:
    assert last_heartbeat(None, member(), None, NOW, 0.0) is None
    assert heartbeat_state(member(), None, None, 9999.0).last is None


@pytest.mark.parametrize("off", [-HOUR, timedelta(0), HOUR])
def test_the_time_of_a_heartbeat_is_the_hubs(off: timedelta) -> None:
    first = last_heartbeat(None, member(), said(replace(agent(TRUE), last_received_heartbeat=NOW + off)), NOW, 5.0)
    assert first == ReceivedHeartbeat(NOW + off, NOW, 5.0, while_listening=True)
    next_said = said(replace(agent(TRUE), last_received_heartbeat=after(15) + off))
    assert last_heartbeat(first, member(), next_said, after(16.5), 21.5) == ReceivedHeartbeat(
        after(15) + off, after(16), 21.5, True
    )


def test_the_same_reported_time_again_is_no_heartbeat() -> None:
    first = last_heartbeat(None, member(), said(agent(TRUE)), NOW, 0.0)
    assert last_heartbeat(first, member(), said(agent(TRUE)), after(40), 40.0) == first


def test_an_earlier_reported_time_is_a_heartbeat_too() -> None:
    first = last_heartbeat(None, member(), said(agent(TRUE)), NOW, 0.0)
    back = last_heartbeat(first, member(), said(agent(TRUE, ago=3600)), after(15), 15.0)
    assert back is not None
    assert (back.received_at, back.monotonic) == (after(15), 15.0)


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
def test_a_hub_that_starts_gives_every_member_the_whole_timeout(shown: float, told: float, at: float) -> None:
    found, word = showing(after(shown)), said(replace(agent(TRUE), last_received_heartbeat=after(told)))
    last = last_heartbeat(None, found, word, NOW, 100.0)
    assert last is not None
    assert last.received_at == after(at)
    assert not heartbeat_state(found, word, last, 144.0).is_silent
    assert heartbeat_state(found, word, last, 145.0).is_silent


@pytest.mark.parametrize("told", [-60, 3540])
def test_a_silent_member_must_send_a_new_heartbeat_to_a_hub_that_starts(told: float) -> None:
    found, word = unreachable(showing(after(-60))), said(replace(agent(TRUE), last_received_heartbeat=after(told)))
    last = last_heartbeat(None, found, word, NOW, 100.0)
    heard = heartbeat_state(found, word, last, 100.0)
    assert (heard.is_silent, heard.last) == (True, after(-60))
    assert with_unreachable_condition(found, heard, NOW) == found.status.conditions
    again = said(replace(agent(TRUE), last_received_heartbeat=after(told + 15)))
    heard = heartbeat_state(found, again, last_heartbeat(last, found, again, after(15), 115.0), 115.0)
    assert with_unreachable_condition(found, heard, after(15)) == ()


def test_the_unreachable_condition_is_added_and_removed() -> None:
    found = showing(after(-60))
    found = replace(found, status=replace(found.status, conditions=(condition("A", TRUE),)))
    heard = heartbeat_state(found, None, ReceivedHeartbeat(after(-60), after(-60), 0.0, while_listening=True), 60.0)
    conditions = with_unreachable_condition(found, heard, NOW)
    unhealthy = conditions[1]
    assert (unhealthy.type, unhealthy.status, unhealthy.reason) == ("Healthy", FALSE, "MemberClusterUnreachable")
    assert "its last heartbeat was at 2030-01-01T11:59:00Z" in unhealthy.message
    back = replace(found, status=replace(found.status, conditions=conditions))
    heard = heartbeat_state(back, None, ReceivedHeartbeat(NOW, NOW, 60.0, while_listening=True), 60.0)
    assert with_unreachable_condition(back, heard, NOW) == found.status.conditions


@given(
    off=st.integers(-86400, 86400),
    jump=st.integers(-86400, 86400),
    gaps=st.lists(st.integers(1, 44), min_size=1, max_size=8),
)
def test_no_jump_of_a_clock_changes_whether_a_member_is_silent(off: int, jump: int, gaps: list[int]) -> None:
    """`off` is how wrong the member's clock is; the hub's own is put wrong by `jump` midway."""
    found, last, moment = member(period=15), None, 0.0
    for number, gap in enumerate(gaps):
        word = said(replace(agent(TRUE), last_received_heartbeat=after(moment + off)))
        last = last_heartbeat(last, found, word, after(moment + (jump if number > 1 else 0)), moment)
        assert not heartbeat_state(found, word, last, moment + gap).is_silent
        assert heartbeat_state(found, word, last, moment + heartbeat_timeout(found)).is_silent
        moment += gap
