"""Kinds: pods, nodes and what owns pods, as far as those who run them must know them.

`kedge.api` keeps of a workload what a rollout decides on. Whoever makes pods needs the whole template, as written, and
of a pod what a scheduler and a kubelet look at. A template stays a mapping: nobody here has a say in what is in it.
An absent field means its Kubernetes default: a server that fills in defaults and one that does not look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeAlias

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector

Template: TypeAlias = Mapping[str, Any]
"""A pod template, whole: `metadata` and `spec` as written."""


class Selecting(Protocol):
    """A workload: it owns the pods its selector selects."""

    resource: ClassVar[Resource]

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def selector(self) -> LabelSelector | None: ...


class PodCondition(Value, frozen=True, gc=False):
    """One thing a pod says of itself."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    last_probe_time: datetime | None = None
    observed_generation: int | None = None


class Toleration(Value, frozen=True, gc=False):
    """A taint a pod puts up with."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ContainerPort(Value, frozen=True, gc=False):
    """A port a program listens on."""

    container_port: int
    name: str = ""
    protocol: str = "TCP"


class Container(Value, frozen=True, gc=False):
    """One program of a pod."""

    name: str
    image: str = ""
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()


class PodSpec(Value, frozen=True, gc=False):
    """What a pod runs, and where it may. Go writes an empty list as null."""

    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    affinity: Mapping[str, Any] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    readiness_gates: tuple[Mapping[str, str], ...] = ()
    scheduling_gates: tuple[Mapping[str, str], ...] = ()
    scheduler_name: str = "default-scheduler"
    restart_policy: str = "Always"
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""


class PodStatus(Value, frozen=True, gc=False):
    """How a pod is doing. What containers say stays as it is: it is only ever replaced whole."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    host_ip: str = field(name="hostIP", default="")
    host_ips: tuple[Mapping[str, str], ...] = field(name="hostIPs", default=())
    pod_ip: str = field(name="podIP", default="")
    pod_ips: tuple[Mapping[str, str], ...] = field(name="podIPs", default=())
    start_time: datetime | None = None
    init_container_statuses: tuple[Mapping[str, Any], ...] = ()
    container_statuses: tuple[Mapping[str, Any], ...] = ()


class Pod(Value, frozen=True, gc=False):
    """The smallest thing that runs."""

    resource: ClassVar[Resource] = Resource("", "v1", "Pod", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Value, frozen=True, gc=False):
    """What keeps pods off a node."""

    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class NodeSpec(Value, frozen=True, gc=False):
    """Whether a node takes pods."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(Value, frozen=True, gc=False):
    """Where a node is found."""

    type: str
    address: str


class NodeCondition(Value, frozen=True, gc=False):
    """One thing a node says of itself."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class NodeStatus(Value, frozen=True, gc=False):
    """What a node has, and how it is doing: quantities as written."""

    addresses: tuple[NodeAddress, ...] = ()
    allocatable: Mapping[str, int | str] = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()


class Node(Value, frozen=True, gc=False):
    """A machine that runs pods."""

    resource: ClassVar[Resource] = Resource("", "v1", "Node", "nodes", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
