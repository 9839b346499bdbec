"""Pods and nodes of the core group, as far as Kedge reads them.

An absent field means its Kubernetes default: a server that fills in defaults and one that does not look the same. A
member has very many pods: whoever keeps them keeps less of each (`kedge.controllers.member.pods`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

Template: TypeAlias = Mapping[str, Any]
"""A pod template, whole: `metadata` and `spec` as written. Whoever makes pods has no say in what is in it."""


class PodCondition(Observed, frozen=True, gc=False):
    """One thing a pod says of itself."""

    last_probe_time: datetime | None = None


class Toleration(Value, frozen=True, gc=False):
    """A taint a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class ContainerPort(Value, frozen=True, gc=False):
    """A port a container listens on."""

    container_port: int
    name: str = ""
    protocol: str = "TCP"


class Resources(Value, frozen=True, gc=False):
    """What a container asks for and may use: quantities as written."""

    requests: Mapping[str, int | str] = field(default_factory=dict)
    limits: Mapping[str, int | str] = field(default_factory=dict)


class Container(Value, frozen=True, gc=False):
    """One program of a pod."""

    name: str
    image: str = ""
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()


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


class Waiting(Value, frozen=True, gc=False):
    """What a container waits for."""

    reason: str = ""
    message: str = ""


class Running(Value, frozen=True, gc=False):
    """Since when a container runs."""

    started_at: datetime | None = None


class Terminated(Value, frozen=True, gc=False):
    """How a container ended. What it printed last is never read: it may hold anything, passwords too."""

    exit_code: int = field(default_factory=int)  # written even if it is 0
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Value, frozen=True, gc=False):
    """What a container does: one of three things, or nothing yet."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Value, frozen=True, gc=False):
    """How a container is doing."""

    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Value, frozen=True, gc=False):
    """How a pod is doing."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    host_ip: str = field(name="hostIP", default="")
    pod_ip: str = field(name="podIP", default="")
    pod_ips: tuple[Mapping[str, str], ...] = field(name="podIPs", default=())
    start_time: datetime | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


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


class NodeCondition(Observed, frozen=True, gc=False):
    """One thing a node says of itself."""

    last_heartbeat_time: datetime | None = None


class NodeStatus(Value, frozen=True, gc=False):
    """What a node has, and how it is doing: quantities as written."""

    addresses: tuple[NodeAddress, ...] = ()
    capacity: Mapping[str, int | str] = field(default_factory=dict)
    allocatable: Mapping[str, int | str] = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()


class Node(Value, frozen=True, gc=False):
    """A machine that runs pods."""

    resource: ClassVar[Resource] = Resource("", "v1", "Node", "nodes", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
