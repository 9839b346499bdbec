"""What a hostile member tries on a hub, with its own credentials: refused; and what an agent does: allowed.

On a hub as `kedge install` and `kedge join` make one. Each attack is tried twice: with the Role that the hub gives, and
with all rights in the member's namespace, as agents had before and as somebody may grant again; then the admission
policies stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from controlplane.rest import Response
from kedge.kube.clock import SystemClock
from real.role_fleet import KEEPS_HOUSE, Fleet, kept_token, token_of
from support.forgery import ROLLED_OUT, forged
from support.waiting import until_so

MEMBER = "cluster-1"
AGENT = f"fleet-member-agent-{MEMBER}"
OURS = f"fleet-member-{MEMBER}"
PLACEMENT = "/apis/placement.kubernetes-fleet.io/v1beta1"
CLUSTER = "/apis/cluster.kubernetes-fleet.io/v1beta1"
MERGE = "application/merge-patch+json"
WORK = f"{PLACEMENT}/namespaces/{OURS}/works/web-work"
INTERNAL = f"{CLUSTER}/namespaces/{OURS}/internalmemberclusters/{MEMBER}"
TOKEN = f"/api/v1/namespaces/fleet-system/serviceaccounts/{AGENT}/token"
BINDING = f"{PLACEMENT}/namespaces/{OURS}/resourcebindings/shop-binding"
CLEANUP = "kubernetes-fleet.io/work-cleanup"
Attack = tuple[str, str, str, Any]

PARTS = """
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: Work
metadata: {name: web-work, namespace: fleet-member-cluster-1, labels: {kubernetes-fleet.io/parent-CRP: web}}
spec: {workload: {manifests: []}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceBinding
metadata: {name: shop-binding, namespace: fleet-member-cluster-1}
spec: {state: Bound, targetCluster: cluster-2, resourceSnapshotName: a, schedulingPolicySnapshotName: b,
       clusterDecision: {clusterName: cluster-2, selected: true, reason: x}}
"""
EVERYTHING_HERE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: wide, namespace: fleet-member-cluster-1}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: wide, namespace: fleet-member-cluster-1}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: wide}
subjects:
- {kind: ServiceAccount, name: fleet-member-agent-cluster-1, namespace: fleet-system}
"""
TEAM = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: team}
data: {tea: "2"}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: prices, namespace: team}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: ConfigMap, name: prices}
  policy: {placementType: PickFixed, clusterNames: [cluster-1]}
"""


def forgeries() -> Iterator[Attack]:
    """Objects that would run on another member."""
    for kind, body in forged():
        resource = kind.resource
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        yield f"create a {resource.kind}", "POST", f"{PLACEMENT}/namespaces/{OURS}/{resource.plural}", whole


STARTED: Attack = (
    "say that a rollout has started",
    "PATCH",
    f"{BINDING}/status",
    {"status": {"conditions": [ROLLED_OUT]}},
)


def changes() -> Iterator[Attack]:
    """Changes of what the hub wrote."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    label = {"metadata": {"labels": {"kubernetes-fleet.io/parent-resource-binding": "of-another"}}}
    yield "have its own Work say more", "PATCH", WORK, {"spec": {"workload": {"manifests": [manifest]}}}
    yield "say that its Work is another binding's", "PATCH", WORK, label
    yield "hold its Work", "PATCH", WORK, {"metadata": {"finalizers": ["hostile.example/held"]}}
    yield "delete its Work", "DELETE", WORK, None
    yield "delete its Works", "DELETE", WORK.rpartition("/")[0], None
    yield "point a binding elsewhere", "PATCH", BINDING, {"spec": {"targetCluster": "cluster-3"}}
    yield "say that a rollout has started", "PATCH", f"{BINDING}/status", {"status": {"conditions": []}}
    yield "remain when told to leave", "PATCH", INTERNAL, {"spec": {"heartbeatPeriodSeconds": 600}}
    work = {"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work", "metadata": {"name": "more"},
            "spec": {}}  # fmt: skip
    yield "make a Work of its own", "POST", WORK.rpartition("/")[0], work


