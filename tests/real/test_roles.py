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
from kedge import rights
from kedge.api.rbac import PolicyRule
from kedge.plan.membership import AGENT_RULES
from real.role_fleet import KEEPS_HOUSE, Fleet, allowed, asked_by, kedge, kept_token
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

WEB = """
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pages, namespace: web}
data: {title: "1"}
"""


def staged(prefix: str, inside: str, selector: str, more: str) -> str:
    """A placement that runs move, a strategy that asks, and a run; cluster-wide (`Cluster`), or in a namespace."""
    kind = f"apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: {prefix}"
    return f"""
{kind}ResourcePlacement
metadata: {{name: web{inside}}}
spec:
  resourceSelectors: [{selector}]
  policy: {{placementType: PickFixed, clusterNames: [cluster-1]}}
  revisionHistoryLimit: 1
  strategy: {{type: External}}{more}
---
{kind}StagedUpdateStrategy
metadata: {{name: careful{inside}}}
spec:
  stages: [{{name: all, labelSelector: {{}}, afterStageTasks: [{{type: Approval}}]}}]
---
{kind}StagedUpdateRun
metadata: {{name: go{inside}}}
spec: {{placementName: web, stagedRolloutStrategyName: careful}}
"""


CLUSTER_WIDE = staged(
    "Cluster",
    "",
    '{group: "", version: v1, kind: Namespace, name: web}',
    "\n  statusReportingScope: NamespaceAccessible",
)
NAMESPACED = staged("", ", namespace: web", '{group: "", version: v1, kind: ConfigMap, name: pages}', "")

NOT_SEEN_HERE = {
    *("update clusterresourceplacements/finalizers", "update resourceplacements/finalizers"),
    *("create clusterstagedupdateruns", "create stagedupdateruns"),
}
"""For API servers that ask whether an owner may be blocked; and for a run that failed, which takes five minutes."""


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


async def move_in_stages(fleet: Fleet, kind: str, manifests: str, inside: tuple[str, ...]) -> None:
    """Have a run move a placement, with an approval; change what is placed, and where; and take it all away."""
    hub, run = fleet.hub, f"{kind}stagedupdaterun"
    placement = f"{kind}resourceplacement"
    scheduled = f"{kind.title()}ResourcePlacementScheduled"
    placed, _, begins = manifests.rpartition("---")
    await hub.kubectl("apply", "-f", "-", input=placed)
    await until_so(partial(_is_true, hub, placement, "web", scheduled, inside), 60)
    await hub.kubectl("apply", "-f", "-", input=begins)
    await until_so(partial(_approved, fleet, "go", inside), 60)
    await until_so(partial(_is_true, hub, run, "go", "Succeeded", inside), 60)
    for number in ("2", "3"):
        data = f'{{"data":{{"title":"{kind}{number}"}}}}'
        await hub.kubectl("patch", "configmap", "pages", "--namespace", "web", "--type=merge", "--patch", data)
        index = f"kubernetes-fleet.io/resource-index={int(number) - 1}"
        snapshots = f"{kind}resourcesnapshot"
        await until_so(partial(_there, hub, snapshots, *inside, "--selector", index), 60)
    more = '{"spec":{"policy":{"clusterNames":["cluster-1","cluster-9"]}}}'
    await hub.kubectl("patch", placement, "web", *inside, "--type=merge", "--patch", more)
    policies = f"{kind}schedulingpolicysnapshot"
    await until_so(partial(_there, hub, policies, *inside, "--selector", "kubernetes-fleet.io/policy-index=1"), 60)
    await hub.kubectl("delete", run, "go", *inside)
    await hub.kubectl("delete", placement, "web", *inside, "--wait=false")
    await until_so(partial(_gone, hub, placement, "web", *inside), 60)


async def _approved(fleet: Fleet, run: str, inside: tuple[str, ...]) -> bool:
    asked = await fleet.hub.kubectl("get", "clusterapprovalrequests,approvalrequests", "--all-namespaces", "-o", "name")
    if asked:
        await kedge("approve", run, *inside, "--kubeconfig", str(fleet.hub.kubeconfig))
    return bool(asked)


