"""Membership: what a member is given on the hub, and what its agent's words come to.

A member has a namespace of its own on the hub, a Role and a RoleBinding that let its agent in there and nowhere else,
and an InternalMemberCluster through which the two talk. Names and reasons are KubeFleet's (kubefleet.md §7), so an
agent of either project can serve a hub of the other; the rules are no more than what either agent does.
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
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition, set_condition
from kedge.api.core import Namespace
from kedge.api.fleet import IS_FLEET_RESOURCE, MEMBER_AGENT, MEMBER_FINALIZER, MEMBER_NAME, member_namespace
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.placement import GROUP as PLACEMENT_GROUP
from kedge.api.rbac import GROUP as RBAC
from kedge.api.rbac import PolicyRule, Role, RoleBinding, RoleRef, Subject

JOIN: Final = "Join"
LEAVE: Final = "Leave"
NAMESPACES_KNOWN: Final = "NamespaceCollectionSucceeded"
"""The condition of a member that reports its namespaces. True or not, what it reports counts."""

READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update")
AGENT_RULES: Final = (
    PolicyRule(api_groups=(PLACEMENT_GROUP,), resources=("works",), verbs=(*READ, *_CHANGE)),
    PolicyRule(api_groups=(PLACEMENT_GROUP,), resources=("works/status",), verbs=_CHANGE),
    PolicyRule(api_groups=(CLUSTER_GROUP,), resources=("internalmemberclusters",), verbs=READ),
    PolicyRule(api_groups=(CLUSTER_GROUP,), resources=("internalmemberclusters/status",), verbs=_CHANGE),
    PolicyRule(api_groups=("",), resources=("events",), verbs=("create", "patch")),
)
"""What an agent may do in its own namespace on the hub: read what it is told, and answer.

Kedge's agent patches; `update`, and events, are for KubeFleet's. A Work is changed for its finalizer alone.
"""


# What a member is given


def owner(member: MemberCluster) -> OwnerReference:
    """What all that belongs to a member says of whose it is."""
    kind = MemberCluster.resource
    meta = member.metadata
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=meta.name, uid=meta.uid, controller=True)


def marks(member: MemberCluster) -> Mapping[str, str]:
    """The label every member carries."""
    return {MEMBER_NAME: member.metadata.name}


def is_marked(member: MemberCluster) -> bool:
    """Whether it has its label, and cannot go without having left."""
    return MEMBER_FINALIZER in member.metadata.finalizers and is_labelled(member)


def is_labelled(member: MemberCluster) -> bool:
    """Whether it can be selected by its name."""
    return member.metadata.labels.get(MEMBER_NAME) == member.metadata.name


def namespace(member: MemberCluster) -> Namespace:
    """The member's own namespace."""
    name = member_namespace(member.metadata.name)
    labels = {IS_FLEET_RESOURCE: "true"}
    return Namespace(metadata=ObjectMeta(name=name, labels=labels, owner_references=(owner(member),)))


def role(member: MemberCluster) -> Role:
    """What the member's agent may do there."""
    return Role(metadata=_inside(member, f"fleet-role-{member.metadata.name}"), rules=AGENT_RULES)


def role_binding(member: MemberCluster) -> RoleBinding:
    """Who the member's agent is there."""
    name = member.metadata.name
    return RoleBinding(
        metadata=_inside(member, f"fleet-rolebinding-{name}"),
        role_ref=RoleRef(api_group=RBAC, kind="Role", name=f"fleet-role-{name}"),
        subjects=(subject(member.spec.identity),),
    )


def subject(identity: Identity) -> Subject:
    """An identity as RBAC names it: users and groups are in its own API group, also if nobody says so."""
    group = identity.api_group or (RBAC if identity.kind in ("User", "Group") else None)
    return Subject(kind=identity.kind, name=identity.name, api_group=group, namespace=identity.namespace or None)


def internal(member: MemberCluster, state: str) -> InternalMemberCluster:
    """What the hub tells the member's agent."""
    spec = InternalMemberClusterSpec(state=state, heartbeat_period_seconds=member.spec.heartbeat_period_seconds)
    return InternalMemberCluster(metadata=_inside(member, member.metadata.name), spec=spec)


def _inside(member: MemberCluster, name: str) -> ObjectMeta:
    inside = member_namespace(member.metadata.name)
    return ObjectMeta(name=name, namespace=inside, owner_references=(owner(member),))


def owned(there: Iterable[OwnerReference], mine: OwnerReference) -> tuple[OwnerReference, ...]:
    """The owners with ours among them: in place of one of that name that is no more, or at the end."""
    others = tuple(one for one in there if (one.kind, one.name) != (mine.kind, mine.name))
    return tuple(there) if any(one.uid == mine.uid for one in there) else (*others, mine)


# What its agent's words come to


def agent_of(statuses: Iterable[AgentStatus]) -> AgentStatus | None:
    """What the member's agent says of itself."""
    return next((one for one in statuses if one.type == MEMBER_AGENT), None)


_OF_THE_HUB: Final = frozenset((reasons.READY_TO_JOIN, reasons.JOINED, reasons.HEALTHY))
"""What only the hub says of a member: the last of these, that it does not hear from it."""


