"""Runtimes: what a pod's RuntimeClass brings along: its overhead, and where its nodes are."""

from __future__ import annotations

from kedge.api.resource import Resource
from kedge.embedded.rules import Surroundings, Untyped

_CLASSES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)


class NotToRun(Exception):
    """The pod cannot have that runtime; says why."""


def with_runtime(spec: Untyped, around: Surroundings) -> Untyped:
    """A new pod's spec with what its RuntimeClass says; raises NotToRun."""
    name = spec.get("runtimeClassName")
    found = around.find(_CLASSES, "", name) if name else {}
    if found is None:
        raise NotToRun(f'pod rejected: RuntimeClass "{name}" not found')
    overhead = found.get("overhead", {}).get("podFixed", {})
    if spec.get("overhead") and not overhead:
        raise NotToRun("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if spec.get("overhead", overhead) != overhead:
        raise NotToRun("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    placed = _placed(spec, found.get("scheduling", {}))
    return {**placed, "overhead": overhead} if overhead else placed


def _placed(spec: Untyped, scheduling: Untyped) -> Untyped:
    if not scheduling:
        return spec
    own, nodes = spec.get("nodeSelector", {}), scheduling.get("nodeSelector", {})
    for key, value in nodes.items():
        if own.get(key, value) != value:
            why = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own[key]}"
            raise NotToRun(f"conflict: {why}")
    tolerated = spec.get("tolerations", [])
    more = [one for one in scheduling.get("tolerations", []) if one not in tolerated]
    return {**spec, "nodeSelector": {**own, **nodes}, "tolerations": [*tolerated, *more]}
