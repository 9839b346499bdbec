"""Cluster kinds: defaults and validation of Nodes, Events, Leases, ResourceQuotas, LimitRanges and signing requests."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.api.numbers import Quantity
from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.quantities import hard_limit_problems as hard_problems
from kedge.embedded.builtin.quantities import resource_name_problems
from kedge.embedded.builtin.scheduling_constraints import EFFECTS
from kedge.embedded.causes import (
    IMMUTABLE,
    duplicate_value,
    forbidden,
    invalid_value,
    must_be_one_of,
    must_not_be_negative,
    required_value,
)
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

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
    """Limits of containers: default comes from max, defaultRequest from default."""
    if limit.get("type") != "Container":
        return limit
    default = {**limit.get("max", {}), **limit.get("default", {})}
    request = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
    added = {"default": default, "defaultRequest": request}
    if all(limit.get(name, {}) == value for name, value in added.items()):
        return limit
    return {**limit, **{name: value for name, value in added.items() if value}}


default_node = struct(
    {"spec": {}, "status": {}},
    status=struct(
        {"daemonEndpoints": {}, "nodeInfo": {}},
        daemonEndpoints=struct({"kubeletEndpoint": {"Port": 0}}),
        nodeInfo=struct(dict.fromkeys(_NODE_FACTS, "")),
        then=_allocatable,
    ),
)
default_event = struct(
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
default_lease = struct({"spec": {}})
default_limit_range = struct({"spec": {}}, spec=struct(null=("limits",), limits=each(_limits)))
default_quota = struct({"spec": {}, "status": {}})
default_signing_request = struct({"spec": {}, "status": {}})


def prepare_new_node(node: Untyped, _context: AdmissionContext) -> Untyped:
    """A new Node has a taint until it is reported ready."""
    taints = node["spec"].get("taints", [])
    if any(taint.get("key") == _NOT_READY["key"] and taint.get("effect") == "NoSchedule" for taint in taints):
        return node
    return {**node, "spec": {**node["spec"], "taints": [*taints, _NOT_READY]}}


_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


def node_problems(node: Untyped) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node["spec"].get("taints", ())):
        at = f"metadata.taints[{index}]"  # where Kubernetes says they are
        key, effect = taint.get("key", ""), taint.get("effect", "")
        yield from checks.qualified_name(f"{at}.key", key)
        yield from checks.label_value(f"{at}.value", taint.get("value", ""))
        if not effect:
            yield required_value(f"{at}.effect")
        else:
            yield from must_be_one_of(f"{at}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            yield _twice(at, taint)
        seen.add((key, effect))


def node_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The pod CIDRs of a Node cannot be changed once they are set."""
    before = old["spec"].get("podCIDRs", [])
    if before and before != new["spec"].get("podCIDRs", []):
        yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


def event_problems(event: Untyped) -> Iterator[Cause]:
    about, own = event["involvedObject"].get("namespace", ""), event["metadata"].get("namespace", "")
    # What has no namespace is told of in the default one.
    if about != own and not (not about and own in ("default", "kube-system")):
        yield invalid_value("involvedObject.namespace", about, "does not match event.namespace")


def lease_problems(lease: Untyped) -> Iterator[Cause]:
    spec = lease["spec"]
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from must_not_be_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def quota_problems(quota: Untyped) -> Iterator[Cause]:
    yield from hard_problems("spec.hard", quota["spec"].get("hard", {}))
    scopes = quota["spec"].get("scopes", [])
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_value("spec.scopes", scopes, "unsupported scope")
    if "BestEffort" in scopes and any(name != "pods" for name in quota["spec"].get("hard", {})):
        yield invalid_value("spec.scopes", scopes, "unsupported scope applied to resource")


def quota_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    before, after = old["spec"].get("scopes"), new["spec"].get("scopes")
    if (before or []) != (after or []):
        yield invalid_value("spec.scopes", after, IMMUTABLE)


def limit_range_problems(limit_range: Untyped) -> Iterator[Cause]:
    types: set[str] = set()
    for index, limit in enumerate(limit_range["spec"]["limits"] or ()):
        at, kind = f"spec.limits[{index}]", limit.get("type", "")
        if kind in types:
            yield duplicate_value(f"{at}.type", kind)
        types.add(kind)
        yield from _limit(at, limit)


def _limit(at: str, limit: Untyped) -> Iterator[Cause]:
    parts = {part: limit.get(part, {}) for part in ("max", "min", "default", "defaultRequest")}
    if limit.get("type") == "Pod":
        for part in ("default", "defaultRequest"):
            if parts.pop(part):
                yield forbidden(f"{at}.{part}", "may not be specified when `type` is 'Pod'")
    for part, amounts in parts.items():
        for name in amounts:
            yield from resource_name_problems(f"{at}.{part}[{name}]", name)
    for name in sorted({name for amounts in parts.values() for name in amounts}):
        yield from _bounds(at, name, {part: amounts[name] for part, amounts in parts.items() if name in amounts})


_BOUNDS = (
    # the lower, the higher, where it is said, of which value, and how they are called
    ("min", "max", "min", "min", "min", "max"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min", "default request"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request", "max"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request", "default limit"),
    ("min", "default", "default", "min", "min", "default"),
    ("default", "max", "default", "max", "default", "max"),
)


def _bounds(at: str, name: str, found: dict[str, str]) -> Iterator[Cause]:
    for low, high, where, of, low_name, high_name in _BOUNDS:
        if low in found and high in found and Quantity.parse(found[low]) > Quantity.parse(found[high]):
            why = f"{low_name} value {found[low]} is greater than {high_name} value {found[high]}"
            yield invalid_value(f"{at}.{where}[{name}]", found[of], why)


def _twice(at: str, taint: Untyped) -> Cause:
    shown = {"Key": taint["key"], "Value": taint.get("value", ""), "Effect": taint["effect"], "TimeAdded": None}
    found = duplicate_value(at, shown)
    return Cause(found.field, f"{found.message}: taints must be unique by key and effect pair", found.reason)
