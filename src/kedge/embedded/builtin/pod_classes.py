"""Pod classes: defaults and validation of PriorityClasses and RuntimeClasses, and what a RuntimeClass adds to a pod."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.api.resource import Resource
from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.builtin.quantities import quantity_must_not_be_negative
from kedge.embedded.causes import IMMUTABLE, forbidden, invalid_value, must_be_one_of, required_value
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

default_priority_class = struct({"value": 0, "preemptionPolicy": "PreemptLowerPriority"})

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
}


def priority_class_problems(priority: Untyped) -> Iterator[Cause]:
    """What is wrong with a PriorityClass: high values and `system-` names are reserved."""
    name, value = priority["metadata"].get("name", ""), priority["value"]
    if name.startswith("system-"):
        if name not in SYSTEM_PRIORITIES:
            why = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            yield forbidden("metadata.name", why)
    elif value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    yield from must_be_one_of("preemptionPolicy", priority["preemptionPolicy"], ("PreemptLowerPriority", "Never"))


def priority_class_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old["value"] != new["value"]:
        yield forbidden("value", "may not be changed in an update.")
    if old["preemptionPolicy"] != new["preemptionPolicy"]:
        yield invalid_value("preemptionPolicy", new["preemptionPolicy"], IMMUTABLE)


def runtime_class_problems(runtime: Untyped) -> Iterator[Cause]:
    """What is wrong with a RuntimeClass."""
    if not runtime.get("handler"):
        yield required_value("handler")
    else:
        yield from checks.label("handler", runtime["handler"])
    for name, text in runtime.get("overhead", {}).get("podFixed", {}).items():
        yield from quantity_must_not_be_negative(f"overhead.limits[{name}]", text)  # as Kubernetes calls it


def runtime_class_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old.get("handler") != new.get("handler"):
        yield invalid_value("handler", new.get("handler", ""), IMMUTABLE)


_RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)


class RuntimeClassRefused(Exception):
    """The pod cannot have that RuntimeClass; says why."""


def with_runtime_class(spec: Untyped, context: AdmissionContext) -> Untyped:
    """A new pod's spec with the overhead and scheduling of its RuntimeClass; raises RuntimeClassRefused."""
    name = spec.get("runtimeClassName")
    found = context.find(_RUNTIME_CLASSES, "", name) if name else {}
    if found is None:
        raise RuntimeClassRefused(f'pod rejected: RuntimeClass "{name}" not found')
    overhead = found.get("overhead", {}).get("podFixed", {})
    if spec.get("overhead") and not overhead:
        raise RuntimeClassRefused("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if spec.get("overhead", overhead) != overhead:
        raise RuntimeClassRefused("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    placed = _placed(spec, found.get("scheduling", {}))
    return {**placed, "overhead": overhead} if overhead else placed


def _placed(spec: Untyped, scheduling: Untyped) -> Untyped:
    if not scheduling:
        return spec
    own, nodes = spec.get("nodeSelector", {}), scheduling.get("nodeSelector", {})
    for key, value in nodes.items():
        if own.get(key, value) != value:
            why = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own[key]}"
            raise RuntimeClassRefused(f"conflict: {why}")
    tolerated = spec.get("tolerations", [])
    more = [one for one in scheduling.get("tolerations", []) if one not in tolerated]
    return {**spec, "nodeSelector": {**own, **nodes}, "tolerations": [*tolerated, *more]}
