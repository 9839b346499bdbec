"""Which pods are behind a service, in both forms the API has for that. Pure.

A pod counts if it has an address and has not come to its end; one without a node only if the service wants addresses
that are not ready. Pods that lack a named port are there for the ports they have. A slice holds pods with the same
ports, a hundred at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api.core import Endpoints, Service, ServicePort
from kedge.api.pods import Node, Pod
from kedge.api.policy import EndpointSlice
from kedge.plan.workloads import pods

MANAGED_BY, SLICE_MANAGER = "endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"
SERVICE_NAME, HEADLESS = "kubernetes.io/service-name", "service.kubernetes.io/headless"
ENDPOINTS_MANAGED_BY, ENDPOINTS_MANAGER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
CHANGED = "endpoints.kubernetes.io/last-change-trigger-time"
ZONE = "topology.kubernetes.io/zone"
MOST = 100
Port: TypeAlias = dict[str, Any]
Ports: TypeAlias = tuple[tuple[tuple[str, Any], ...], ...]
_RESERVED = (MANAGED_BY, SERVICE_NAME, HEADLESS)


class Slice(Struct, frozen=True):
    """What one slice should hold."""

    family: str
    ports: tuple[Port, ...] = ()
    endpoints: tuple[Mapping[str, Any], ...] = ()


class Behind(Struct, frozen=True):
    """One pod behind a service, and the node it is on."""

    pod: Pod
    node: Node | None


def behind(service: Service, found: Iterable[Pod], nodes: Mapping[str, Node]) -> list[Behind]:
    """The pods that have a place in slices, by name."""
    there = [Behind(pod, nodes.get(pod.spec.node_name)) for pod in found if _has_address(pod)]
    placed = [one for one in there if one.node is not None or service.spec.publish_not_ready_addresses]
    return sorted(placed, key=lambda one: one.pod.metadata.name)


def slices(service: Service, there: Sequence[Behind]) -> list[Slice]:
    """What the slices of a service should hold; of a family without pods there is one that is empty."""
    return [one for family in service.spec.ip_families for one in _of_family(service, family, there)]


def match(
    wanted: Iterable[Slice], existing: Iterable[EndpointSlice]
) -> list[tuple[Slice | None, EndpointSlice | None]]:
    """Each wanted slice with the existing one it is to become: one with the same ports, or else any of its family."""
    left = sorted(existing, key=lambda one: one.metadata.name)
    todo = list(wanted)
    pairs: list[tuple[Slice | None, EndpointSlice | None]] = []
    for same_ports in (True, False):
        for want in tuple(todo):
            found = next((one for one in left if _may_become(one, want, same_ports=same_ports)), None)
            if found is not None:
                left.remove(found)
                todo.remove(want)
                pairs.append((want, found))
    return [*pairs, *((want, None) for want in todo), *((None, one) for one in left)]


def slice_labels(service: Service) -> dict[str, str]:
    own = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    return {**own, **_headless(service), SERVICE_NAME: service.metadata.name, MANAGED_BY: SLICE_MANAGER}


def endpoints_labels(service: Service) -> dict[str, str]:
    return {**service.metadata.labels, **_headless(service), ENDPOINTS_MANAGED_BY: ENDPOINTS_MANAGER}


def subsets(service: Service, found: Iterable[Pod]) -> list[dict[str, Any]]:
    """The older form: ports that have the same pods behind them stand together."""
    publish = service.spec.publish_not_ready_addresses
    leaving = () if publish else [pod for pod in found if pod.metadata.deletion_timestamp is not None]
    there = [pod for pod in found if _has_address(pod) and pod not in leaving]
    in_order = sorted(there, key=lambda pod: (pod.status.pod_ip, pod.metadata.name))
    if not service.spec.ports:
        return [_subset(service, in_order, [])] if in_order and service.spec.is_headless else []
    by_port: dict[Ports, list[Pod]] = {}
    for pod in in_order:
        for port in _ports(service, pod):
            by_port.setdefault(_key([port]), []).append(pod)
    together: dict[tuple[str, ...], list[Ports]] = {}
    for ports, behind_it in by_port.items():
        together.setdefault(tuple(pod.metadata.name for pod in behind_it), []).append(ports)
    return [
        _subset(service, by_port[same[0]], [dict(port) for one in same for port in one]) for same in together.values()
    ]


def trigger(found: Iterable[Pod], before: Mapping[str, bool]) -> str:
    """When the first of those pods changed that are ready now and were not, or the reverse; empty if none did.

    `before` says which pods, by uid, were shown, and whether as ready.
    """
    changed = [pods.ready_condition(pod) for pod in found if before.get(pod.metadata.uid) is not pods.is_ready(pod)]
    moments = [one.last_transition_time for one in changed if one is not None and one.last_transition_time is not None]
    return stamp(min(moments)) if moments else ""


def stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def shown_in(slice_: EndpointSlice) -> dict[str, bool]:
    """Which pods a slice shows, by uid, and whether they serve."""
    return {one["targetRef"]["uid"]: bool(one["conditions"].get("serving")) for one in slice_.endpoints or ()}


def shown_by(found: Endpoints) -> dict[str, bool]:
    """Which pods the older form shows, by uid, and whether as ready."""
    return {
        one["targetRef"]["uid"]: kind == "addresses"
        for subset in found.subsets or ()
        for kind in ("addresses", "notReadyAddresses")
        for one in subset.get(kind) or ()
    }


def _of_family(service: Service, family: str, there: Sequence[Behind]) -> list[Slice]:
    groups: dict[Ports, list[Mapping[str, Any]]] = {}
    for one in there:
        addresses = [ip for ip in _addresses(one.pod) if (":" in ip) == (family == "IPv6")]
        if addresses:
            groups.setdefault(_key(_slice_ports(service, one.pod)), []).append(_endpoint(service, one, addresses))
    made = [
        Slice(family, tuple(dict(port) for port in ports), tuple(members[start : start + MOST]))
        for ports, members in groups.items()
        for start in range(0, len(members), MOST)
    ]
    return made or [Slice(family)]


def _endpoint(service: Service, one: Behind, addresses: Sequence[str]) -> dict[str, Any]:
    pod = one.pod
    serving, terminating = pods.is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    made: dict[str, Any] = {
        "addresses": list(addresses),
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": _target(pod),
    }
    zone = one.node.metadata.labels.get(ZONE) if one.node else None
    return {**made, **_hostname(service, pod), **_node(pod), **({"zone": zone} if zone else {})}


def _address(service: Service, pod: Pod) -> dict[str, Any]:
    return {"ip": pod.status.pod_ip, **_hostname(service, pod), **_node(pod), "targetRef": _target(pod)}


def _subset(service: Service, there: Iterable[Pod], ports: list[Port]) -> dict[str, Any]:
    publish = service.spec.publish_not_ready_addresses
    good = [_address(service, pod) for pod in there if publish or pods.is_ready(pod)]
    bad = [_address(service, pod) for pod in there if not (publish or pods.is_ready(pod))]
    parts = {"addresses": good, "notReadyAddresses": bad, "ports": ports}
    return {name: part for name, part in parts.items() if part}


def _ports(service: Service, pod: Pod) -> list[Port]:
    """The ports of the service, as the pod has them. A port without a name has none here."""
    found = [(port, _number(port, pod)) for port in service.spec.ports]
    return [_port(port, number) for port, number in found if number is not None]


def _slice_ports(service: Service, pod: Pod) -> list[Port]:
    """In a slice a port without a name has an empty one."""
    return [{"name": "", **port} for port in _ports(service, pod)]


def _port(port: ServicePort, number: int) -> Port:
    made: Port = {"name": port.name} if port.name else {}
    made |= {"port": number, "protocol": port.protocol}
    return {**made, "appProtocol": port.app_protocol} if port.app_protocol else made


def _number(port: ServicePort, pod: Pod) -> int | None:
    target = port.port if port.target_port in (None, 0, "") else port.target_port
    if isinstance(target, int):
        return target
    sidecars = [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    named = (
        each.container_port
        for one in (*(pod.spec.containers or ()), *sidecars)
        for each in one.ports
        if (each.name, each.protocol) == (target, port.protocol)
    )
    return next(named, None)


def _may_become(existing: EndpointSlice, want: Slice, *, same_ports: bool) -> bool:
    ports = [dict(port) for port in existing.ports or ()]
    return existing.address_type == want.family and (not same_ports or ports == list(want.ports))


def _headless(service: Service) -> dict[str, str]:
    return {HEADLESS: ""} if service.spec.is_headless else {}


def _has_address(pod: Pod) -> bool:
    return not pods.is_finished(pod) and bool(_addresses(pod))


def _addresses(pod: Pod) -> list[str]:
    several = [one["ip"] for one in pod.status.pod_ips if one.get("ip")]
    return several or ([pod.status.pod_ip] if pod.status.pod_ip else [])


def _target(pod: Pod) -> dict[str, Any]:
    meta = pod.metadata
    return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


def _hostname(service: Service, pod: Pod) -> dict[str, str]:
    shown = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return {"hostname": pod.spec.hostname} if shown else {}


def _node(pod: Pod) -> dict[str, str]:
    return {"nodeName": pod.spec.node_name} if pod.spec.node_name else {}


def _key(ports: Iterable[Port]) -> Ports:
    return tuple(tuple(port.items()) for port in ports)
