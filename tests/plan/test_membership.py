"""Membership, as a table of what is said and what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.cluster import (
    AgentStatus,
    Identity,
    InternalMemberCluster,
    InternalMemberClusterSpec,
    InternalMemberClusterStatus,
    MemberCluster,
    MemberClusterSpec,
    MemberClusterStatus,
    PropertyValue,
)
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.fleet import IS_FLEET_RESOURCE, MEMBER_FINALIZER, MEMBER_NAME
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.rbac import GROUP
from kedge.plan import membership

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def member(
    *, period: int = 15, status: MemberClusterStatus | None = None, kind: str = "ServiceAccount"
) -> MemberCluster:
    meta = ObjectMeta(name="cluster-1", uid="u1", generation=7)
    spec = MemberClusterSpec(identity=Identity(kind=kind, name="agent"), heartbeat_period_seconds=period)
    return MemberCluster(metadata=meta, spec=spec, status=status or MemberClusterStatus())


def agent(joined: str | None, *, ago: float = 0.0) -> AgentStatus:
    said = () if joined is None else (condition("Joined", joined),)
    return AgentStatus(type="MemberAgent", conditions=said, last_received_heartbeat=NOW - timedelta(seconds=ago))


def condition(kind: str, status: str) -> Condition:
    return Condition(
        type=kind, status=status, reason="Said", message="", last_transition_time=NOW, observed_generation=3
    )


def said(*agents: AgentStatus, state: str = "Join") -> InternalMemberCluster:
    status = InternalMemberClusterStatus(
        agent_status=agents, properties={"nodes": PropertyValue(value="3", observation_time=NOW)}
    )
    return InternalMemberCluster(spec=InternalMemberClusterSpec(state=state), status=status)


@pytest.mark.parametrize(
    ("agents", "status", "reason"),
    [
        ((), UNKNOWN, reasons.MEMBER_UNKNOWN),
        ((agent(None),), UNKNOWN, reasons.MEMBER_UNKNOWN),
        ((agent(UNKNOWN),), UNKNOWN, reasons.MEMBER_UNKNOWN),
        ((agent(TRUE),), TRUE, reasons.MEMBER_JOINED),
        ((agent(FALSE),), FALSE, reasons.MEMBER_LEFT),
        ((AgentStatus(type="ServiceExportImportAgent", conditions=(condition("Joined", TRUE),)),), UNKNOWN,
         reasons.MEMBER_UNKNOWN),
    ],
)  # fmt: skip
def test_a_member_has_joined_when_its_agent_reports_it(
    agents: tuple[AgentStatus, ...], status: str, reason: str
) -> None:
    joined = find_condition(membership.member_status(member(), said(*agents), NOW).conditions, "Joined")
    assert joined is not None
    assert (joined.status, joined.reason, joined.observed_generation) == (status, reason, 7)


def test_agent_conditions_have_the_members_own_generation() -> None:
    shown = membership.member_status(member(), said(agent(TRUE)), NOW)
    assert shown.properties["nodes"].value == "3"
    assert [one.observed_generation for one in shown.agent_status[0].conditions] == [7]


def test_while_no_agent_has_reported_the_status_stays() -> None:
    by_hand = MemberClusterStatus(agent_status=(agent(TRUE),))
    for nothing in (None, said()):
        shown = membership.member_status(member(status=by_hand), nothing, NOW)
        assert shown.agent_status == by_hand.agent_status
        assert membership.member_status(replace(member(), status=shown), nothing, NOW) == shown


@pytest.mark.parametrize("kind", ["ReadyToJoin", "Joined", "Healthy"])
def test_conditions_of_the_hub_are_not_taken_from_a_member(kind: str) -> None:
    """Healthy=False on a member means that the hub does not hear it, and would stay for ever."""
    forged, own = condition(kind, FALSE), condition("ClusterPropertyCollectionSucceeded", TRUE)
    heard = said(agent(TRUE))
    lying = replace(heard, status=replace(heard.status, conditions=(forged, own)))
    shown = {one.type: one for one in membership.member_status(member(), lying, NOW).conditions}
    assert shown.get(kind) is None or shown[kind].status == TRUE
    assert shown[own.type].status == TRUE


def test_conditions_of_others_are_kept() -> None:
    others = MemberClusterStatus(conditions=(condition("Theirs", TRUE),))
    shown = membership.member_status(member(status=others), said(agent(TRUE)), NOW)
    assert [one.type for one in shown.conditions] == ["Theirs", "ReadyToJoin", "Joined"]


def test_a_problem_that_keeps_a_member_from_joining_is_reported() -> None:
    ready = find_condition(membership.member_status(member(), None, NOW, "no room").conditions, "ReadyToJoin")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message) == (FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, "no room")


@pytest.mark.parametrize(("kind", "group"), [("User", GROUP), ("Group", GROUP), ("ServiceAccount", None)])
def test_an_identity_becomes_an_rbac_subject(kind: str, group: str | None) -> None:
    (subject,) = membership.role_binding(member(kind=kind)).subjects
    assert (subject.kind, subject.api_group) == (kind, group)


def test_the_objects_of_a_member_are_in_its_namespace_and_owned_by_it() -> None:
    found = member()
    owner = membership.owner_reference(found)
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "cluster-1", "u1", True,
    )  # fmt: skip
    inside = (membership.role(found), membership.role_binding(found), membership.internal_member_cluster(found, "Join"))
    for each in inside:
        assert (each.metadata.namespace, each.metadata.owner_references) == ("fleet-member-cluster-1", (owner,))
    assert [each.metadata.name for each in inside] == [
        "fleet-role-cluster-1",
        "fleet-rolebinding-cluster-1",
        "cluster-1",
    ]
    binding = inside[1]
    assert (binding.role_ref.kind, binding.role_ref.name) == ("Role", "fleet-role-cluster-1")
    assert (inside[2].spec.state, inside[2].spec.heartbeat_period_seconds) == ("Join", 15)
    space = membership.namespace(found)
    assert (space.metadata.name, space.metadata.labels[IS_FLEET_RESOURCE]) == ("fleet-member-cluster-1", "true")
    assert space.metadata.owner_references == (owner,)


@pytest.mark.parametrize(
    ("labelled", "finalized", "marked"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_member_has_its_label_and_finalizer(labelled: bool, finalized: bool, marked: bool) -> None:
    found = member()
    labels = membership.member_labels(found) if labelled else {MEMBER_NAME: "other"}
    finalizers = (MEMBER_FINALIZER,) if finalized else ()
    found = replace(found, metadata=replace(found.metadata, labels=labels, finalizers=finalizers))
    assert (membership.has_label(found), membership.has_label_and_finalizer(found)) == (labelled, marked)


def test_an_agent_without_a_status_has_never_reported() -> None:
    assert membership.has_never_reported(said())
    assert not membership.has_never_reported(said(agent(TRUE)))


def test_a_member_that_leaves_has_time_to_report() -> None:
    assert membership.seconds_left_to_leave(member(), 60.0, NOW) == 60.0
    going = replace(member().metadata, deletion_timestamp=NOW - timedelta(seconds=20))
    assert membership.seconds_left_to_leave(replace(member(), metadata=going), 60.0, NOW) == 40.0


@pytest.mark.parametrize(("status", "words"), [(FALSE, "gone since noon"), (TRUE, ""), (UNKNOWN, "")])
def test_the_message_of_an_unreachable_member(status: str, words: str) -> None:
    told = replace(condition("Healthy", status), message="gone since noon")
    assert membership.unreachable_message(member(status=MemberClusterStatus(conditions=(told,)))) == words
    assert membership.unreachable_message(member()) == membership.unreachable_message(None) == ""


def test_an_owner_reference_to_an_earlier_object_of_the_same_name_is_replaced() -> None:
    mine = membership.owner_reference(member())
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="u9")
    assert membership.with_owner((replace(mine, uid="old"), other), mine) == (other, mine)
    assert membership.with_owner((mine, other), mine) == (mine, other)


def test_times_are_the_hubs_whatever_the_clock_of_the_member_shows() -> None:
    hour = timedelta(hours=1)
    ahead = AgentStatus(
        type="MemberAgent",
        conditions=(replace(condition("Joined", TRUE), last_transition_time=NOW + hour),),
        last_received_heartbeat=NOW + hour,
    )
    (shown,) = membership.member_status(member(), said(ahead), NOW, heartbeat=NOW - timedelta(seconds=2)).agent_status
    assert shown.last_received_heartbeat == NOW - timedelta(seconds=2)
    assert [one.last_transition_time for one in shown.conditions] == [NOW]
    later = membership.member_status(
        member(status=MemberClusterStatus(agent_status=(shown,))), said(ahead), NOW + hour, heartbeat=NOW + hour
    )
    assert [one.last_transition_time for one in later.agent_status[0].conditions] == [NOW]


def test_heartbeats_of_other_agents_are_kept() -> None:
    other = AgentStatus(type="ServiceExportImportAgent", last_received_heartbeat=NOW)
    (shown,) = membership.member_status(member(), said(other), NOW, heartbeat=NOW + timedelta(hours=1)).agent_status
    assert shown == other


def test_a_condition_an_agent_no_longer_reports_is_removed() -> None:
    before = MemberClusterStatus(agent_status=(agent(TRUE),))
    (shown,) = membership.member_status(member(status=before), said(agent(None)), NOW).agent_status
    assert shown.conditions == ()


@pytest.mark.parametrize(
    ("internal", "left"),
    [
        (said(agent(FALSE), state="Leave"), True),
        (said(agent(FALSE)), False),  # it left an earlier time
        (said(agent(TRUE), state="Leave"), False),
        (said(state="Leave"), False),
    ],
)
def test_an_agent_has_left_when_it_reports_it_after_being_asked(internal: InternalMemberCluster, left: bool) -> None:
    assert membership.has_left(internal) == left
    leaving = replace(member(), metadata=replace(member().metadata, deletion_timestamp=NOW))
    ready = find_condition(membership.member_status(leaving, internal, NOW).conditions, reasons.READY_TO_JOIN)
    found = ready and (ready.status, ready.reason, ready.observed_generation)
    assert found == ((FALSE, reasons.MEMBER_NOT_READY_TO_JOIN, 7) if left else None)


def test_the_message_of_an_unhealthy_member() -> None:
    well, ill = (replace(agent(TRUE), conditions=(condition("Healthy", status),)) for status in (TRUE, FALSE))
    assert membership.unhealthy_message(None) == ""
    assert membership.unhealthy_message(member(status=MemberClusterStatus(agent_status=(well,)))) == ""
    shown = member(status=MemberClusterStatus(agent_status=(ill,)))
    assert membership.unhealthy_message(shown) == "cluster-1 is not healthy: Said"
    assert membership.unreachable_message(shown) == ""


@pytest.mark.parametrize(
    ("all_of_them", "wanted"), [(True, (TRUE, "Succeeded")), (False, (FALSE, "Degraded"))], ids=["all", "too many"]
)
def test_the_namespaces_condition_is_removed_once_namespaces_are_no_longer_reported(
    all_of_them: bool, wanted: tuple[str, str]
) -> None:
    asked = said(agent(TRUE))
    known = membership.namespaces_condition(asked, NOW, all_of_them=all_of_them)
    telling = replace(asked, status=replace(asked.status, conditions=(known,), namespaces={"shop": "web-work"}))
    heard = membership.member_status(member(), telling, NOW)
    found = find_condition(heard.conditions, membership.NAMESPACES_COLLECTED)
    assert found is not None
    assert ((found.status, found.reason), dict(heard.namespaces)) == (wanted, {"shop": "web-work"})
    for silent in (None, said()):
        kept = membership.member_status(member(status=heard), silent, NOW).conditions
        assert find_condition(kept, membership.NAMESPACES_COLLECTED) is not None
    after = membership.member_status(member(status=heard), asked, NOW)
    assert find_condition(after.conditions, membership.NAMESPACES_COLLECTED) is None
    assert dict(after.namespaces) == {}


def test_the_reason_an_agent_could_not_join_is_reported() -> None:
    obstacle = replace(condition("Joined", UNKNOWN), message="no AppliedWorks")
    waiting = AgentStatus(type="MemberAgent", conditions=(obstacle,), last_received_heartbeat=NOW)
    found = find_condition(membership.member_status(member(), said(waiting), NOW).conditions, reasons.JOINED)
    assert found is not None
    assert (found.status, found.message) == (
        UNKNOWN,
        "the agent of cluster-1 has not joined yet: no AppliedWorks",
    )


@pytest.mark.parametrize(("name", "fits"), [("m" * 50, True), ("m" * 51, False), ("east", True), ("east.eu", False)])
def test_a_members_name_has_to_fit_into_the_name_of_a_namespace(name: str, fits: bool) -> None:
    problem = membership.member_name_problem(name)
    assert (problem == "") is fits
    assert fits or problem.endswith("make a member with a name of at most 50 characters, without dots")
