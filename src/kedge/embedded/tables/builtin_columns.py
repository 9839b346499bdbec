"""Built-in columns: the table columns of built-in kinds, as kube-apiserver v1.36 names them.

One line for each kind: the columns in their order; what stands behind ` | ` (or has a `*`) is shown by `-o wide` only.
A `#` after a name means a number, `?` yes or no, `@` a date that the client turns into an age, `=` the name of the
object. A kind that is not here has its name and when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

Column: TypeAlias = dict[str, Any]

_TYPES = {"#": "integer", "?": "boolean", "@": "date"}
_ANY = "Name=, Created At@"
_WORKLOAD = "Containers, Images, Selector"
_TABLE: Mapping[str, str] = {
    "APIService": "Name=, Service, Available, Age",
    "CSIDriver": (
        "Name=, AttachRequired?, PodInfoOnMount?, StorageCapacity?, TokenRequests, RequiresRepublish?, Modes, Age"
    ),
    "CSINode": "Name=, Drivers#, Age",
    "CertificateSigningRequest": "Name=, Age, SignerName, Requestor, RequestedDuration, Condition",
    "ClusterRoleBinding": "Name=, Role, Age | Users, Groups, ServiceAccounts",
    "ConfigMap": "Name=, Data, Age",
    "ControllerRevision": "Name=, Controller, Revision, Age",
    "CronJob": f"Name=, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age | {_WORKLOAD}",
    "DaemonSet": f"Name=, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age | {_WORKLOAD}",
    "Deployment": f"Name=, Ready, Up-to-date, Available, Age | {_WORKLOAD}",
    "EndpointSlice": "Name=, AddressType, Ports, Endpoints, Age",
    "Endpoints": "Name=, Endpoints, Age",
    "Event": "Last Seen, Type, Reason, Object, *Subobject, *Source, Message, *First Seen, *Count, *Name=",
    "HorizontalPodAutoscaler": "Name=, Reference, Targets, MinPods, MaxPods, Replicas, Age",
    "Ingress": "Name=, Class, Hosts, Address, Ports, Age",
    "IngressClass": "Name=, Controller, Parameters, Age",
    "Job": f"Name=, Status, Completions, Duration, Age | {_WORKLOAD}",
    "Lease": "Name=, Holder, Age",
    "MutatingWebhookConfiguration": "Name=, Webhooks#, Age",
    "Namespace": "Name=, Status, Age",
    "NetworkPolicy": "Name=, Pod-Selector, Age",
    "Node": (
        "Name=, Status, Roles, Age, Version | Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime"
    ),
    "PersistentVolume": (
        "Name=, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age"
        " | VolumeMode"
    ),
    "PersistentVolumeClaim": (
        "Name=, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age | VolumeMode"
    ),
    "Pod": "Name=, Ready, Status, Restarts, Age | IP, Node, Nominated Node, Readiness Gates",
    "PodDisruptionBudget": "Name=, Min Available, Max Unavailable, Allowed Disruptions#, Age",
    "PodTemplate": "Name=, Containers, Images, Pod Labels",
    "PriorityClass": "Name=, Value#, Global-Default?, Age, PreemptionPolicy",
    "ReplicaSet": f"Name=, Desired#, Current#, Ready#, Age | {_WORKLOAD}",
    "ReplicationController": f"Name=, Desired#, Current#, Ready#, Age | {_WORKLOAD}",
    "ResourceQuota": "Name=, Request, Limit, Age",
    "RoleBinding": "Name=, Role, Age | Users, Groups, ServiceAccounts",
    "RuntimeClass": "Name=, Handler, Age",
    "Scale": "Name=, Desired#, Available#, Age",
    "Secret": "Name=, Type, Data, Age",
    "Service": "Name=, Type, Cluster-IP, External-IP, Port(s), Age | Selector",
    "ServiceAccount": "Name=, Age",
    "StatefulSet": "Name=, Ready, Age | Containers, Images",
    "StorageClass": "Name=, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    "ValidatingAdmissionPolicy": "Name=, Validations#, ParamKind, Age",
    "ValidatingAdmissionPolicyBinding": "Name=, PolicyName, ParamRef, Age",
    "ValidatingWebhookConfiguration": "Name=, Webhooks#, Age",
    "VolumeAttachment": "Name=, Attacher=, PV, Node, Attached?, Age",
}


@cache
def builtin_columns(kind: str) -> tuple[Column, ...]:
    """The columns of a built-in kind."""
    shown, _, wide = _TABLE.get(kind, _ANY).partition(" | ")
    return (*_columns(shown, 0), *_columns(wide, 1))


def column(name: str, type_: str = "string", *, format_: str = "", priority: int = 0) -> Column:
    """One column definition."""
    return {"name": name, "type": type_, "format": format_, "description": "", "priority": priority}


def _columns(row: str, priority: int) -> list[Column]:
    return [_column(text, priority) for text in row.split(", ") if text]


def _column(text: str, priority: int) -> Column:
    name = text.strip("#?@=*")
    type_ = _TYPES.get(text[-1], "string")
    return column(name, type_, format_="name" if text[-1] == "=" else "", priority=1 if text[0] == "*" else priority)