async def _is_true(hub: Cluster, kind: str, name: str, condition: str, inside: tuple[str, ...]) -> bool:
    path = f"jsonpath={{.status.conditions[?(@.type=='{condition}')].status}}"
    return await hub.kubectl("get", kind, name, *inside, "--output", path) == "True"


async def undo_what_the_hub_gave(hub: Cluster) -> None:
    """Take from a member what lets its agent in; the hub gives it back."""
    inside, name = f"fleet-member-{MEMBERS[0]}", MEMBERS[0]
    for kind, which, part in (
        ("role", f"fleet-role-{name}", "rules"),
        ("rolebinding", f"fleet-rolebinding-{name}", "subjects"),
    ):
        await hub.kubectl("patch", kind, which, "--namespace", inside, "--type=merge", "--patch", f'{{"{part}":[]}}')
        path = f"jsonpath={{.{part}[0]}}"
        await until_so(partial(hub.kubectl, "get", kind, which, "--namespace", inside, "--output", path), 60)
    nobody = '{"metadata":{"ownerReferences":null}}'
    await hub.kubectl("patch", "namespace", inside, "--type=merge", "--patch", nobody)
    await until_so(
        partial(hub.kubectl, "get", "namespace", inside, "--output", "jsonpath={.metadata.ownerReferences}"), 60
    )


@pytest.mark.timeout(400)
async def test_every_role_does_its_work_with_exactly_the_rights_that_are_printed(fleet: Fleet) -> None:
    hub, staying, (leaving, leaver) = fleet.hub, fleet.members[MEMBERS[0]], list(fleet.members.items())[1]
    async with AsyncExitStack() as stack:
        await fleet.run(stack)
        for name in fleet.members:
            await until_so(partial(fleet.is_so, name, "Joined"), 60)
        await hub.kubectl("apply", "-f", "-", input=SHOP)
        for member in fleet.members.values():
            await until_so(partial(_there, member, "configmap", "prices", "--namespace", "shop"), 60)
        await hub.kubectl("apply", "-f", "-", input=WEB)
        await move_in_stages(fleet, "cluster", CLUSTER_WIDE, ())
        await until_so(lambda: _gone(staying, "namespace", "web"), 60)  # with the placement
        await staying.kubectl("create", "namespace", "web")
        await move_in_stages(fleet, "", NAMESPACED, ("--namespace", "web"))
        await undo_what_the_hub_gave(hub)
        await hub.kubectl("delete", "membercluster", leaving, "--wait=false")
        await until_so(lambda: _gone(hub, "membercluster", leaving), 90)
        assert await _there(leaver, "configmap", "prices", "--namespace", "shop"), "what was placed stays"
        assert await _gone(hub, "namespace", f"fleet-member-{leaving}")
        assert fleet.refusals() == []
        await hub.kubectl("delete", "clusterresourceplacement", "shop", "--wait=false")
        await until_so(lambda: _gone(staying, "configmap", "prices", "--namespace", "shop"), 60)
        await until_so(lambda: _gone(hub, "clusterresourceplacement", "shop"), 60)
    still = [line for line in fleet.refusals() if f"fleet-member-{leaving}" not in line]
    assert still == []
    assert asked_by(hub, "kedge-hub")
    kept = await kept_token(fleet.agent_file(MEMBERS[0]))
    assert kept.life >= timedelta(minutes=10), "the one it began with has long ended"
    assert fleet.unused("kedge-hub", rights.HUB) <= allowed(AGENT_RULES) | NOT_SEEN_HERE, "granted, and never used"
    for name in MEMBERS:
        unused = fleet.unused(f"fleet-member-agent-{name}", (*AGENT_RULES, RENEWING))
        assert unused <= FOR_KUBEFLEET | SELDOM, "granted, and never used"
