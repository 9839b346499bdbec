"""The core group, as far as Kedge reads it.

A counter that a server leaves out when it is zero is 0 here; a field that may be absent for a reason is None. Secrets
carry no data on purpose: what is never read cannot leak.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import field

from kedge.api.condition import Observed
from kedge.api.meta import ObjectMeta, Value
from kedge.api.microtime import MicroTime
from kedge.api.resource import Resource


class Namespace(Value, frozen=True, gc=False):
    """A room for objects."""

    resource: ClassVar[Resource] = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class ConfigMap(Value, frozen=True, gc=False):
    """Data without secrets."""

    resource: ClassVar[Resource] = Resource("", "v1", "ConfigMap", "configmaps")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    data: Mapping[str, str] = field(default_factory=dict)


class Secret(Value, frozen=True, gc=False):
    """That a secret exists, and of what type it is."""

    resource: ClassVar[Resource] = Resource("", "v1", "Secret", "secrets")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    type: str = ""


class ServiceAccount(Value, frozen=True, gc=False):
    """An identity for programs."""

    resource: ClassVar[Resource] = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class ServicePort(Value, frozen=True, gc=False):
    """One port a service answers on."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str | None = None


class ServiceSpec(Value, frozen=True, gc=False):
    """How a service is reached."""

    type: str = "ClusterIP"
    cluster_ip: str = field(name="clusterIP", default="")
    cluster_ips: tuple[str, ...] = field(name="clusterIPs", default=())
    external_name: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[ServicePort, ...] = ()


class LoadBalancerIngress(Value, frozen=True, gc=False):
    """One address of a load balancer."""

    ip: str = ""
    hostname: str = ""


class LoadBalancerStatus(Value, frozen=True, gc=False):
    """The addresses a load balancer got."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Value, frozen=True, gc=False):
    """What has been set up for a service."""

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(Value, frozen=True, gc=False):
    """One address for many pods."""

    resource: ClassVar[Resource] = Resource("", "v1", "Service", "services")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class ContainerPort(Value, frozen=True, gc=False):
    """A port a container listens on."""

    container_port: int
    name: str = ""


class Resources(Value, frozen=True, gc=False):
    """What a container asks for and may use: quantities as written."""

    requests: Mapping[str, int | str] = field(default_factory=dict)
    limits: Mapping[str, int | str] = field(default_factory=dict)


class Container(Value, frozen=True, gc=False):
    """One program of a pod."""

    name: str
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()


class PodSpec(Value, frozen=True, gc=False):
    """What a pod runs, and where. Go writes no containers as null."""

    containers: tuple[Container, ...] | None = None
    node_name: str = ""
    termination_grace_period_seconds: int | None = None


class TemplateMeta(Value, frozen=True, gc=False):
    """What the pods of a workload are labelled with."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class TemplateContainer(Value, frozen=True, gc=False):
    """Which program the pods of a workload run. No more than that: there are many workloads in a cache."""

    name: str
    image: str = ""


class TemplateSpec(Value, frozen=True, gc=False):
    """What the pods of a workload run. Go writes no containers as null."""

    containers: tuple[TemplateContainer, ...] | None = None


class PodTemplate(Value, frozen=True, gc=False):
    """What the pods of a workload look like."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    spec: TemplateSpec = TemplateSpec()


class ContainerStatus(Value, frozen=True, gc=False):
    """How one container of a pod is doing."""

    name: str
    ready: bool = False
    restart_count: int = 0
    image: str = ""


class PodStatus(Value, frozen=True, gc=False):
    """How a pod is doing."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(name="podIP", default="")
    start_time: datetime | None = None
    conditions: tuple[Observed, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Value, frozen=True, gc=False):
    """The smallest thing that runs."""

    resource: ClassVar[Resource] = Resource("", "v1", "Pod", "pods")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeTaint(Value, frozen=True, gc=False):
    """What keeps pods off a node."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Value, frozen=True, gc=False):
    """Whether a node takes pods."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


class NodeStatus(Value, frozen=True, gc=False):
    """What a node has, and how it is doing: quantities as written."""

    capacity: Mapping[str, int | str] = field(default_factory=dict)
    allocatable: Mapping[str, int | str] = field(default_factory=dict)
    conditions: tuple[Observed, ...] = ()


class Node(Value, frozen=True, gc=False):
    """A machine that runs pods."""

    resource: ClassVar[Resource] = Resource("", "v1", "Node", "nodes", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ObjectReference(Value, frozen=True, gc=False):
    """Which object is meant."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Value, frozen=True, gc=False):
    """Who saw an event."""

    component: str = ""
    host: str = ""


class Event(Value, frozen=True, gc=False):
    """Something that happened to an object, worth telling.

    A recorder fills either the counted fields (`count`, `first_timestamp`, `last_timestamp`, `source`) or `event_time`
    with `action` and `reporting_instance`, which the server then insists on.
    """

    resource: ClassVar[Resource] = Resource("", "v1", "Event", "events")
    involved_object: ObjectReference
    type: str
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    source: EventSource = EventSource()
    event_time: MicroTime | None = None
    action: str | None = None
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
