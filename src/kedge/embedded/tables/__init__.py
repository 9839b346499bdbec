"""Tables: what `kubectl get` shows of an object: the columns of its kind, and a cell for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from kedge.embedded.kind import Kind
from kedge.embedded.kind_rules import Untyped
from kedge.embedded.tables import core, others, workloads
from kedge.embedded.tables.columns import Column, built_in

Cells: TypeAlias = Callable[[Untyped, datetime], list[Any]]

_CELLS: Mapping[str, Cells] = {
    "APIService": others.api_service,
    "CSIDriver": others.csi_driver,
    "CSINode": others.csi_node,
    "CertificateSigningRequest": others.signing_request,
    "ClusterRoleBinding": others.role_binding,
    "ConfigMap": core.config_map,
    "ControllerRevision": workloads.controller_revision,
    "CronJob": workloads.cron_job,
    "DaemonSet": workloads.daemon_set,
    "Deployment": workloads.deployment,
    "EndpointSlice": others.endpoint_slice,
    "Endpoints": core.endpoints,
    "Event": core.event,
    "HorizontalPodAutoscaler": others.autoscaler,
    "Ingress": others.ingress,
    "IngressClass": others.ingress_class,
    "Job": workloads.job,
    "Lease": others.lease,
    "MutatingWebhookConfiguration": others.webhooks,
    "Namespace": core.namespace,
    "NetworkPolicy": others.network_policy,
    "Node": core.node,
    "PersistentVolume": core.volume,
    "PersistentVolumeClaim": core.claim,
    "Pod": workloads.pod,
    "PodDisruptionBudget": others.budget,
    "PodTemplate": workloads.pod_template,
    "PriorityClass": others.priority_class,
    "ReplicaSet": workloads.replica_set,
    "ReplicationController": workloads.replication_controller,
    "ResourceQuota": core.quota,
    "RoleBinding": others.role_binding,
    "RuntimeClass": others.runtime_class,
    "Scale": others.scale,
    "Secret": core.secret,
    "Service": core.service,
    "ServiceAccount": core.service_account,
    "StatefulSet": workloads.stateful_set,
    "StorageClass": others.storage_class,
    "ValidatingAdmissionPolicy": others.policy,
    "ValidatingAdmissionPolicyBinding": others.policy_binding,
    "ValidatingWebhookConfiguration": others.webhooks,
    "VolumeAttachment": others.attachment,
}


def columns(kind: Kind) -> Sequence[Column]:
    """The column definitions of a kind."""
    return kind.custom.columns if kind.custom else built_in(kind.resource.kind)


def cells(kind: Kind, obj: Untyped, now: datetime) -> list[Any]:
    """An object's cells, one for each column."""
    if kind.custom:
        return kind.custom.cells(obj, now)
    show = _CELLS.get(kind.resource.kind, _any)
    return show(obj, now)


def marks(kind: Kind, obj: Untyped) -> dict[str, Any]:
    """What a row says beside its cells: the condition of a pod that is over (`Completed`)."""
    return workloads.pod_marks(obj) if kind.resource.kind == "Pod" else {}


def _any(obj: Untyped, _now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]