def elsewhere() -> Iterator[Attack]:
    """Reaching out of its namespace."""
    other = WORK.replace(OURS, "fleet-member-cluster-2")
    yield "read another's Work", "GET", other, None
    yield "answer for another", "PATCH", f"{other}/status", {"status": {}}
    yield "read a Secret", "GET", "/api/v1/namespaces/fleet-system/secrets", None
    yield "change a MemberCluster", "PATCH", f"{CLUSTER}/memberclusters/{MEMBER}", {"spec": {"taints": []}}
    others = "/api/v1/namespaces/fleet-system/serviceaccounts"
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    yield "be the hub", "POST", f"{others}/kedge-hub/token", wanted
    yield "be another member", "POST", f"{others}/fleet-member-agent-cluster-2/token", wanted
    yield "approve", "PATCH", f"{PLACEMENT}/clusterapprovalrequests/x/status", {"status": {}}


@pytest.fixture
async def hub(own_plane: ControlPlane, tmp_path: Path) -> Fleet:
    made = Fleet(await own_plane.start("hub", only=KEEPS_HOUSE), {}, tmp_path)
    await made.install()
    return made


async def tried(hub: Cluster, attack: Attack, token: str) -> Response:
    _, verb, path, body = attack
    kind = MERGE if verb == "PATCH" else "application/json"
    return await hub.request(verb, path, body, token=token, content_type=kind)


async def let_through(hub: Cluster, attacks: Iterator[Attack], token: str) -> list[str]:
    """Which attacks were not refused, or not for want of a right."""
    answers = [(attack[0], await tried(hub, attack, token)) for attack in attacks]
    return [f"{name}: {answer.status} {answer.text[:200]}" for name, answer in answers if answer.status != 403]


async def _is_gone(hub: Cluster, *what: str) -> bool:
    return not await hub.kubectl("get", *what, "--ignore-not-found", "--output", "name")


async def _placed(hub: Cluster, token: str) -> bool:
    """Whether there is a Work of the placement of `team`; the member is heard of all the while."""
    await said_by_an_agent(hub, token, "True", "InternalMemberClusterJoined")
    return not await _is_gone(hub, "work", "--namespace", OURS, "--selector", PLACED)


@pytest.mark.timeout(400)
async def test_what_a_hostile_member_tries_is_refused_and_what_an_agent_does_is_not(hub: Fleet) -> None:
    async with AsyncExitStack() as stack:
        await hub.run_hub(stack)
        file = await hub.join(MEMBER)
        server, token = hub.hub, await token_of(hub.hub, AGENT)
        assert (await kept_token(file)).life == timedelta(hours=1)
        await server.kubectl("apply", "-f", "-", input=PARTS)

        for attacks in (forgeries, changes, elsewhere):
            assert await let_through(server, attacks(), token) == []

        await server.kubectl("apply", "-f", "-", input=EVERYTHING_HERE)
        await until_so(partial(_may_delete_secrets, server, token), 30)
        for attacks in (forgeries, changes, elsewhere):
            assert await let_through(server, attacks(), token) == []
        await server.kubectl("delete", "rolebinding,role", "wide", "--namespace", OURS)

        assert await refused_to_agents(server, token) == []

        # Nobody else is kept from what is theirs: the hub, the namespace controller, the garbage collector.
        await server.kubectl("apply", "-f", "-", input=TEAM)
        await until_so(partial(_placed, server, token), 60)
        await server.kubectl("delete", "namespace", "team", "--wait=false")
        await until_so(partial(_is_gone, server, "work", "--namespace", OURS, "--selector", PLACED), 60)
        await until_so(partial(_is_gone, server, "namespace", "team"), 60)
        await server.kubectl("delete", "resourcebinding", "shop-binding", "--namespace", OURS)

        # With every right in its namespace and no policy left, what it forges is stored, and nobody acts on it.
        await hub.join("cluster-2")
        await server.kubectl("apply", "-f", "-", input=EVERYTHING_HERE)
        await server.kubectl("delete", "validatingadmissionpolicybinding", "--all")
        for attack in (*forgeries(), STARTED):
            await until_so(partial(_succeeds, server, attack, token), 30)
        await until_so(partial(_is_told_why, server), 60)
        await server.kubectl("apply", "-f", "-", input=TEAM)
        await until_so(partial(_placed, server, token), 60)
        assert await _is_gone(server, "work", "--namespace", "fleet-member-cluster-2")
        await server.kubectl("delete", "namespace", "team", "--wait=false")
        await until_so(partial(_is_gone, server, "work", "--namespace", OURS, "--selector", PLACED), 60)

        await server.kubectl("delete", "membercluster", MEMBER, "--wait=false")
        await said_by_an_agent(server, token, "False", "InternalMemberClusterLeft")
        await until_so(partial(_is_gone, server, "membercluster", MEMBER), 90)
        await until_so(partial(_is_gone, server, "namespace", OURS), 60)
    assert [line for line in hub.refusals() if "is being terminated" not in line] == []


