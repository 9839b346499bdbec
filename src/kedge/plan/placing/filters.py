"""Filters: which clusters a placement may be put on, and what keeps it off the others.

The reasons are looked for in KubeFleet's order, and the first one is given: affinity, eligibility (kubefleet.md §2.5),
namespace, taints. A cluster that becomes ineligible keeps what it has. Messages name moments, not durations: the same
silence gives the same message, and no status is written only because time has passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kedge.api.cluster import AgentStatus, MemberCluster, Taint
from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import MEMBER_AGENT
from kedge.api.reasons import HEALTHY, JOINED
from kedge.api.scheduling import Toleration, TolerationOperator
from kedge.plan.membership import NAMESPACES_COLLECTED
from kedge.plan.placing.affinity import Affinity
from kedge.plan.text import moment

# Eligibility


SILENT_AFTER: Final = timedelta(minutes=5)
"""How long a member may send no heartbeat."""
UNHEALTHY_AFTER: Final = timedelta(minutes=5)
"""How long a member may report that it is unhealthy."""

_NOT_CONNECTED = "cluster is not connected to the fleet:"


def why_ineligible(member: MemberCluster, now: datetime) -> str | None:
    """Why nothing new can be placed on this member; None if it can."""
    if member.metadata.deletion_timestamp is not None:
        return "cluster has left the fleet"
    agent = _agent(member)
    if agent is None:
        return f"{_NOT_CONNECTED} member agent not online yet"
    return _silent(agent, now) or _not_joined(agent) or _unhealthy(agent, now)


def is_overdue(member: MemberCluster, now: datetime) -> bool:
    """Whether it is too long ago that this member sent a heartbeat, or was healthy, to place anything new on it."""
    until = eligible_until(member)
    return member.metadata.deletion_timestamp is None and until is not None and until < now


def eligible_until(member: MemberCluster) -> datetime | None:
    """When an eligible member stops being eligible, if it sends nothing more; None if that is not known."""
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
        return f"{_NOT_CONNECTED} no heartbeat signals received yet"
    if now - heard > SILENT_AFTER:
        return f"{_NOT_CONNECTED} no recent heartbeat signals (last received at {moment(heard)})"
    return None


def _not_joined(agent: AgentStatus) -> str | None:
    joined = find_condition(agent.conditions, JOINED)
    if joined is not None and joined.status == TRUE:
        return None
    return f"{_NOT_CONNECTED} member agent not joined yet" + (
        f": {joined.message}" if joined and joined.message else ""
    )


def _unhealthy(agent: AgentStatus, now: datetime) -> str | None:
    healthy = find_condition(agent.conditions, HEALTHY)
    if healthy is None:
        return f"{_NOT_CONNECTED} health condition from member agent is not available"
    if healthy.status != TRUE and now - healthy.last_transition_time > UNHEALTHY_AFTER:
        since = moment(healthy.last_transition_time)
        return f"{_NOT_CONNECTED} unhealthy for a prolonged period of time (since {since})"
    return None


# Filter


class ClusterFilter(Struct, frozen=True):
    """What must hold of a cluster for it to be picked."""

    affinity: Affinity
    tolerations: tuple[Toleration, ...]
    namespace: str | None
    """The namespace of a ResourcePlacement, which must exist on the cluster."""
    now: datetime

    def why_not(self, member: MemberCluster) -> str | None:
        """What keeps the placement off this cluster; None if nothing does."""
        return (
            self.affinity.why_not(member)
            or why_ineligible(member, self.now)
            or self._lacks_namespace(member)
            or self._tainted(member)
        )

    def _lacks_namespace(self, member: MemberCluster) -> str | None:
        if self.namespace is None or find_condition(member.status.conditions, NAMESPACES_COLLECTED) is None:
            return None
        if not member.status.namespaces:
            return "cluster has no namespace information available"
        return None if self.namespace in member.status.namespaces else "target namespace does not exist on cluster"

    def _tainted(self, member: MemberCluster) -> str | None:
        taint = untolerated_taint(member.spec.taints, self.tolerations)
        return None if taint is None else f"taint {taint_text(taint)} cannot be tolerated"


# Taints


def untolerated_taint(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that nothing tolerates; None if there is none."""
    return next((taint for taint in taints if not any(tolerates(each, taint) for each in tolerations)), None)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration tolerates the taint. Without a key and with Exists it tolerates every taint.

    Effects are not compared: there is only one.
    """
    if toleration.operator is TolerationOperator.exists:
        return toleration.key in ("", taint.key)
    return (toleration.key, toleration.value) == (taint.key, taint.value)


def taint_text(taint: Taint) -> str:
    """The taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
