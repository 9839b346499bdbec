"""Bindings and Works, made in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kedge.api.binding import BindingSpec, BindingStatus, ClusterResourceBinding
from kedge.api.condition import FALSE, TRUE, Condition
from kedge.api.fleet import PARENT_BINDING, PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.snapshot import ClusterDecision
from kedge.api.work import ManifestCondition, Work, WorkResourceIdentifier, WorkSpec, WorkStatus

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2030, 1, 1, 13, tzinfo=UTC)


def said(kind: str, status: str = TRUE, reason: str = "Because", message: str = "", generation: int = 1) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=NOON,
        observed_generation=generation,
    )


def binding(
    *conditions: Condition, cluster: str = "a", generation: int = 1, name: str = "", **spec: Any
) -> ClusterResourceBinding:
    wanted = {
        "state": "Bound",
        "resource_snapshot_name": "crp-0-snapshot",
        "scheduling_policy_snapshot_name": "crp-0",
        "target_cluster": cluster,
        "cluster_decision": ClusterDecision(cluster_name=cluster, selected=True, reason=""),
        **spec,
    }
    meta = ObjectMeta(name=name or f"crp-{cluster}-0", generation=generation, labels={PARENT_PLACEMENT: "crp"})
    return ClusterResourceBinding(
        metadata=meta, spec=BindingSpec(**wanted), status=BindingStatus(conditions=conditions)
    )


def work(
    *conditions: Condition, objects: tuple[ManifestCondition, ...] = (), name: str = "crp-work", **meta: Any
) -> Work:
    labels = {PARENT_PLACEMENT: "crp", PARENT_BINDING: "crp-a-0"}
    found = {"name": name, "namespace": "fleet-member-a", "generation": 1, "labels": labels, **meta}
    status = WorkStatus(conditions=conditions, manifest_conditions=objects)
    return Work(metadata=ObjectMeta(**found), spec=WorkSpec(), status=status)


def failing(name: str, kind: str, reason: str = "Broken", message: str = "") -> ManifestCondition:
    which = WorkResourceIdentifier(ordinal=0, version="v1", kind="ConfigMap", namespace="shop", name=name)
    return ManifestCondition(identifier=which, conditions=(said(kind, FALSE, reason, message),))
