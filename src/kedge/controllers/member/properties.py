"""Properties: what a cluster has, and what is left of it: nodes, CPU and memory, and its version.

Capacity and what pods may use of it are summed over the nodes; what is available is that less what pods on nodes ask
for, as long as they have not ended. Printed as Kubernetes prints amounts (`1k`, `1Ti`).
A member may have thousands of nodes and ten times as many pods, so of each the caches keep a few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kedge.api.cluster import PropertyValue, ResourceUsage
from kedge.api.core import Resources
from kedge.api.meta import ObjectMeta, Value
from kedge.api.quantity import Quantity, Units
from kedge.api.resource import Resource
from kedge.kube.cluster import Cluster

NODE_COUNT: Final = "kubernetes-fleet.io/node-count"
VERSION: Final = "k8s.io/k8s-version"
NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_NANO: Final = 10**9


class Amounts(Struct, frozen=True, gc=False):
    """CPU in billionths of a core, memory in bytes. Whole numbers, so that adding up thousands costs nothing."""

    cpu: int = 0
    memory: int = 0
    units: Units = Units.binary
    """In which memory was written, and is printed."""


class NodeStatus(Value, frozen=True, gc=False):
    """What a node has, as written."""

    capacity: Mapping[str, int | str] = field(default_factory=dict)
    allocatable: Mapping[str, int | str] = field(default_factory=dict)


class Node(Value, frozen=True, gc=False):
    """A node, by what it has."""

    resource: ClassVar[Resource] = Resource("", "v1", "Node", "nodes", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: NodeStatus | None = None
    capacity: Amounts = Amounts()
    allocatable: Amounts = Amounts()


class PodContainer(Value, frozen=True, gc=False):
    """What a container asks for."""

    resources: Resources = Resources()


class PodSpec(Value, frozen=True, gc=False):
    """Where a pod runs, and what it asks for."""

    containers: tuple[PodContainer, ...] | None = None
    node_name: str = ""


class Pod(Value, frozen=True, gc=False):
    """A pod, by what it asks for of its node."""

    resource: ClassVar[Resource] = Resource("", "v1", "Pod", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec | None = None
    asks: Amounts = Amounts()


class Properties:
    """What one member has."""

    def __init__(self, member: Cluster) -> None:
        self._nodes = member.cache(Node, transform=node_in_short)
        self._pods = member.cache(Pod, fields=NOT_ENDED, transform=pod_in_short)

    @property
    def are_known(self) -> bool:
        return self._nodes.is_synced and self._pods.is_synced

    async def known(self) -> None:
        """Wait until nodes and pods have been read once."""
        await self._nodes.synced()
        await self._pods.synced()

    def usage(self, now: datetime) -> ResourceUsage:
        nodes = self._nodes.all()
        allocatable = total(node.allocatable for node in nodes)
        return ResourceUsage(
            capacity=printed(total(node.capacity for node in nodes)),
            allocatable=printed(allocatable),
            available=printed(less(allocatable, total(pod.asks for pod in self._pods.all()))),
            observation_time=now,
        )

    def facts(self, version: str, now: datetime) -> dict[str, PropertyValue]:
        """By name; the version only if it is known."""
        found = {NODE_COUNT: str(len(self._nodes))} | ({VERSION: version} if version else {})
        return {name: PropertyValue(value=value, observation_time=now) for name, value in found.items()}


def node_in_short(node: Node) -> Node:
    """The node with its amounts read, and no more."""
    status = node.status or NodeStatus()
    return Node(
        metadata=_who(node.metadata), capacity=amounts(status.capacity), allocatable=amounts(status.allocatable)
    )


def pod_in_short(pod: Pod) -> Pod:
    """The pod with what it asks of its node added up, and no more. One that has no node asks nothing of any."""
    spec = pod.spec or PodSpec()
    containers = (spec.containers or ()) if spec.node_name else ()
    return Pod(metadata=_who(pod.metadata), asks=total(amounts(one.resources.requests) for one in containers))


def _who(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(name=meta.name, namespace=meta.namespace, resource_version=meta.resource_version)


def amounts(written: Mapping[str, int | str]) -> Amounts:
    """CPU and memory out of a list of resources. What cannot be read counts as none: the others still do."""
    cpu, memory = _read(written.get("cpu", 0)), _read(written.get("memory", 0))
    units = memory.units if memory.amount else Units.binary
    return Amounts(int(cpu.amount * _NANO), math.ceil(memory.amount), units)


@lru_cache(4096)  # pods that are alike ask for the same
def _read(text: int | str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError:
        return Quantity(Decimal(0))


def total(found: Iterable[Amounts]) -> Amounts:
    cpu = memory = 0
    units = None
    for one in found:
        cpu += one.cpu
        memory += one.memory
        units = one.units if units is None and one.memory else units
    return Amounts(cpu, memory, units or Units.binary)


def less(there: Amounts, taken: Amounts) -> Amounts:
    """What is left; never less than nothing."""
    return replace(there, cpu=max(0, there.cpu - taken.cpu), memory=max(0, there.memory - taken.memory))


def printed(found: Amounts) -> dict[str, int | str]:
    cpu = Quantity(Decimal(found.cpu).scaleb(-9).normalize())
    memory = Quantity(Decimal(found.memory), found.units)
    return {"cpu": str(cpu), "memory": str(memory)}
