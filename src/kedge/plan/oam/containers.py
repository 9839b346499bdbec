"""Containers: the component types `webservice` and `worker`, as Deployments. They run one container each.

The properties are those of KubeVela's definitions, as far as they say something about the container itself. What is not
known is refused, never dropped: a volume that silently is not there is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from kedge.api.oam.keys import COMPONENT_LABEL
from kedge.plan.fields import Object
from kedge.plan.oam.refused import OamRefused

_Port = Annotated[int, Meta(ge=1, le=65535)]
_Amount = str | int | float


class Port(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A port of a container."""

    port: _Port
    name: str = ""
    protocol: str = "TCP"
    expose: bool = False
    """Whether the Service has it, too."""

    @property
    def shown_name(self) -> str:
        return self.name or f"port-{self.port}"


class Container(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The properties of a worker, and most of those of a webservice."""

    image: str
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Mapping[str, Any], ...] = ()
    cpu: _Amount | None = None
    memory: _Amount | None = None
    replicas: Annotated[int, Meta(ge=0)] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    liveness_probe: Mapping[str, Any] | None = None
    readiness_probe: Mapping[str, Any] | None = None


class WebService(Container, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The properties of a webservice."""

    port: _Port | None = None
    ports: tuple[Port, ...] = ()
    expose_type: str = "ClusterIP"


C = TypeVar("C", bound=Container)
_EXPOSE_TYPES: Final = ("ClusterIP", "NodePort", "LoadBalancer")


def read_worker(component: str, properties: Object) -> Container:
    """The properties of a worker. Refuses what it does not know."""
    return _read(component, "worker", properties, Container)


def read_web_service(component: str, properties: Object) -> WebService:
    """The properties of a webservice. Refuses what it does not know."""
    found = _read(component, "webservice", properties, WebService)
    if found.expose_type not in _EXPOSE_TYPES:
        raise OamRefused(
            f"component {component}: exposeType is {found.expose_type!r}: it is one of {', '.join(_EXPOSE_TYPES)}"
        )
    return found


def deployment(component: str, given: Container) -> Object:
    """The Deployment of a worker or webservice."""
    own = {COMPONENT_LABEL: component}
    template_meta = _filled({"labels": {**given.labels, **own}, "annotations": dict(given.annotations)})
    pod = _filled(
        {
            "containers": [_container(component, given)],
            "imagePullSecrets": [{"name": name} for name in given.image_pull_secrets],
        }
    )
    spec: dict[str, Any] = {
        "selector": {"matchLabels": own},
        "template": {"metadata": template_meta, "spec": pod},
    }
    if given.replicas is not None:  # otherwise nobody sets it: an autoscaler may
        spec["replicas"] = given.replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": component}, "spec": spec}


def service(component: str, given: WebService) -> Object | None:
    """The Service of the ports that are exposed; None if none is."""
    exposed = [port for port in given.ports if port.expose]
    if not exposed:
        return None
    ports = [
        {"name": port.shown_name, "port": port.port, "protocol": port.protocol, "targetPort": port.port}
        for port in exposed
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": component},
        "spec": {"type": given.expose_type, "selector": {COMPONENT_LABEL: component}, "ports": ports},
    }


def _container(component: str, given: Container) -> Object:
    return _filled(
        {
            "name": component,
            "image": given.image,
            "imagePullPolicy": given.image_pull_policy,
            "command": list(given.cmd),
            "args": list(given.args),
            "env": [dict(one) for one in given.env],
            "ports": _ports(given) if isinstance(given, WebService) else [],
            "resources": _resources(given),
            "livenessProbe": given.liveness_probe,
            "readinessProbe": given.readiness_probe,
        }
    )


def _ports(given: WebService) -> list[Object]:
    single: list[Object] = [{"containerPort": given.port}] if given.port is not None and not given.ports else []
    named: list[Object] = [
        {"name": port.shown_name, "containerPort": port.port, "protocol": port.protocol} for port in given.ports
    ]
    return single + named


def _resources(given: Container) -> Object:
    amounts = {"cpu": given.cpu, "memory": given.memory}
    asked = {name: str(amount) for name, amount in amounts.items() if amount is not None}
    return {"limits": asked, "requests": asked} if asked else {}


def _filled(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {name: value for name, value in parts.items() if value}


def _read(component: str, type_name: str, properties: Object, into: type[C]) -> C:
    known = {one.encode_name for one in fields(into)}
    unknown = sorted(set(properties) - known)
    if unknown:
        raise OamRefused(
            f"component {component}: a {type_name} has no property {unknown[0]!r} here, only"
            f" {', '.join(sorted(known))}: leave it out, or give the whole workload with the type raw"
        )
    try:
        return msgspec.convert(properties, into)
    except msgspec.ValidationError as error:
        raise OamRefused(f"component {component}: its properties cannot be read: {error}") from None
