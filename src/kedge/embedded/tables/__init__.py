"""Tables: what `kubectl get` shows of an object: the columns of its kind, and a cell for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from kedge.embedded.kind import Kind
from kedge.embedded.tables import core_cells, other_cells, workload_cells
from kedge.embedded.tables.builtin_columns import Column, builtin_columns
from kedge.kube.codec import Untyped

MakeCells: TypeAlias = Callable[[Untyped, datetime], list[Any]]

_CELLS: Mapping[str, MakeCells] = {
    "APIService": other_cells.api_service,
    "CSIDriver": other_cells.csi_driver,
    "CSINode": other_cells.csi_node,
    "CertificateSigningRequest": other_cells.signing_request,
    "ClusterRoleBinding": other_cells.role_binding,
    "ConfigMap": core_cells.config_map,
    "ControllerRevision": workload_cells.controller_revision,
    "CronJob": workload_cells.cron_job,
    "DaemonSet": workload_cells.daemon_set,
    "Deployment": workload_cells.deployment,
    "EndpointSlice": other_cells.endpoint_slice,
    "Endpoints": core_cells.endpoints,
    "Event": core_cells.event,
    "HorizontalPodAutoscaler": other_cells.autoscaler,
    "Ingress": other_cells.ingress,
    "IngressClass": other_cells.ingress_class,
    "Job": workload_cells.job,
    "Lease": other_cells.lease,
    "MutatingWebhookConfiguration": other_cells.webhooks,
    "Namespace": core_cells.namespace,
    "NetworkPolicy": other_cells.network_policy,
    "Node": core_cells.node,
    "PersistentVolume": core_cells.volume,
    "PersistentVolumeClaim": core_cells.claim,
    "Pod": workload_cells.pod,
    "PodDisruptionBudget": other_cells.budget,
    "PodTemplate": workload_cells.pod_template,
    "PriorityClass": other_cells.priority_class,
    "ReplicaSet": workload_cells.replica_set,
    "ReplicationController": workload_cells.replication_controller,
    "ResourceQuota": core_cells.quota,
    "RoleBinding": other_cells.role_binding,
    "RuntimeClass": other_cells.runtime_class,
    "Scale": other_cells.scale,
    "Secret": core_cells.secret,
    "Service": core_cells.service,
    "ServiceAccount": core_cells.service_account,
    "StatefulSet": workload_cells.stateful_set,
    "StorageClass": other_cells.storage_class,
    "ValidatingAdmissionPolicy": other_cells.policy,
    "ValidatingAdmissionPolicyBinding": other_cells.policy_binding,
    "ValidatingWebhookConfiguration": other_cells.webhooks,
    "VolumeAttachment": other_cells.attachment,
}


def columns(kind: Kind) -> Sequence[Column]:
    """The column definitions of a kind."""
    return kind.custom.columns if kind.custom else builtin_columns(kind.resource.kind)


def cells(kind: Kind, obj: Untyped, now: datetime) -> list[Any]:
    """An object's cells, one for each column."""
    if kind.custom:
        return kind.custom.cells(obj, now)
    show = _CELLS.get(kind.resource.kind, _any)
    return show(obj, now)


def row_conditions(kind: Kind, obj: Untyped) -> dict[str, Any]:
    """What a row says beside its cells: the condition of a pod that is over (`Completed`)."""
    return workload_cells.pod_marks(obj) if kind.resource.kind == "Pod" else {}


def _any(obj: Untyped, _now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]
