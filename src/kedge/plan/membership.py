"""Membership: what a member gets on the hub, and its status from what its agent reports.

A member has a namespace of its own on the hub, a Role and a RoleBinding that let its agent in there and nowhere else,
and an InternalMemberCluster through which the two talk. Names and reasons are KubeFleet's (kubefleet.md §7), so an
agent of either project can serve a hub of the other; the rules allow only what either agent does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.cluster import GROUP as CLUSTER_GROUP
from kedge.api.cluster import (
    AgentStatus,
    Identity,
    InternalMemberCluster,
    InternalMemberClusterSpec,
    MemberCluster,
    MemberClusterStatus,
)
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition, new_condition, set_condition
from kedge.api.core import Namespace
from kedge.api.fleet import IS_FLEET_RESOURCE, MEMBER_AGENT, MEMBER_FINALIZER, MEMBER_NAME, member_namespace
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.placement import GROUP as PLACEMENT_GROUP
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule, Role, RoleBinding, RoleRef, Subject

JOIN: Final = "Join"
LEAVE: Final = "Leave"
NAMESPACES_COLLECTED: Final = "NamespaceCollectionSucceeded"
"""The condition of a member that reports its namespaces. Whether it is True or not, the report counts."""

_LABEL: Final = 63  # characters of a namespace's name

READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update")
AGENT_RULES: Final = (
    PolicyRule(api_groups=(PLACEMENT_GROUP,), resources=("works",), verbs=(*READ, *_CHANGE)),
    PolicyRule(api_groups=(PLACEMENT_GROUP,), resources=("works/status",), verbs=_CHANGE),
    PolicyRule(api_groups=(CLUSTER_GROUP,), resources=("internalmemberclusters",), verbs=READ),
    PolicyRule(api_groups=(CLUSTER_GROUP,), resources=("internalmemberclusters/status",), verbs=_CHANGE),
    PolicyRule(api_groups=("",), resources=("events",), verbs=("create", "patch")),
)
"""What an agent may do in its own namespace on the hub: read its Works, and report.

Kedge's agent patches; `update`, and events, are for KubeFleet's. A Work is changed for its finalizer alone.
"""


# What a member gets on the hub


def member_name_problem(name: str) -> str:
    """What is wrong with a member's name, if anything: it is part of the name of a namespace."""
    namespace = member_namespace(name)
    if len(namespace) <= _LABEL and "." not in name:
        return ""
    return (
        f"metadata.name: {namespace} cannot be a namespace: make a member with a name of at most "
        f"{_LABEL - len(member_namespace(''))} characters, without dots"
    )


def owner_reference(member: MemberCluster) -> OwnerReference:
    """The owner reference of everything that belongs to a member."""
    kind = MemberCluster.resource
    meta = member.metadata
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=meta.name, uid=meta.uid, controller=True)


def member_labels(member: MemberCluster) -> Mapping[str, str]:
    """The label of every member."""
    return {MEMBER_NAME: member.metadata.name}


def has_label_and_finalizer(member: MemberCluster) -> bool:
    """Whether it has its label, and the finalizer that keeps it until it has left."""
    return MEMBER_FINALIZER in member.metadata.finalizers and has_label(member)


def has_label(member: MemberCluster) -> bool:
    """Whether it can be selected by its name."""
    return member.metadata.labels.get(MEMBER_NAME) == member.metadata.name


def namespace(member: MemberCluster) -> Namespace:
    """The member's own namespace."""
    name = member_namespace(member.metadata.name)
    labels = {IS_FLEET_RESOURCE: "true"}
    return Namespace(metadata=ObjectMeta(name=name, labels=labels, owner_references=(owner_reference(member),)))


def role(member: MemberCluster) -> Role:
    """What the member's agent may do there."""
    return Role(metadata=_metadata(member, f"fleet-role-{member.metadata.name}"), rules=AGENT_RULES)


def role_binding(member: MemberCluster) -> RoleBinding:
    """Which identity the member's agent has there."""
    name = member.metadata.name
    return RoleBinding(
        metadata=_metadata(member, f"fleet-rolebinding-{name}"),
        role_ref=RoleRef(api_group=RBAC, kind="Role", name=f"fleet-role-{name}"),
        subjects=(subject(member.spec.identity),),
    )


