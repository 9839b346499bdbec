"""`kedge hub --api karmada` and `kedge member --api karmada` as processes, with the rights that `kedge install` prints.

A user applies a policy and a Deployment to the hub, and changes it: its pods run in both members, and roll by one
budget. The API servers' audit logs are the witness that nothing was refused for want of a right.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from controllers.align.recorder import PodRecorder
from controlplane.cluster import Cluster, KubectlError
from controlplane.plane import ControlPlane
from kedge import rights
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from real.role_fleet import KEEPS_HOUSE, allowed, as_account, asked_by, did, kedge, refused, running
from support.waiting import until, until_so

pytestmark = pytest.mark.timeout(600)

MEMBERS = ("cluster-1", "cluster-2")
SHOP = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: demo}
  - {apiVersion: v1, kind: ConfigMap, name: prices}
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [cluster-1]}, weight: 2}
        - {targetCluster: {clusterNames: [cluster-2]}, weight: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: default}
data: {tea: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: demo, namespace: default}
spec:
  replicas: 10
  strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 1}}
  selector: {matchLabels: {app: demo}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "nginx:v1"}]
"""
SELDOM = {
    *("get works", "list works", "get resourcebindings", "get clusterresourcebindings"),
    *("patch statefulsets/status", "patch clonesets/status", "patch clusterresourcebindings"),
    *("create clusterresourcebindings", "patch clusterresourcebindings/status"),
    *("patch clusterpropagationpolicies/status", "create namespaces", "patch events", "create leases"),
}
"""What this test has no occasion for: other kinds, a watch that lags behind one's own write, events that repeat, and
members whose namespace `kedge join` has not made. What creates by applying shows as a patch, and needs both rights.
"""


class KarmadaFleet:
    """A hub of Karmada's kinds and two members, their roles as processes."""

    def __init__(self, hub: Cluster, members: dict[str, Cluster], folder: Path) -> None:
        self.hub = hub
        self.members = members
        self.folder = folder

    async def install(self) -> None:
        await self.hub.kubectl("apply", "-f", "-", input=await kedge("install", "hub", "--api", "karmada"))
        for name, member in self.members.items():
            printed = await kedge("install", "member", name, "--api", "karmada")
            await member.kubectl("apply", "-f", "-", input=printed)

    async def run(self, stack: AsyncExitStack) -> None:
        as_hub = await as_account(self.hub, "kedge-hub", self.folder)
        await stack.enter_async_context(
            running(self.folder / "hub.log", "hub", "--api", "karmada", "--kubeconfig", str(as_hub))
        )
        for name, member in self.members.items():
            to_hub = self.folder / f"{name}-on-hub.kubeconfig"
            options = ["--kubeconfig", str(self.hub.kubeconfig), "--agent-kubeconfig", str(to_hub)]
            told = await kedge("join", name, "--api", "karmada", *options)
            assert f"kedge install member {name} --api karmada" in told
            on_member = await as_account(member, "kedge-member", self.folder)
            files = ["--hub-kubeconfig", str(to_hub), "--kubeconfig", str(on_member), "--member", name]
            log = self.folder / f"{name}.log"
            await stack.enter_async_context(running(log, "member", "--api", "karmada", *files))

    async def is_ready(self, name: str) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return await self.hub.kubectl("get", "clusters.cluster.karmada.io", name, "--output", path) == "True"

    def refusals(self, *members: str) -> list[str]:
        """What was refused to the hub, and to the agents of these members; of all, if none is named."""
        found = refused(asked_by(self.hub, "kedge-hub"))
        for name in members or self.members:
            found += refused(asked_by(self.hub, f"fleet-member-agent-{name}"))
            found += refused(asked_by(self.members[name], "kedge-member"))
        return found


@pytest.fixture
async def fleet(own_plane: ControlPlane, tmp_path: Path) -> KarmadaFleet:
    hub = await own_plane.start("hub", only=KEEPS_HOUSE)
    members = [await own_plane.start(name, controllers=True, nodes=1) for name in MEMBERS]
    made = KarmadaFleet(hub, dict(zip(MEMBERS, members, strict=True)), tmp_path)
    await made.install()
    return made


async def _client(cluster: Cluster) -> Client:
    transport = HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))
    return Client(transport, limiter=Limiter(rate=0))


async def _data(member: Cluster) -> str:
    return await member.kubectl("get", "configmap", "prices", "--ignore-not-found", "--output", "jsonpath={.data.tea}")


