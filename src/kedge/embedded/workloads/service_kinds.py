"""Services, and the two kinds that say which pods are behind one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource


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
    ip_families: tuple[str, ...] = ("IPv4",)
    selector: Mapping[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False

    @property
    def is_headless(self) -> bool:
        return self.cluster_ip in ("", "None")


class LoadBalancer(Value, frozen=True, gc=False):
    """Where a load balancer answers."""

    ingress: tuple[Mapping[str, Any], ...] = ()


class ServiceStatus(Value, frozen=True, gc=False):
    """What has been set up for a service. An empty load balancer is written; None is none yet."""

    load_balancer: LoadBalancer | None = None

    @property
    def is_reachable(self) -> bool:
        return self.load_balancer is not None and bool(self.load_balancer.ingress)


class Service(Value, frozen=True, gc=False):
    """One address for many pods."""

    resource: ClassVar[Resource] = Resource("", "v1", "Service", "services")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class EndpointSlice(Value, frozen=True, gc=False):
    """Some of the pods behind a service. Go writes an empty list as null."""

    resource: ClassVar[Resource] = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    address_type: str = ""
    endpoints: tuple[Mapping[str, Any], ...] | None = None
    ports: tuple[Mapping[str, Any], ...] | None = None


class Endpoints(Value, frozen=True, gc=False):
    """The pods behind a service, in the older form."""

    resource: ClassVar[Resource] = Resource("", "v1", "Endpoints", "endpoints")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    subsets: tuple[Mapping[str, Any], ...] | None = None
