"""The hub's side of membership, on an embedded hub in virtual time; the tests play the member's agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from kedge.api import reasons
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.core import Namespace
from kedge.api.fleet import IS_FLEET_RESOURCE, WORK_CLEANUP, member_namespace
from kedge.api.rbac import Role, RoleBinding
from kedge.api.work import Work
from kedge.controllers.hub.members import Members
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.membership import AGENT_RULES
from support.fleets import IDENTITY, Book, client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

NS = member_namespace("cluster-1")


def play(scene: Callable[[Book], Awaitable[None]], *, force_delete_after: float = 900.0) -> None:
    """A hub with our controller, and somebody who uses it."""

    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport())
            members = Members(hub, clock=LoopClock(), force_delete_after=force_delete_after)
            manager.add_controller(members.controller)
            await scene(Book(client))

    run(main())


async def answer(book: Book, joined: str, **status: Any) -> None:
    """What an agent would say."""
    said = await book.said("cluster-1")
    at = LoopClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")
    reason = {"True": "InternalMemberClusterJoined", "False": "InternalMemberClusterLeft"}[joined]
    condition = {"type": "Joined", "status": joined, "reason": reason, "message": "", "lastTransitionTime": at,
                 "observedGeneration": said.metadata.generation}  # fmt: skip
    agent = {"type": "MemberAgent", "lastReceivedHeartbeat": at, "conditions": [condition]}
    body = MergePatch({"status": {"agentStatus": [agent], **status}})
    await book.client.patch(InternalMemberCluster, "cluster-1", body, NS, subresource="status")


async def joined(book: Book) -> None:
    await book.add("cluster-1")
    await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_READY_TO_JOIN)
    await answer(book, "True")
    await book.until_reason("cluster-1", "Joined", reasons.MEMBER_JOINED)


async def gone(client: Client, kind: Any, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(kind, name, namespace)
    except NotFound:
        return True
    return False


async def a_work(client: Client, *finalizers: str) -> None:
    body = {"metadata": {"name": "web-work", "namespace": NS, "finalizers": list(finalizers)}, "spec": {}}
    await client.create(untyped(Work.resource), body)


def without_times(found: Mapping[str, Any]) -> dict[str, Any]:
    meta = {key: found["metadata"][key] for key in ("name", "namespace", "labels") if key in found["metadata"]}
    owners = [{**owner, "uid": "-"} for owner in found["metadata"].get("ownerReferences", ())]
    return {**meta, "owners": owners}


OWNER = {
    "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
    "controller": True,
    "kind": "MemberCluster",
    "name": "cluster-1",
    "uid": "-",
}


def test_a_member_is_given_its_place_under_the_names_kubefleet_gives_it() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_READY_TO_JOIN)
        member = await book.member("cluster-1")
        assert member.metadata.finalizers == ("kubernetes-fleet.io/membercluster-finalizer",)
        assert member.metadata.labels == {"kubernetes-fleet.io/member-name": "cluster-1"}
        room = await book.raw(Namespace, NS)
        assert room["metadata"]["labels"]["kubernetes-fleet.io/is-fleet-resource"] == "true"
        assert without_times(room)["owners"] == [OWNER]
        role = await book.raw(Role, "fleet-role-cluster-1", NS)
        assert without_times(role) == {"name": "fleet-role-cluster-1", "namespace": NS, "owners": [OWNER]}
        assert role["rules"][-1] == {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
        binding = await book.raw(RoleBinding, "fleet-rolebinding-cluster-1", NS)
        assert without_times(binding)["owners"] == [OWNER]
        assert binding["subjects"] == [IDENTITY]
        wanted = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "fleet-role-cluster-1"}
        assert binding["roleRef"] == wanted
        internal = await book.raw(InternalMemberCluster, "cluster-1", NS)
        assert without_times(internal) == {"name": "cluster-1", "namespace": NS, "owners": [OWNER]}
        assert internal["spec"] == {"state": "Join", "heartbeatPeriodSeconds": 15}
        assert await book.reason("cluster-1", "Joined") == reasons.MEMBER_UNKNOWN

    play(scene)


def test_what_the_agent_says_is_shown_on_the_member() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        member = await book.member("cluster-1")
        assert [one.type for one in member.status.conditions] == ["ReadyToJoin", "Joined"]
        await answer(book, "True", properties={"n": {"value": "4", "observationTime": "2030-01-01T00:00:00Z"}})
        await until_so(lambda: _property(book, "n", "4"))

    async def _property(book: Book, name: str, value: str) -> bool:
        found = (await book.member("cluster-1")).status.properties.get(name)
        return found is not None and found.value == value

    play(scene)


def test_a_status_written_by_hand_stays() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        facts = {"by-hand": {"value": "1", "observationTime": "2030-01-01T00:00:00Z"}}
        patch = MergePatch({"status": {"properties": facts}})
        written = await book.client.patch(MemberCluster, "cluster-1", patch, subresource="status")
        await asyncio.sleep(7200)
        member = await book.member("cluster-1")
        assert member.metadata.resource_version == written.metadata.resource_version

    play(scene)


@pytest.mark.parametrize(
    ("kind", "name", "part", "wrong"),
    [
        (Role, "fleet-role-cluster-1", "rules", []),
        (RoleBinding, "fleet-rolebinding-cluster-1", "subjects", []),
        (InternalMemberCluster, "cluster-1", "spec", {"heartbeatPeriodSeconds": 99}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_belongs_to_a_member_is_put_right_when_it_is_changed_or_deleted(
    kind: Any, name: str, part: str, wrong: Any
) -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        before = (await book.raw(kind, name, NS))[part]

        async def is_right() -> bool:
            return not await gone(book.client, kind, name, NS) and (await book.raw(kind, name, NS)).get(part) == before

        await book.client.patch(kind, name, MergePatch({part: wrong}), NS)
        await until_so(is_right)
        await book.client.delete(kind, name, NS)
        await until_so(is_right)

    play(scene)


def test_a_changed_identity_is_let_in_and_the_old_one_no_more() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        patch = MergePatch({"spec": {"identity": {"kind": "User", "name": "jane", "namespace": None}}})
        await book.client.patch(MemberCluster, "cluster-1", patch)
        wanted = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]

        async def changed() -> bool:
            return bool((await book.raw(RoleBinding, "fleet-rolebinding-cluster-1", NS))["subjects"] == wanted)

        await until_so(changed)
        member = await book.member("cluster-1")
        await until_so(lambda: _observed(book, member.metadata.generation))

    async def _observed(book: Book, generation: int) -> bool:
        conditions = (await book.member("cluster-1")).status.conditions
        return {one.observed_generation for one in conditions} == {generation}

    play(scene)


def test_an_identity_that_rbac_does_not_know_is_named_and_harms_nobody_else() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-2", identity={"kind": "Robot", "name": "r2"})
        await joined(book)
        await book.until_reason("cluster-2", "ReadyToJoin", reasons.MEMBER_NOT_READY_TO_JOIN)
        ready = await book.condition("cluster-2", "ReadyToJoin")
        assert ready is not None
        assert ready.message.startswith("spec.identity cannot be let in: ")
        assert "Robot" in ready.message

    play(scene)


def test_a_name_that_fits_no_namespace_is_told_and_its_member_can_be_deleted() -> None:
    async def scene(book: Book) -> None:
        await book.add("east.eu")
        await book.until_reason("east.eu", "ReadyToJoin", reasons.MEMBER_NOT_READY_TO_JOIN)
        ready = await book.condition("east.eu", "ReadyToJoin")
        assert ready is not None
        assert ready.message.startswith("metadata.name: fleet-member-east.eu cannot be a namespace: ")
        await book.client.delete(MemberCluster, "east.eu")
        await until_so(lambda: gone(book.client, MemberCluster, "east.eu"))

    play(scene)


def test_a_namespace_that_is_there_already_is_taken() -> None:
    async def scene(book: Book) -> None:
        await book.client.create(Namespace, {"metadata": {"name": NS}})
        await joined(book)
        room = await book.raw(Namespace, NS)
        assert without_times(room)["owners"] == [OWNER]
        assert room["metadata"]["labels"]["kubernetes-fleet.io/is-fleet-resource"] == "true"

    play(scene)


def test_a_member_leaves_when_its_agent_has_answered() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        await a_work(book.client, WORK_CLEANUP)
        await book.client.delete(MemberCluster, "cluster-1")

        async def asked() -> bool:
            return (await book.said("cluster-1")).spec.state == "Leave"

        await until_so(asked)
        await asyncio.sleep(100)
        assert not await gone(book.client, Namespace, NS)
        await answer(book, "False")
        await until_so(lambda: gone(book.client, MemberCluster, "cluster-1"))
        assert await gone(book.client, Namespace, NS)
        assert await gone(book.client, untyped(Work.resource), "web-work", NS)

    play(scene)


def test_a_member_leaves_also_if_its_namespace_goes_unseen() -> None:
    """As after a restore of the hub: the namespace was back, and gone again before the cache had listed it."""

    async def scene(book: Book) -> None:
        await joined(book)
        await book.client.delete(MemberCluster, "cluster-1")

        async def asked() -> bool:
            return (await book.said("cluster-1")).spec.state == "Leave"

        await until_so(asked)
        unlabelled = {"metadata": {"labels": {IS_FLEET_RESOURCE: None}, "finalizers": ["example.com/held"]}}
        await book.client.patch(Namespace, NS, MergePatch(unlabelled))
        await answer(book, "False")
        await asyncio.sleep(15)
        await book.client.patch(Namespace, NS, MergePatch({"metadata": {"finalizers": None}}))
        await until_so(lambda: gone(book.client, MemberCluster, "cluster-1"), 30)

    play(scene)


def test_an_agent_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        await a_work(book.client, WORK_CLEANUP)
        told = LoopClock().now()
        await book.client.delete(MemberCluster, "cluster-1")
        await asyncio.sleep(295)
        assert not await gone(book.client, MemberCluster, "cluster-1")
        await until_so(lambda: gone(book.client, MemberCluster, "cluster-1"))
        assert 299 <= (LoopClock().now() - told).total_seconds() <= 303
        assert await gone(book.client, Namespace, NS)

    play(scene, force_delete_after=300.0)


def test_a_member_whose_agent_never_came_leaves_at_once() -> None:
    async def scene(book: Book) -> None:
        await book.add("cluster-1")
        await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_READY_TO_JOIN)
        await book.client.delete(MemberCluster, "cluster-1")
        await until_so(lambda: gone(book.client, MemberCluster, "cluster-1"), 10)

    play(scene)


def test_who_takes_the_finalizer_off_a_member_may_let_it_go() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        await book.client.patch(MemberCluster, "cluster-1", MergePatch({"metadata": {"finalizers": None}}))
        await asyncio.sleep(1)
        assert (await book.member("cluster-1")).metadata.finalizers == ()
        await book.client.delete(MemberCluster, "cluster-1")
        assert await gone(book.client, MemberCluster, "cluster-1")

    play(scene)


def test_finalizers_of_others_are_left_to_them() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        await a_work(book.client, WORK_CLEANUP, "example.com/mine")
        await book.client.delete(MemberCluster, "cluster-1")
        await asyncio.sleep(1)
        await answer(book, "False")
        await asyncio.sleep(60)
        work = await book.client.get(untyped(Work.resource), "web-work", NS)
        assert work["metadata"]["finalizers"] == ["example.com/mine"]
        await book.client.patch(untyped(Work.resource), "web-work", MergePatch({"metadata": {"finalizers": None}}), NS)
        await until_so(lambda: gone(book.client, MemberCluster, "cluster-1"))

    play(scene)


def test_a_member_that_comes_back_while_its_namespace_goes_waits_and_says_so() -> None:
    async def scene(book: Book) -> None:
        await book.client.create(Namespace, {"metadata": {"name": NS, "labels": {IS_FLEET_RESOURCE: "true"}}})
        await a_work(book.client, "example.com/mine")
        await book.client.delete(Namespace, NS)
        await book.add("cluster-1")
        await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_NOT_READY_TO_JOIN)
        ready = await book.condition("cluster-1", "ReadyToJoin")
        assert ready is not None
        assert "is still being deleted" in ready.message
        await book.client.patch(untyped(Work.resource), "web-work", MergePatch({"metadata": {"finalizers": None}}), NS)
        await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_READY_TO_JOIN)

    play(scene)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scene(book: Book) -> None:
        await joined(book)
        await asyncio.sleep(5)
        before = [
            (await book.raw(kind, name, where))["metadata"]["resourceVersion"] for kind, name, where in EVERYTHING
        ]
        await asyncio.sleep(7200)
        after = [(await book.raw(kind, name, where))["metadata"]["resourceVersion"] for kind, name, where in EVERYTHING]
        assert before == after

    play(scene)


EVERYTHING = (
    (MemberCluster, "cluster-1", None),
    (Namespace, NS, None),
    (Role, "fleet-role-cluster-1", NS),
    (RoleBinding, "fleet-rolebinding-cluster-1", NS),
    (InternalMemberCluster, "cluster-1", NS),
)


def test_the_rules_for_agents_are_what_they_do_and_no_more() -> None:
    allowed = {
        f"{verb} {group}/{resource}"
        for rule in AGENT_RULES
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs or ()
    }
    assert not any("*" in one for one in allowed)
    assert {one.partition("/")[2] for one in allowed} == {
        "works",
        "works/status",
        "internalmemberclusters",
        "internalmemberclusters/status",
        "events",
    }
    assert not {one for one in allowed if one.startswith(("create", "delete")) and not one.endswith("/events")}


WIDE = [
    {"apiGroups": ["cluster.kubernetes-fleet.io"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["placement.kubernetes-fleet.io"], "resources": ["*"], "verbs": ["*"]},
]


def test_a_role_from_before_is_narrowed_when_the_hub_sees_it() -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": NS}})
            await client.create(Role, {"metadata": {"name": "fleet-role-cluster-1"}, "rules": WIDE}, NS)
            async with managed() as manager:
                hub = await manager.connect("hub", cluster.transport())
                manager.add_controller(Members(hub, clock=LoopClock()).controller)
                book = Book(client)
                await book.add("cluster-1")
                await book.until_reason("cluster-1", "ReadyToJoin", reasons.MEMBER_READY_TO_JOIN)
                assert (await client.get(Role, "fleet-role-cluster-1", NS)).rules == AGENT_RULES

    run(main())