async def _succeeds(server: Cluster, attack: Attack, token: str) -> bool:
    return (await tried(server, attack, token)).status in (200, 201, 409)


async def _is_told_why(server: Cluster) -> bool:
    path = "jsonpath={.status.conditions[*].message}"
    said = await server.kubectl("get", "resourceplacement", "shop", "--namespace", OURS, "--output", path)
    return "which is reserved" in said


PLACED = "kubernetes-fleet.io/parent-CRP=prices"


async def _may_delete_secrets(server: Cluster, token: str) -> bool:
    answer = await server.request("GET", f"/api/v1/namespaces/{OURS}/secrets", token=token)
    return answer.status == 200


async def said_by_an_agent(server: Cluster, token: str, joined: str, reason: str) -> None:
    """As an agent of KubeFleet answers: it reads the whole object, and writes the whole status."""

    async def once() -> bool:
        found = (await server.request("GET", INTERNAL, token=token)).json()
        at = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")
        common = {"message": "", "lastTransitionTime": at, "observedGeneration": found["metadata"]["generation"]}
        conditions = [
            {"type": "Joined", "status": joined, "reason": reason, **common},
            {"type": "Healthy", "status": "True", "reason": "InternalMemberClusterHealthy", **common},
        ]
        agent = {"type": "MemberAgent", "conditions": conditions, "lastReceivedHeartbeat": at}
        found["status"] = {"agentStatus": [agent]}
        answer = await server.request("PUT", f"{INTERNAL}/status", found, token=token)
        return answer.status == 200 and (joined == "True" or found["spec"]["state"] == "Leave")

    await until_so(once, 30)


async def refused_to_agents(server: Cluster, token: str) -> list[str]:
    """What an agent, Kedge's (which patches) or KubeFleet's (which updates), does and is not allowed to."""
    work = (await server.request("GET", WORK, token=token)).json()
    held = {**work, "metadata": {**work["metadata"], "finalizers": [CLEANUP]}}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "told"}, "reason": "Applied",
             "involvedObject": {"kind": "Work", "name": "web-work", "namespace": OURS}}  # fmt: skip
    events = f"/api/v1/namespaces/{OURS}/events"
    rows: list[Attack] = [
        ("hold a Work", "PUT", WORK, held),
        ("let go of a Work", "PATCH", WORK, {"metadata": {"finalizers": None}}),
        ("hold it again", "PATCH", WORK, {"metadata": {"finalizers": [CLEANUP]}}),
        ("let go of it again", "PATCH", WORK, {"metadata": {"finalizers": None}}),
        ("tell what came of a Work", "PATCH", f"{WORK}/status", {"status": {"conditions": []}}),
        ("read its Works", "GET", WORK.rpartition("/")[0], None),
        ("renew its token", "POST", TOKEN, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}),
        ("write an event", "POST", events, event),
        ("count an event", "PATCH", f"{events}/told", {"count": 2}),
    ]
    answers = [(row[0], await tried(server, row, token)) for row in rows]
    await said_by_an_agent(server, token, "True", "InternalMemberClusterJoined")
    return [f"{name}: {answer.status} {answer.text[:200]}" for name, answer in answers if answer.status >= 300]
