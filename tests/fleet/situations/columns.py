"""What `kubectl get` prints: columns, those of `-o wide` marked, and short names (kubefleet.md §1.1, §1.2)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from fleet.situations.playing import Group
from fleet.situations.stage import BOTH, Stage, Twin, fixed
from kedge.api.binding import ClusterResourceBinding, ResourceBinding
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.placement import ClusterResourcePlacement, ClusterResourcePlacementStatus, ResourcePlacement
from kedge.api.resource import Resource
from kedge.api.snapshot import (
    ClusterResourceSnapshot,
    ClusterSchedulingPolicySnapshot,
    ResourceSnapshot,
    SchedulingPolicySnapshot,
)
from kedge.api.staged import ApprovalRequest, ClusterApprovalRequest, ClusterStagedUpdateRun, StagedUpdateRun
from kedge.kube.transport import Request

GROUP: Final = Group("columns")

_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_PLACEMENT: Final = (
    "Name Gen (Type) Scheduled Scheduled-Gen (Work-Synchronized) (Work-Synchronized-Gen) Available Available-Gen Age"
)
_BINDING: Final = "Name WorkSynchronized ResourcesApplied (ResourceAvailable) Age"
_RUN: Final = (
    "Name Placement Resource-Snapshot-Index Policy-Snapshot-Index Initialized Progressing Succeeded Age (Strategy)"
)
_APPROVAL: Final = "Name Update-Run Stage Approved Age"

COLUMNS: Final[dict[Resource, str]] = {
    MemberCluster.resource: (
        "Name Joined Age Member-Agent-Last-Seen Node-Count Available-CPU Available-Memory (Allocatable-CPU) "
        "(Allocatable-Memory)"
    ),
    InternalMemberCluster.resource: "Name Age",
    ClusterResourcePlacement.resource: _PLACEMENT,
    ResourcePlacement.resource: _PLACEMENT,
    ClusterResourceBinding.resource: _BINDING,
    ResourceBinding.resource: _BINDING,
    ClusterResourcePlacementStatus.resource: "Name Resource-Index Last-Updated Age",
    ClusterResourceSnapshot.resource: "Name Gen Age",
    ResourceSnapshot.resource: "Name Gen Age",
    ClusterSchedulingPolicySnapshot.resource: "Name Gen Age",
    SchedulingPolicySnapshot.resource: "Name Gen Age",
    ClusterStagedUpdateRun.resource: _RUN,
    StagedUpdateRun.resource: _RUN,
    ClusterApprovalRequest.resource: _APPROVAL,
    ApprovalRequest.resource: _APPROVAL,
}


async def table(stage: Stage, resource: Resource, namespace: str | None = None) -> dict[str, Any]:
    request = Request("GET", resource.path(namespace), accept=_TABLE)
    found: dict[str, Any] = msgspec.json.decode((await stage.hub.transport.send(request, timeout=30.0)).body)
    return found


async def _columns(resource: Resource, stage: Stage) -> object:
    columns = (await table(stage, resource))["columnDefinitions"]
    return " ".join(f"({one['name']})" if one["priority"] else one["name"] for one in columns)


for _kind, _expected in COLUMNS.items():
    _play = partial(_columns, _kind)
    _play.__name__ = f"columns_of_{_kind.plural}"  # type: ignore[attr-defined]  # what a row is called by
    GROUP.situation("1.2", _expected)(_play)


@GROUP.situation(
    "1.1",
    {
        "ClusterResourcePlacement": ["crp"],
        "ResourcePlacement": ["rp"],
        "ClusterResourcePlacementStatus": ["crps"],
        "ClusterResourceSnapshot": ["crs"],
        "ResourceSnapshot": ["rs"],
        "ClusterSchedulingPolicySnapshot": ["csps"],
        "SchedulingPolicySnapshot": ["sps"],
        "ClusterResourceBinding": ["crb"],
        "ResourceBinding": ["rb"],
        "Work": [],
        "ClusterStagedUpdateStrategy": ["csus"],
        "ClusterStagedUpdateRun": ["csur"],
        "ClusterApprovalRequest": ["careq"],
        "StagedUpdateStrategy": ["sus"],
        "StagedUpdateRun": ["sur"],
        "ApprovalRequest": ["areq"],
        "MemberCluster": ["cluster"],
        "InternalMemberCluster": ["imc"],
    },
    real=True,
)
async def short_names(stage: Stage) -> object:
    groups = ("placement.kubernetes-fleet.io", "cluster.kubernetes-fleet.io")
    found: dict[str, list[str]] = {}
    for group in groups:
        listed = msgspec.json.decode(await stage.hub.document(f"/apis/{group}/v1beta1"))["resources"]
        found |= {one["kind"]: one.get("shortNames", []) for one in listed if "/" not in one["name"]}
    return {kind: found[kind] for kind in found if kind in _SHOWN}


_SHOWN: Final = {
    *("ClusterResourcePlacement", "ResourcePlacement", "ClusterResourcePlacementStatus", "ClusterResourceSnapshot"),
    *("ResourceSnapshot", "ClusterSchedulingPolicySnapshot", "SchedulingPolicySnapshot", "ClusterResourceBinding"),
    *("ResourceBinding", "Work", "ClusterStagedUpdateStrategy", "ClusterStagedUpdateRun", "ClusterApprovalRequest"),
    *("StagedUpdateStrategy", "StagedUpdateRun", "ApprovalRequest", "MemberCluster", "InternalMemberCluster"),
}


def _cells(found: dict[str, Any]) -> dict[str, object]:
    """The only row, by the names of its columns."""
    (row,) = found["rows"]
    return {
        column["name"]: cell
        for column, cell in zip(found["columnDefinitions"], row["cells"], strict=True)
        if column["name"] != "Age"
    }


@GROUP.situation(
    "1.2",
    {
        "Name": "app",
        "Gen": "1",
        "Type": "PickFixed",
        "Scheduled": "True",
        "Scheduled-Gen": "1",
        "Work-Synchronized": "True",
        "Work-Synchronized-Gen": "1",
        "Available": "True",
        "Available-Gen": "1",
    },
    kinds=BOTH,
    real=True,
)
async def a_placement_that_is_done_as_it_is_printed(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    resource = stage.twin.placements.resource
    return {key: str(value) for key, value in _cells(await table(stage, resource, stage.twin.namespace)).items()}


def _bound(twin: Twin) -> dict[str, object]:
    return {"WorkSynchronized": "True", "ResourcesApplied": "True", "ResourceAvailable": "True"}


@GROUP.situation("1.2", _bound, kinds=BOTH)
async def a_binding_that_is_done_as_it_is_printed(stage: Stage) -> object:
    await stage.placed(policy=fixed("cluster-1"))
    found = await table(stage, stage.twin.bindings.resource, stage.twin.namespace)
    found["rows"] = [one for one in found["rows"] if one["object"]["metadata"]["name"].startswith("app-")]
    cells = _cells(found)
    cells.pop("Name")
    return cells
