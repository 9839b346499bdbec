"""Cluster: what Nodes, Events, Leases, quotas and limits have beyond their schema."""

from __future__ import annotations

from kedge.embedded.builtin.filling import each, struct
from kedge.embedded.rules import Surroundings, Untyped

_NODE_FACTS = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
_NOT_READY = {"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"}


def _allocatable(status: Untyped) -> Untyped:
    if "allocatable" in status or "capacity" not in status:
        return status
    return {**status, "allocatable": status["capacity"]}


def _limits(limit: Untyped) -> Untyped:
    """Of a container's limits, what is left out follows from what is said: default from max, request from default."""
    if limit.get("type") != "Container":
        return limit
    default = {**limit.get("max", {}), **limit.get("default", {})}
    request = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
    added = {"default": default, "defaultRequest": request}
    if all(limit.get(name, {}) == value for name, value in added.items()):
        return limit
    return {**limit, **{name: value for name, value in added.items() if value}}


complete_node = struct(
    {"spec": {}, "status": {}},
    status=struct(
        {"daemonEndpoints": {}, "nodeInfo": {}},
        daemonEndpoints=struct({"kubeletEndpoint": {"Port": 0}}),
        nodeInfo=struct(dict.fromkeys(_NODE_FACTS, "")),
        then=_allocatable,
    ),
)
complete_event = struct(
    {
        "eventTime": None,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "involvedObject": {},
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    }
)
complete_lease = struct({"spec": {}})
complete_limit_range = struct({"spec": {}}, spec=struct(null=("limits",), limits=each(_limits)))
complete_quota = struct({"spec": {}, "status": {}})
complete_signing_request = struct({"spec": {}, "status": {}})


def begin_node(node: Untyped, _around: Surroundings) -> Untyped:
    """A new node takes no pods until someone says it is ready."""
    taints = node["spec"].get("taints", [])
    if any(taint.get("key") == _NOT_READY["key"] and taint.get("effect") == "NoSchedule" for taint in taints):
        return node
    return {**node, "spec": {**node["spec"], "taints": [*taints, _NOT_READY]}}
