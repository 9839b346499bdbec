"""Heartbeats: when the hub received the last heartbeat of a member, and when the member counts as silent.

A heartbeat is a time reported by an agent that differs from the one before. Which time it is does not matter: the
clock of a member may be hours off, and that must not make it reachable for longer or shorter. When a heartbeat was
received is shown by the hub's clock, for people. How long ago that was is measured by a monotonic clock.

A hub that starts cannot know when the heartbeat that it finds was received. It then gives every member the whole
timeout, except those that counted as silent already: those have to send a new one first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api import reasons
from kedge.api.cluster import AgentStatus, InternalMemberCluster, MemberCluster
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition, set_condition
from kedge.plan.membership import agent_of, unreachable_message
from kedge.plan.text import moment

MIN_TIMEOUT: Final = 30.0


class ReceivedHeartbeat(Struct, frozen=True):
    """The last heartbeat of a member: the time the agent reported, and when it came, by the hub's two clocks.

    `while_listening`: it came while the hub was running. Otherwise the hub found it when it started.
    """

    reported: datetime
    received_at: datetime
    monotonic: float
    while_listening: bool


def last_heartbeat(
    before: ReceivedHeartbeat | None,
    member: MemberCluster,
    reported: InternalMemberCluster | None,
    now: datetime,
    monotonic: float,
) -> ReceivedHeartbeat | None:
    """The last heartbeat, given the one known before; None if there never was one."""
    shown = _heartbeat(agent_of(member.status.agent_status))
    new = _heartbeat(agent_of(reported.status.agent_status) if reported is not None else None) or shown
    if new is None:
        return None
    if before is None:
        return ReceivedHeartbeat(new, _time_of_first(member, shown, new, now), monotonic, while_listening=shown is None)
    return (
        before
        if before.reported == new
        else ReceivedHeartbeat(new, now.replace(microsecond=0), monotonic, while_listening=True)
    )


def _time_of_first(member: MemberCluster, shown: datetime | None, new: datetime, now: datetime) -> datetime:
    """When a heartbeat came that the hub found when it started: as reported, but between the last one known and now.

    The heartbeat of a member that counts as silent is not a new one.
    """
    latest = now.replace(microsecond=0)
    if shown is None:
        return latest
    return shown if unreachable_message(member) else min(latest, max(shown, new))


def _heartbeat(agent: AgentStatus | None) -> datetime | None:
    return agent.last_received_heartbeat if agent is not None else None


class HeartbeatState(Struct, frozen=True):
    """When a member sent its last heartbeat, and in how many seconds it counts as silent."""

    last: datetime | None
    seconds_left: float

    @property
    def is_silent(self) -> bool:
        return self.last is not None and self.seconds_left <= 0


def heartbeat_timeout(member: MemberCluster) -> float:
    """How many seconds a member may be silent: three heartbeat periods, and at least half a minute."""
    return max(3.0 * member.spec.heartbeat_period_seconds, MIN_TIMEOUT)


def heartbeat_state(
    member: MemberCluster, reported: InternalMemberCluster | None, last: ReceivedHeartbeat | None, monotonic: float
) -> HeartbeatState:
    """The state at a monotonic time. A member that has not joined, or has left, never counts as silent."""
    if last is None or not has_joined(member, reported):
        return HeartbeatState(None, heartbeat_timeout(member))
    if not last.while_listening and unreachable_message(member):
        return HeartbeatState(last.received_at, 0.0)
    return HeartbeatState(last.received_at, last.monotonic + heartbeat_timeout(member) - monotonic)


def has_joined(member: MemberCluster, reported: InternalMemberCluster | None = None) -> bool:
    """Whether the member has joined, by the newest report or by its status."""
    agents = [
        agent_of(member.status.agent_status),
        agent_of(reported.status.agent_status) if reported is not None else None,
    ]
    return any(agent is not None and _agent_has_joined(agent) for agent in agents)


def _agent_has_joined(agent: AgentStatus) -> bool:
    reported = find_condition(agent.conditions, reasons.JOINED)
    return reported is not None and reported.status == TRUE


def with_unreachable_condition(member: MemberCluster, state: HeartbeatState, now: datetime) -> tuple[Condition, ...]:
    """The member's conditions, with the one that it cannot be reached if, and only if, it is silent."""
    conditions = member.status.conditions
    if state.is_silent and state.last is not None:
        return set_condition(conditions, _unreachable(member, state.last, now))
    return tuple(one for one in conditions if (one.type, one.reason) != (reasons.HEALTHY, reasons.MEMBER_UNREACHABLE))


def _unreachable(member: MemberCluster, last: datetime, now: datetime) -> Condition:
    at = moment(last)
    every = member.spec.heartbeat_period_seconds
    message = (
        f"{member.metadata.name} cannot be reached: its last heartbeat was at {at}, "
        f"it should come every {every} s, and {heartbeat_timeout(member):g} s have passed without one"
    )
    return new_condition(
        reasons.HEALTHY,
        FALSE,
        reasons.MEMBER_UNREACHABLE,
        message,
        now=now,
        generation=member.metadata.generation,
    )
