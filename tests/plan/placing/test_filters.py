"""Which members can take on anything new."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kedge.plan.placing.filters import eligible_until, is_overdue, why_ineligible
from plan.placing.members_and_bindings import NOW, agent, member

LOST = "cluster is not connected to the fleet: "
CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("well", {}, None),
    ("leaving", {"leaving": True}, "cluster has left the fleet"),
    ("no agent", {"agents": ()}, LOST + "member agent not online yet"),
    (
        "another agent",
        {"agents": ({**agent(), "type": "MultiClusterServiceAgent"},)},
        LOST + "member agent not online yet",
    ),
    ("never heard", {"agents": (agent(heard=None),)}, LOST + "no heartbeat signals received yet"),
    ("heard just in time", {"agents": (agent(heard=5),)}, None),
    (
        "silent",
        {"agents": (agent(heard=5.5),)},
        LOST + "no recent heartbeat signals (last received at 2030-01-01T11:54:30Z)",
    ),
    ("not joined", {"agents": (agent(joined="False"),)}, LOST + "member agent not joined yet"),
    ("joined unknown", {"agents": (agent(joined=None),)}, LOST + "member agent not joined yet"),
    (
        "health unknown",
        {"agents": (agent(healthy=None),)},
        LOST + "health condition from member agent is not available",
    ),
    ("unwell for a moment", {"agents": (agent(healthy="False", since=5),)}, None),
    (
        "unwell for long",
        {"agents": (agent(healthy="Unknown", since=6),)},
        LOST + "unhealthy for a prolonged period of time (since 2030-01-01T11:54:00Z)",
    ),
]


@pytest.mark.parametrize(("said", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_member_is_eligible_or_there_is_a_reason(said: dict[str, Any], why: str | None) -> None:
    assert why_ineligible(member("c", **said), NOW) == why


@pytest.mark.parametrize(("said", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_member_is_overdue_if_that_is_the_reason(said: dict[str, Any], why: str | None) -> None:
    is_overdue_by_words = any(words in (why or "") for words in ("no recent heartbeat", "for a prolonged period"))
    assert is_overdue(member("c", **said), NOW) == is_overdue_by_words


def test_a_member_that_leaves_is_not_overdue() -> None:
    assert not is_overdue(member("c", leaving=True, agents=(agent(heard=9),)), NOW)


@pytest.mark.parametrize(
    ("said", "minutes"),
    [(agent(heard=1), 4), (agent(heard=1, healthy="False", since=3), 2), (agent(heard=4, healthy="False", since=3), 1)],
)
def test_a_member_stays_eligible_until_it_was_silent_or_unhealthy_for_five_minutes(said: Any, minutes: int) -> None:
    found = member("c", agents=(said,))
    end = eligible_until(found)
    assert end == NOW + timedelta(minutes=minutes)
    assert why_ineligible(found, end) is None
    assert why_ineligible(found, end + timedelta(seconds=1)) is not None


def test_eligible_until_is_unknown_without_a_heartbeat() -> None:
    assert eligible_until(member("c", agents=(agent(heard=None),))) is None
    assert eligible_until(member("c", agents=())) is None
