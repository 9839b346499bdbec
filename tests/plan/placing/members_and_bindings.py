"""Members and bindings to place with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kedge.api.binding import ClusterResourceBinding
from kedge.api.cluster import MemberCluster
from kedge.api.scheduling import PlacementPolicy
from kedge.plan.placing.schedule import Schedule, schedule

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
POLICY = "crp-0"


def ago(**span: float) -> str:
    return f"{NOW - timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


def agent(
    *, heard: float | None = 0, joined: str | None = "True", healthy: str | None = "True", since: float = 60
) -> Any:
    """What a member agent says, heard so many minutes ago and well (or not) for so many."""
    said = [("Joined", joined), ("Healthy", healthy)]
    conditions = [
        {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": ago(minutes=since)}
        for kind, status in said
        if status
    ]
    found: dict[str, Any] = {"type": "MemberAgent", "conditions": conditions}
    return found if heard is None else found | {"lastReceivedHeartbeat": ago(minutes=heard)}


def member(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
    available: Mapping[str, Any] | None = None,
    agents: tuple[Any, ...] | None = None,
    leaving: bool = False,
    status: Mapping[str, Any] | None = None,
) -> MemberCluster:
    """A member that is well unless told; a taint is written `key` or `key=value`."""
    meta: dict[str, Any] = {"name": name, "labels": labels or {}}
    if leaving:
        meta["deletionTimestamp"] = ago(seconds=1)
    body = {
        "metadata": meta,
        "spec": {
            "identity": {"kind": "User", "name": name},
            "taints": [
                {"key": key, "value": value, "effect": "NoSchedule"}
                for key, _, value in (t.partition("=") for t in taints)
            ],
        },
        "status": {
            "agentStatus": [agent()] if agents is None else list(agents),
            "properties": {
                key: {"value": value, "observationTime": ago(minutes=1)} for key, value in (properties or {}).items()
            },
            "resourceUsage": {"available": available or {}},
            **(status or {}),
        },
    }
    return msgspec.convert(body, MemberCluster)


def fleet(*names: str) -> list[MemberCluster]:
    return [member(name) for name in names]


def binding(
    cluster: str,
    state: str = "Bound",
    *,
    policy: str = POLICY,
    score: tuple[int, int] | None = (0, 0),
    suffix: str = "0",
    leaving: bool = False,
    resources: str | None = None,
    born: float = 60,
    before: str | None = None,
    held: bool = True,
) -> ClusterResourceBinding:
    """A binding, by (spread, affinity) score if it has one."""
    name = f"crp-{cluster}-{suffix}"
    meta: dict[str, Any] = {"name": name, "uid": name, "creationTimestamp": ago(minutes=born)}
    if leaving:
        meta["deletionTimestamp"] = ago(seconds=1)
    if held:
        meta["finalizers"] = ["kubernetes-fleet.io/scheduler-crb-cleanup"]
    if before:
        meta["annotations"] = {"kubernetes-fleet.io/previous-binding-state": before}
    decision: dict[str, Any] = {"clusterName": cluster, "selected": True, "reason": "before"}
    if score:
        decision["clusterScore"] = {"priorityScore": score[0], "affinityScore": score[1]}
    spec = {
        "state": state,
        "resourceSnapshotName": resources if resources is not None else "crp-0-snapshot" if state == "Bound" else "",
        "schedulingPolicySnapshotName": policy,
        "targetCluster": cluster,
        "clusterDecision": decision,
    }
    return msgspec.convert({"metadata": meta, "spec": spec}, ClusterResourceBinding)


def policy(kind: str = "PickAll", **spec: Any) -> PlacementPolicy:
    return msgspec.convert({"placementType": kind, **spec}, PlacementPolicy)


def requiring(*terms: Any) -> dict[str, Any]:
    """An affinity that requires one of these terms."""
    required = {"clusterSelectorTerms": list(terms)}
    return {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def preferring(*terms: tuple[int, Any]) -> dict[str, Any]:
    """An affinity that prefers these terms by these weights."""
    preferred = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}}


def having(name: str, operator: str, *values: str) -> dict[str, Any]:
    return {"propertySelector": {"matchExpressions": [{"name": name, "operator": operator, "values": list(values)}]}}


def place(
    wanted: PlacementPolicy | None, members: Any, bindings: Any = (), number: int | None = None, **options: Any
) -> Schedule:
    options = {"namespace": None, "now": NOW, **options}
    return schedule(wanted, number, POLICY, members, bindings, **options)


def created(made: Schedule) -> list[str]:
    return [decision.cluster_name for decision in made.create]


def given_up(made: Schedule) -> list[str]:
    return [each.spec.target_cluster for each in made.unschedule]


def reasons(made: Schedule) -> dict[str, str]:
    return {decision.cluster_name: decision.reason for decision in made.decisions}