async def test_roles_of_karmadas_kinds_need_exactly_the_rights_that_are_printed(fleet: KarmadaFleet) -> None:
    async with AsyncExitStack() as stack:
        await fleet.run(stack)
        for name in MEMBERS:
            await until_so(partial(fleet.is_ready, name), 90)
        clients = {name: await _client(member) for name, member in fleet.members.items()}
        for client in clients.values():
            stack.push_async_callback(client.close)
        recorder = PodRecorder()
        await stack.enter_async_context(recorder.following(clients, "default"))
        await fleet.hub.kubectl("apply", "-f", "-", input=SHOP)
        await until(lambda: recorder.ready_images() == ["nginx:v1"] * 10, 90)
        shown = await fleet.hub.kubectl("get", "rb", "demo-deployment", "--output", "json")
        clusters = [(one["name"], one["replicas"]) for one in json.loads(shown)["spec"]["clusters"]]
        assert clusters == [("cluster-1", 4), ("cluster-2", 6)]
        recorder.forget()
        await fleet.hub.kubectl("apply", "-f", "-", input=SHOP.replace("nginx:v1", "nginx:v2"))
        await until(lambda: recorder.ready_images() == ["nginx:v2"] * 10, 120)
        assert recorder.fewest >= 8
        assert recorder.most <= 11
        for member in fleet.members.values():
            assert await _data(member) == "2"
        await _changes_in_a_member_are_put_back(fleet.members["cluster-1"])
        await _a_member_may_scale_what_says_so(fleet, recorder)
        assert fleet.refusals() == []
        await _agent_writes_nothing_else(fleet)
        tried = fleet.refusals("cluster-1")
        await fleet.hub.kubectl("delete", "deployment", "demo")
        await fleet.hub.kubectl("delete", "configmap", "prices")
        await until(lambda: not recorder.active, 90)
        await fleet.hub.kubectl("delete", "clusters.cluster.karmada.io", "cluster-2", "--timeout=60s")
    assert fleet.refusals("cluster-1") == tried  # of cluster-2 the Role on the hub is gone before its agent knows
    granted = allowed(rights.KARMADA_HUB)
    assert granted - did(asked_by(fleet.hub, "kedge-hub")) <= SELDOM
    agent = allowed(rights.KARMADA_AGENT)
    assert agent - did(asked_by(fleet.hub, "fleet-member-agent-cluster-1")) <= SELDOM


async def _changes_in_a_member_are_put_back(member: Cluster) -> None:
    async def is_back() -> bool:
        return await _data(member) == "2"

    await member.kubectl("patch", "configmap", "prices", "--type=merge", "-p", json.dumps({"data": {"tea": "9"}}))
    await until_so(is_back, 60)
    await member.kubectl("delete", "configmap", "prices")
    await until_so(is_back, 60)


async def _a_member_may_scale_what_says_so(fleet: KarmadaFleet, recorder: PodRecorder) -> None:
    """As an autoscaler there would. The next release keeps that, and its budget is that of all pods there are."""
    retains = "resourcetemplate.karmada.io/retain-replicas=true"
    member = fleet.members["cluster-1"]

    async def has_label() -> bool:
        return "retain-replicas" in await member.kubectl("get", "deployment", "demo", "-o", "json")

    await fleet.hub.kubectl("label", "deployment", "demo", retains)
    await until_so(has_label, 60)
    await member.kubectl("scale", "deployment", "demo", "--replicas=6")
    await until(lambda: recorder.ready_images() == ["nginx:v2"] * 12, 90)
    recorder.forget()
    await fleet.hub.kubectl("set", "image", "deployment/demo", "main=nginx:v3")
    await until(lambda: recorder.ready_images() == ["nginx:v3"] * 12, 120)
    assert recorder.fewest >= 10
    assert recorder.most <= 13


async def _agent_writes_nothing_else(fleet: KarmadaFleet) -> None:
    """With its own right to change Works, an agent changes neither what they say nor those of others."""
    as_agent = fleet.folder / "cluster-1-on-hub.kubeconfig"
    name = (await fleet.hub.kubectl("get", "works", "-n", "karmada-es-cluster-1", "-o", "name")).split()[0]
    patch = json.dumps({"spec": {"workload": {"manifests": []}}})
    for namespace, refusal in (
        ("karmada-es-cluster-1", "no more of a Work than"),
        ("karmada-es-cluster-2", "cannot get"),
    ):
        arguments = ("--kubeconfig", str(as_agent), "patch", name, "-n", namespace, "--type=merge", "-p", patch)
        with pytest.raises(KubectlError, match=refusal):
            await fleet.hub.kubectl(*arguments)