def subject(identity: Identity) -> Subject:
    """The RBAC subject of an identity. Users and groups are in the RBAC API group, even if the identity has none."""
    group = identity.api_group or (RBAC if identity.kind in ("User", "Group") else None)
    return Subject(kind=identity.kind, name=identity.name, api_group=group, namespace=identity.namespace or None)


def internal_member_cluster(member: MemberCluster, state: str) -> InternalMemberCluster:
    """The object through which the hub and the member's agent communicate."""
    spec = InternalMemberClusterSpec(state=state, heartbeat_period_seconds=member.spec.heartbeat_period_seconds)
    return InternalMemberCluster(metadata=_metadata(member, member.metadata.name), spec=spec)


def _metadata(member: MemberCluster, name: str) -> ObjectMeta:
    inside = member_namespace(member.metadata.name)
    return ObjectMeta(name=name, namespace=inside, owner_references=(owner_reference(member),))


def with_owner(there: Iterable[OwnerReference], mine: OwnerReference) -> tuple[OwnerReference, ...]:
    """The owner references with ours: in place of an earlier one of its name, or at the end."""
    others = tuple(one for one in there if (one.kind, one.name) != (mine.kind, mine.name))
    return tuple(there) if any(one.uid == mine.uid for one in there) else (*others, mine)


# What its agent reports


def agent_of(statuses: Iterable[AgentStatus]) -> AgentStatus | None:
    """The status of the member's agent."""
    return next((one for one in statuses if one.type == MEMBER_AGENT), None)


_HUB_CONDITIONS: Final = frozenset((reasons.READY_TO_JOIN, reasons.JOINED, reasons.HEALTHY))
"""The conditions that only the hub sets. Healthy: that it receives no heartbeats."""


def member_status(
    member: MemberCluster,
    reported: InternalMemberCluster | None,
    now: datetime,
    problem: str = "",
    *,
    heartbeat: datetime | None = None,
) -> MemberClusterStatus:
    """The status of a member: what its agent reported last, whether it may join, and whether it has joined.

    As long as no agent has reported, the status stays. `problem` keeps it from joining. `heartbeat` is when the hub
    received the last one. All times are the hub's: the clock of a member may be wrong.
    """
    has_reported = reported is not None and bool(reported.status.agent_status)
    status = (
        _reported_status(member, reported, now, heartbeat) if reported is not None and has_reported else member.status
    )
    conditions = member.status.conditions
    if member.metadata.deletion_timestamp is None:
        conditions = set_condition(conditions, _ready_to_join(member, problem, now))
    elif reported is not None and has_left(reported):
        gone = f"{member.metadata.name} has left the fleet"
        conditions = set_condition(
            conditions, _condition(member, reasons.READY_TO_JOIN, FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, gone, now)
        )
    for condition in reported.status.conditions if reported is not None else ():
        if condition.type not in _HUB_CONDITIONS:
            conditions = set_condition(conditions, _at_member_generation(condition, member))
    conditions = set_condition(conditions, _joined(member, status.agent_status, now))
    if reported is not None and has_reported and not find_condition(reported.status.conditions, NAMESPACES_COLLECTED):
        conditions = tuple(one for one in conditions if one.type != NAMESPACES_COLLECTED)  # it no longer reports them
    return replace(status, conditions=conditions)


def namespaces_condition(internal: InternalMemberCluster, now: datetime, *, all_of_them: bool) -> Condition:
    """Whether the namespaces that an agent reports are all of the cluster."""
    if all_of_them:
        status, reason, message = TRUE, "Succeeded", "all namespaces of the cluster are listed"
    else:
        status, reason, message = FALSE, "Degraded", "the cluster has more namespaces than are listed: the oldest are"
    return new_condition(
        NAMESPACES_COLLECTED, status, reason, message, now=now, generation=internal.metadata.generation
    )


