"""Eligibility: whether a member can take on anything new (kubefleet.md §2.5).

A cluster that has become ineligible keeps what it has. The sentences name moments, not spans: the same silence is
always told the same way, and nobody writes a status again only because time has passed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kedge.api.cluster import AgentStatus, MemberCluster
from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import MEMBER_AGENT
from kedge.api.reasons import HEALTHY, JOINED

SILENT_AFTER: Final = timedelta(minutes=5)
"""How long a member may say nothing."""
UNHEALTHY_AFTER: Final = timedelta(minutes=5)
"""How long a member may say that it is not well."""

NO_HEARTBEAT = "no recent heartbeat signals"
"""What is said of a member that has been silent for too long."""

_LOST = "cluster is not connected to the fleet:"


def why_ineligible(member: MemberCluster, now: datetime) -> str | None:
    """Why nothing new can be placed on this member; None if it can."""
    if member.metadata.deletion_timestamp is not None:
        return "cluster has left the fleet"
    agent = _agent(member)
    if agent is None:
        return f"{_LOST} member agent not online yet"
    return _silent(agent, now) or _not_joined(agent) or _unhealthy(agent, now)


def eligible_until(member: MemberCluster) -> datetime | None:
    """When an eligible member stops being so, if nothing more is heard of it; None if it cannot be said."""
    agent = _agent(member)
    if agent is None or agent.last_received_heartbeat is None:
        return None
    silent = agent.last_received_heartbeat + SILENT_AFTER
    healthy = find_condition(agent.conditions, HEALTHY)
    if healthy is None or healthy.status == TRUE:
        return silent
    return min(silent, healthy.last_transition_time + UNHEALTHY_AFTER)


def _agent(member: MemberCluster) -> AgentStatus | None:
    return next((agent for agent in member.status.agent_status if agent.type == MEMBER_AGENT), None)


def _silent(agent: AgentStatus, now: datetime) -> str | None:
    heard = agent.last_received_heartbeat
    if heard is None:
        return f"{_LOST} no heartbeat signals received yet"
    if now - heard > SILENT_AFTER:
        return f"{_LOST} {NO_HEARTBEAT} (last received at {_moment(heard)})"
    return None


def _not_joined(agent: AgentStatus) -> str | None:
    joined = find_condition(agent.conditions, JOINED)
    if joined is not None and joined.status == TRUE:
        return None
    return f"{_LOST} member agent not joined yet" + (f": {joined.message}" if joined and joined.message else "")


def _unhealthy(agent: AgentStatus, now: datetime) -> str | None:
    healthy = find_condition(agent.conditions, HEALTHY)
    if healthy is None:
        return f"{_LOST} health condition from member agent is not available"
    if healthy.status != TRUE and now - healthy.last_transition_time > UNHEALTHY_AFTER:
        since = _moment(healthy.last_transition_time)
        return f"{_LOST} unhealthy for a prolonged period of time (since {since})"
    return None


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