def report(
    member: MemberCluster,
    said: InternalMemberCluster | None,
    now: datetime,
    problem: str = "",
    *,
    heartbeat: datetime | None = None,
) -> MemberClusterStatus:
    """The status a member should have: what its agent said last, whether it may join, and whether it has.

    As long as no agent has said anything, what is there already stays. `problem` is what keeps it from joining, and
    `heartbeat` when the hub received the last one. All times are the hub's: a member's clock may show anything.
    """
    spoken = said is not None and said.status.agent_status
    status = _heard(member, said, now, heartbeat) if said is not None and spoken else member.status
    conditions = member.status.conditions
    if member.metadata.deletion_timestamp is None:
        conditions = set_condition(conditions, _ready(member, problem, now))
    elif said is not None and has_left(said):
        gone = f"{member.metadata.name} has left the fleet"
        conditions = set_condition(
            conditions, _said(member, reasons.READY_TO_JOIN, FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, gone, now)
        )
    for condition in said.status.conditions if said is not None else ():
        if condition.type not in _OF_THE_HUB:
            conditions = set_condition(conditions, _observed(condition, member))
    conditions = set_condition(conditions, _joined(member, status.agent_status, now))
    if said is not None and said.status.agent_status and not find_condition(said.status.conditions, NAMESPACES_KNOWN):
        conditions = tuple(one for one in conditions if one.type != NAMESPACES_KNOWN)  # it no longer reports them
    return replace(status, conditions=conditions)


def namespaces_known(asked: InternalMemberCluster, now: datetime, *, all_of_them: bool) -> Condition:
    """What an agent says of the namespaces it reports: whether they are all there are."""
    if all_of_them:
        status, reason, message = TRUE, "Succeeded", "all namespaces of the cluster are listed"
    else:
        status, reason, message = FALSE, "Degraded", "the cluster has more namespaces than are listed: the oldest are"
    return Condition(
        type=NAMESPACES_KNOWN,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=asked.metadata.generation,
    )


def _heard(
    member: MemberCluster, said: InternalMemberCluster, now: datetime, heartbeat: datetime | None
) -> MemberClusterStatus:
    """The agents' words, which on the member speak of the member's own generation, and of the hub's time."""
    return MemberClusterStatus(
        agent_status=tuple(_shown(member, agent, now, heartbeat) for agent in said.status.agent_status),
        properties=said.status.properties,
        resource_usage=said.status.resource_usage,
        namespaces=said.status.namespaces,
    )


def _shown(member: MemberCluster, agent: AgentStatus, now: datetime, heartbeat: datetime | None) -> AgentStatus:
    before = next((one for one in member.status.agent_status if one.type == agent.type), None)
    conditions = before.conditions if before is not None else ()
    for condition in agent.conditions:
        conditions = set_condition(conditions, replace(_observed(condition, member), last_transition_time=now))
    shown = tuple(one for said in agent.conditions if (one := find_condition(conditions, said.type)) is not None)
    received = heartbeat if agent.type == MEMBER_AGENT else agent.last_received_heartbeat
    return replace(agent, conditions=shown, last_received_heartbeat=received)


def _observed(condition: Condition, member: MemberCluster) -> Condition:
    return replace(condition, observed_generation=member.metadata.generation)


def _ready(member: MemberCluster, problem: str, now: datetime) -> Condition:
    name = member.metadata.name
    if problem:
        return _said(member, reasons.READY_TO_JOIN, FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, problem, now)
    message = f"{name} may join: its agent has its place on the hub, {member_namespace(name)}"
    return _said(member, reasons.READY_TO_JOIN, TRUE, reasons.MEMBER_READY_TO_JOIN, message, now)


def _joined(member: MemberCluster, agents: Iterable[AgentStatus], now: datetime) -> Condition:
    name, agent = member.metadata.name, agent_of(agents)
    said = find_condition(agent.conditions, reasons.JOINED) if agent is not None else None
    if said is not None and said.status == TRUE:
        return _said(member, reasons.JOINED, TRUE, reasons.MEMBER_JOINED, f"{name} has joined the fleet", now)
    if said is not None and said.status == FALSE:
        return _said(member, reasons.JOINED, FALSE, reasons.MEMBER_LEFT, f"{name} has left the fleet", now)
    message = f"the agent of {name} has not joined yet" + (f": {said.message}" if said and said.message else "")
    return _said(member, reasons.JOINED, UNKNOWN, reasons.MEMBER_UNKNOWN, message, now)


def _said(
    member: MemberCluster,
    type: str,  # noqa: A002  # the field's own name
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> Condition:
    return Condition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=member.metadata.generation,
    )


# Leaving


def has_left(said: InternalMemberCluster) -> bool:
    """Whether the agent has answered that it left."""
    agent = agent_of(said.status.agent_status)
    joined = find_condition(agent.conditions, reasons.JOINED) if agent is not None else None
    asked = said.spec.state == LEAVE
    return asked and joined is not None and joined.status == FALSE


def never_came(said: InternalMemberCluster) -> bool:
    """Whether no agent has ever said anything."""
    return agent_of(said.status.agent_status) is None


def left_to_wait(member: MemberCluster, force_after: float, now: datetime) -> float:
    """How many seconds a leaving member's agent still has to answer."""
    since = member.metadata.deletion_timestamp or now
    return force_after - (now - since).total_seconds()


# Silence


def silence(member: MemberCluster | None) -> str:
    """What says that a member cannot be reached; empty if it can."""
    found = find_condition(member.status.conditions, reasons.HEALTHY) if member is not None else None
    return found.message if found is not None and found.status == FALSE else ""


def illness(member: MemberCluster | None) -> str:
    """What a member's agent, which is heard, says is wrong with the cluster; empty if nothing is."""
    agent = agent_of(member.status.agent_status) if member is not None else None
    found = find_condition(agent.conditions, reasons.HEALTHY) if agent is not None else None
    if member is None or found is None or found.status != FALSE:
        return ""
    return f"{member.metadata.name} is not healthy: {found.message or found.reason}"