def _reported_status(
    member: MemberCluster, reported: InternalMemberCluster, now: datetime, heartbeat: datetime | None
) -> MemberClusterStatus:
    """What the agents reported, at the member's own generation and with the hub's times."""
    return MemberClusterStatus(
        agent_status=tuple(_agent_status(member, agent, now, heartbeat) for agent in reported.status.agent_status),
        properties=reported.status.properties,
        resource_usage=reported.status.resource_usage,
        namespaces=reported.status.namespaces,
    )


def _agent_status(member: MemberCluster, agent: AgentStatus, now: datetime, heartbeat: datetime | None) -> AgentStatus:
    before = next((one for one in member.status.agent_status if one.type == agent.type), None)
    conditions = before.conditions if before is not None else ()
    for condition in agent.conditions:
        conditions = set_condition(
            conditions, replace(_at_member_generation(condition, member), last_transition_time=now)
        )
    shown = tuple(one for new in agent.conditions if (one := find_condition(conditions, new.type)) is not None)
    received = heartbeat if agent.type == MEMBER_AGENT else agent.last_received_heartbeat
    return replace(agent, conditions=shown, last_received_heartbeat=received)


def _at_member_generation(condition: Condition, member: MemberCluster) -> Condition:
    return replace(condition, observed_generation=member.metadata.generation)


def _ready_to_join(member: MemberCluster, problem: str, now: datetime) -> Condition:
    name = member.metadata.name
    if problem:
        return _condition(member, reasons.READY_TO_JOIN, FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, problem, now)
    message = f"{name} may join: its agent has its place on the hub, {member_namespace(name)}"
    return _condition(member, reasons.READY_TO_JOIN, TRUE, reasons.MEMBER_READY_TO_JOIN, message, now)


def _joined(member: MemberCluster, agents: Iterable[AgentStatus], now: datetime) -> Condition:
    name, agent = member.metadata.name, agent_of(agents)
    reported = find_condition(agent.conditions, reasons.JOINED) if agent is not None else None
    if reported is not None and reported.status == TRUE:
        return _condition(member, reasons.JOINED, TRUE, reasons.MEMBER_JOINED, f"{name} has joined the fleet", now)
    if reported is not None and reported.status == FALSE:
        return _condition(member, reasons.JOINED, FALSE, reasons.MEMBER_LEFT, f"{name} has left the fleet", now)
    why = f": {reported.message}" if reported and reported.message else ""
    message = f"the agent of {name} has not joined yet{why}"
    return _condition(member, reasons.JOINED, UNKNOWN, reasons.MEMBER_UNKNOWN, message, now)


def _condition(
    member: MemberCluster,
    type: str,  # noqa: A002  # the field's own name
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> Condition:
    return new_condition(type, status, reason, message, now=now, generation=member.metadata.generation)


# Leaving


def has_left(reported: InternalMemberCluster) -> bool:
    """Whether the agent has reported that it left."""
    agent = agent_of(reported.status.agent_status)
    joined = find_condition(agent.conditions, reasons.JOINED) if agent is not None else None
    asked = reported.spec.state == LEAVE
    return asked and joined is not None and joined.status == FALSE


def has_never_reported(reported: InternalMemberCluster) -> bool:
    """Whether no agent has ever reported anything."""
    return agent_of(reported.status.agent_status) is None


def seconds_left_to_leave(member: MemberCluster, force_after: float, now: datetime) -> float:
    """How many seconds the agent of a leaving member still has to report that it left."""
    since = member.metadata.deletion_timestamp or now
    return force_after - (now - since).total_seconds()


# Health


def unreachable_message(member: MemberCluster | None) -> str:
    """Why a member cannot be reached; empty if it can."""
    found = find_condition(member.status.conditions, reasons.HEALTHY) if member is not None else None
    return found.message if found is not None and found.status == FALSE else ""


def unhealthy_message(member: MemberCluster | None) -> str:
    """What the agent of a member reports is wrong with the cluster; empty if nothing is."""
    agent = agent_of(member.status.agent_status) if member is not None else None
    found = find_condition(agent.conditions, reasons.HEALTHY) if agent is not None else None
    if member is None or found is None or found.status != FALSE:
        return ""
    return f"{member.metadata.name} is not healthy: {found.message or found.reason}"
