"""`kedge hub` and `kedge member` as processes, each with exactly the rights that `kedge install` prints for it.

The API servers' audit logs are the witness: nothing was refused for want of a right, and nobody was an admin.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from kedge.api.rbac import PolicyRule
from kedge.plan.membership import AGENT_RULES
from real.role_fleet import KEEPS_HOUSE, Fleet, asked_by, kept_token
from support.waiting import until_so

MEMBERS = ("cluster-1", "cluster-2")
NARROWED = {"cluster-2": ("--kinds", "namespaces,configmaps", "--namespaces", "shop")}
RENEWING = PolicyRule(api_groups=("",), resources=("serviceaccounts/token",), verbs=("create",))
FOR_KUBEFLEET = {
    *("update works", "update works/status", "update internalmemberclusters/status"),
    *("create events", "patch events"),
}
"""What Kedge's agent does not do, and KubeFleet's does."""
SELDOM = {"get works", "get internalmemberclusters", "list works", "list internalmemberclusters"}
"""When a watch lags behind one's own write, or a server cannot stream lists."""
SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: shop}
data: {tea: "2"}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: shop}
  policy: {placementType: PickAll}
"""


@pytest.fixture
async def fleet(own_plane: ControlPlane, tmp_path: Path) -> Fleet:
    hub = await own_plane.start("hub", only=KEEPS_HOUSE)
    members = [await own_plane.start(name, only=KEEPS_HOUSE) for name in MEMBERS]
    made = Fleet(hub, dict(zip(MEMBERS, members, strict=True)), tmp_path, NARROWED)
    await made.install()
    return made


async def _there(cluster: Cluster, *what: str) -> bool:
    return bool(await cluster.kubectl("get", *what, "--ignore-not-found", "--output", "name"))


async def _gone(cluster: Cluster, *what: str) -> bool:
    return not await _there(cluster, *what)


@pytest.mark.timeout(400)
async def test_every_role_does_its_work_with_exactly_the_rights_that_are_printed(fleet: Fleet) -> None:
    hub, (leaving, leaver) = fleet.hub, list(fleet.members.items())[1]
    async with AsyncExitStack() as stack:
        await fleet.run(stack)
        for name in fleet.members:
            await until_so(partial(fleet.is_so, name, "Joined"), 60)
        await hub.kubectl("apply", "-f", "-", input=SHOP)
        for member in fleet.members.values():
            await until_so(partial(_there, member, "configmap", "prices", "--namespace", "shop"), 60)
        await hub.kubectl("delete", "membercluster", leaving, "--wait=false")
        await until_so(lambda: _gone(hub, "membercluster", leaving), 90)
        assert await _there(leaver, "configmap", "prices", "--namespace", "shop"), "what was placed stays"
        assert await _gone(hub, "namespace", f"fleet-member-{leaving}")
        assert fleet.refusals() == []
        await hub.kubectl("delete", "clusterresourceplacement", "shop", "--wait=false")
        staying = fleet.members[MEMBERS[0]]
        await until_so(lambda: _gone(staying, "configmap", "prices", "--namespace", "shop"), 60)
        await until_so(lambda: _gone(hub, "clusterresourceplacement", "shop"), 60)
    still = [line for line in fleet.refusals() if f"fleet-member-{leaving}" not in line]
    assert still == []
    assert asked_by(hub, "kedge-hub")
    kept = await kept_token(fleet.agent_file(MEMBERS[0]))
    assert kept.life >= timedelta(minutes=10), "the one it began with has long ended"
    for name in MEMBERS:
        unused = fleet.unused(f"fleet-member-agent-{name}", (*AGENT_RULES, RENEWING))
        assert unused <= FOR_KUBEFLEET | SELDOM, "granted, and never used"
