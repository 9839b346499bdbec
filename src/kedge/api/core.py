"""The core group, as far as Kedge reads it; its pods and nodes are in `pods`.

A counter that a server leaves out when it is zero is 0 here; a field that may be absent for a reason is None. Secrets
carry no data on purpose: what is never read cannot leak.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.times import MicroTime


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


class PersistentVolumeClaim(Value, frozen=True, gc=False):
    """That storage is claimed, and for whom."""

    resource: ClassVar[Resource] = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class ServicePort(Value, frozen=True, gc=False):
    """One port a service answers on."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str | None = None
    app_protocol: str | None = None


class ServiceSpec(Value, frozen=True, gc=False):
    """How a service is reached. No selector is not the same as an empty one."""

    type: str = "ClusterIP"
    cluster_ip: str = field(name="clusterIP", default="")
    cluster_ips: tuple[str, ...] = field(name="clusterIPs", default=())
    ip_families: tuple[str, ...] = ("IPv4",)
    selector: Mapping[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False

    @property
    def is_headless(self) -> bool:
        return self.cluster_ip in ("", "None")


class LoadBalancerIngress(Value, frozen=True, gc=False):
    """One address of a load balancer."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str = ""


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


class Endpoints(Value, frozen=True, gc=False):
    """The pods behind a service, in the older form. Go writes an empty list as null."""

    resource: ClassVar[Resource] = Resource("", "v1", "Endpoints", "endpoints")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    subsets: tuple[Mapping[str, Any], ...] | None = None


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
