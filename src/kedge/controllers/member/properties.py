"""Properties: what a cluster has, and what is left of it: nodes, CPU and memory, and its version.

Capacity and what pods may use of it are summed over the nodes; what is available is that less what pods on nodes ask
for, as long as they have not ended. Printed as Kubernetes prints amounts (`1k`, `1Ti`).
A member may have thousands of nodes and ten times as many pods, so of each the caches keep a few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final

from msgspec import field

from kedge.api.cluster import PropertyValue, ResourceUsage
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.controllers.member.amounts import Amounts, amounts, less, printed, total
from kedge.controllers.member.pods import pods_of
from kedge.kube.cluster import Cluster

NODE_COUNT: Final = "kubernetes-fleet.io/node-count"
VERSION: Final = "k8s.io/k8s-version"


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


class Properties:
    """What one member has."""

    def __init__(self, member: Cluster) -> None:
        self._nodes = member.cache(Node, transform=node_in_short)
        self._pods = pods_of(member)

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
    meta = ObjectMeta(name=node.metadata.name, resource_version=node.metadata.resource_version)
    return Node(metadata=meta, capacity=amounts(status.capacity), allocatable=amounts(status.allocatable))
