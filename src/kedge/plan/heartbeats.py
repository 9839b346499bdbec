"""Heartbeats: when the hub received the last one of a member, and when the member counts as silent.

A heartbeat is that the time an agent says is another than before. What time it says does not matter: a member's clock
may be hours off, and nobody is to be reached for longer or shorter for that. When it was received is told by the hub's
clock, for people to read; how long ago that was by a count of seconds that no clock's jump disturbs (`moment`).

A hub that begins to listen cannot know when the heartbeat that it finds was received. It then gives every member its
whole patience, but for those that counted as silent already: those have to be heard first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api import reasons
from kedge.api.cluster import AgentStatus, InternalMemberCluster, MemberCluster
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, set_condition
from kedge.plan.membership import agent_of, silence

SHORTEST_PATIENCE: Final = 30.0


class Receipt(Struct, frozen=True):
    """The last heartbeat of a member: what time the agent said, and when that came, by the hub's clock and its count.

    `heard` is whether it came while the hub listened; if not, it is the one that the hub found when it began to.
    """

    said: datetime
    at: datetime
    moment: float
    heard: bool


def received(
    before: Receipt | None, member: MemberCluster, said: InternalMemberCluster | None, now: datetime, moment: float
) -> Receipt | None:
    """The last heartbeat there is, given the one known before; None if there never was one."""
    shown = _heartbeat(agent_of(member.status.agent_status))
    told = _heartbeat(agent_of(said.status.agent_status) if said is not None else None) or shown
    if told is None:
        return None
    if before is None:
        return Receipt(told, _found(member, shown, told, now), moment, heard=shown is None)
    return before if before.said == told else Receipt(told, now.replace(microsecond=0), moment, heard=True)


def _found(member: MemberCluster, shown: datetime | None, told: datetime, now: datetime) -> datetime:
    """When a heartbeat came that nobody listened for: as the member says, but between the last one heard and now.

    Of a member that counts as silent it is not a new one.
    """
    latest = now.replace(microsecond=0)
    if shown is None:
        return latest
    return shown if silence(member) else min(latest, max(shown, told))


def _heartbeat(agent: AgentStatus | None) -> datetime | None:
    return agent.last_received_heartbeat if agent is not None else None


class Hearing(Struct, frozen=True):
    """Whether a member is heard: `last` is when, `in_time` how many seconds until it counts as silent."""

    last: datetime | None
    in_time: float

    @property
    def is_silent(self) -> bool:
        return self.last is not None and self.in_time <= 0


def patience(member: MemberCluster) -> float:
    """How many seconds a member may say nothing: three of its heartbeats, and half a minute at least."""
    return max(3.0 * member.spec.heartbeat_period_seconds, SHORTEST_PATIENCE)


def hearing(member: MemberCluster, said: InternalMemberCluster | None, last: Receipt | None, moment: float) -> Hearing:
    """Whether the member is heard at a moment. One that has not joined, or has left, is not listened for."""
    if last is None or not is_listened_for(member, said):
        return Hearing(None, patience(member))
    if not last.heard and silence(member):
        return Hearing(last.at, 0.0)
    return Hearing(last.at, last.moment + patience(member) - moment)


def is_listened_for(member: MemberCluster, said: InternalMemberCluster | None = None) -> bool:
    """Whether the member has joined, by the newest word or by what is shown of it."""
    agents = [agent_of(member.status.agent_status), agent_of(said.status.agent_status) if said is not None else None]
    return any(agent is not None and _has_joined(agent) for agent in agents)


def _has_joined(agent: AgentStatus) -> bool:
    said = find_condition(agent.conditions, reasons.JOINED)
    return said is not None and said.status == TRUE


def with_silence(member: MemberCluster, heard: Hearing, now: datetime) -> tuple[Condition, ...]:
    """The member's conditions, with the one that it cannot be reached if, and only if, it cannot."""
    conditions = member.status.conditions
    if heard.is_silent and heard.last is not None:
        return set_condition(conditions, _unreachable(member, heard.last, now))
    return tuple(one for one in conditions if (one.type, one.reason) != (reasons.HEALTHY, reasons.MEMBER_UNREACHABLE))


def _unreachable(member: MemberCluster, last: datetime, now: datetime) -> Condition:
    at = f"{last:%Y-%m-%dT%H:%M:%SZ}"
    every = member.spec.heartbeat_period_seconds
    message = (
        f"{member.metadata.name} cannot be reached: its last heartbeat was at {at}, "
        f"it should come every {every} s, and {patience(member):g} s have passed without one"
    )
    return Condition(
        type=reasons.HEALTHY,
        status=FALSE,
        reason=reasons.MEMBER_UNREACHABLE,
        message=message,
        last_transition_time=now,
        observed_generation=member.metadata.generation,
    )
