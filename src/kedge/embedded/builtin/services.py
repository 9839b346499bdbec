"""Services: defaults of a Service, and what it keeps and loses on an update.

Addresses and node ports come from `service_allocation`. There is one IP family, IPv4.
"""

from __future__ import annotations

from typing import Any

from kedge.embedded.builtin.defaulting import each, struct
from kedge.kube.codec import Untyped

_OUTWARD = ("NodePort", "LoadBalancer")
_THREE_HOURS = 10800  # seconds that a client sticks to its endpoint


def _target(port: Untyped) -> Untyped:
    return port if port.get("targetPort") else {**port, "targetPort": port["port"]}


def _sticky(spec: Untyped) -> Untyped:
    if spec["sessionAffinity"] == "None":
        return {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    given = spec.get("sessionAffinityConfig", {}).get("clientIP", {})
    if "timeoutSeconds" in given:
        return spec
    return {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _THREE_HOURS}}}


def _by_type(spec: Untyped) -> Untyped:
    """Defaults that depend on the type."""
    added: Untyped = {}
    if is_external(spec):
        added["externalTrafficPolicy"] = "Cluster"
    if spec["type"] != "ExternalName":
        added["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        added["allocateLoadBalancerNodePorts"] = True
    if "sessionAffinityConfig" in spec or spec["sessionAffinity"] == "ClientIP":
        spec = _sticky(spec)
    missing = {key: value for key, value in added.items() if spec.get(key, "") == ""}
    return {**spec, **missing} if missing else spec


def _balanced(service: Untyped) -> Untyped:
    """The default ipMode of a load balancer address is VIP."""
    ingress = service["status"]["loadBalancer"].get("ingress")
    if not ingress or service["spec"]["type"] != "LoadBalancer":
        return service
    filled = [{**one, "ipMode": "VIP"} if one.get("ip") and "ipMode" not in one else one for one in ingress]
    return (
        service
        if filled == ingress
        else {**service, "status": {**service["status"], "loadBalancer": {"ingress": filled}}}
    )


default_service = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"sessionAffinity": "None", "type": "ClusterIP"},
        ports=each(struct({"port": 0, "protocol": "TCP"}, then=_target)),
        then=_by_type,
    ),
    status=struct({"loadBalancer": {}}),
    then=_balanced,
)


def is_external(spec: Untyped) -> bool:
    """Whether it can be reached from outside the cluster."""
    return spec.get("type") in _OUTWARD or bool(spec.get("externalIPs"))


def has_address(spec: Untyped) -> bool:
    return spec.get("type") != "ExternalName"


def has_node_ports(spec: Untyped) -> bool:
    return spec.get("type") in _OUTWARD


def has_health_port(spec: Untyped) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def prepare_changed_service(old: Untyped, new: Untyped) -> Untyped:
    """A changed Service keeps its addresses and ports, except those that its new type does not have."""
    spec = _kept(old["spec"], _released(old["spec"], new["spec"]))
    if spec is new["spec"] and spec["type"] == "LoadBalancer":
        return new
    status = new["status"] if spec["type"] == "LoadBalancer" else {**new["status"], "loadBalancer": {}}
    return {**new, "spec": spec, "status": status}


def _released(old: Untyped, new: Untyped) -> Untyped:
    """Without unchanged fields of the old type that the new type does not have."""
    gone = [name for had, names in _came_with(old, new) if had for name in names]
    dropped = [name for name in gone if name in new and new[name] == old.get(name)]
    spec = {key: value for key, value in new.items() if key not in dropped} if dropped else new
    if has_node_ports(old) and not has_node_ports(new) and _node_ports(old) == _node_ports(new):
        spec = {**spec, "ports": [_without_node_port(port) for port in spec.get("ports", [])]}
    return spec


def _came_with(old: Untyped, new: Untyped) -> list[tuple[bool, tuple[str, ...]]]:
    return [
        (
            has_address(old) and not has_address(new),
            ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"),
        ),
        (has_health_port(old) and not has_health_port(new), ("healthCheckNodePort",)),
        (
            old.get("type") == "LoadBalancer" and new.get("type") != "LoadBalancer",
            ("allocateLoadBalancerNodePorts", "loadBalancerClass"),
        ),
        (is_external(old) and not is_external(new), ("externalTrafficPolicy",)),
    ]


def _kept(old: Untyped, new: Untyped) -> Untyped:
    """With the allocated fields of the old one, where the new one does not set them."""
    kept: Untyped = {}
    if has_address(old) and has_address(new):
        names = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        kept |= {name: old[name] for name in names if not new.get(name) and name in old}
    if has_health_port(old) and has_health_port(new) and not new.get("healthCheckNodePort"):
        kept["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)
    if has_node_ports(old) and has_node_ports(new):
        ports = _with_node_ports(old, new)
        if ports != new.get("ports", []):
            kept["ports"] = ports
    return {**new, **kept} if kept else new


def _with_node_ports(old: Untyped, new: Untyped) -> list[Untyped]:
    used = [number for number in _node_ports(old) if number in _node_ports(new)]
    by_name = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", [])}
    return [_patched(port, by_name.get(port.get("name", ""), 0), used) for port in new.get("ports", [])]


def _patched(port: Untyped, number: int, used: list[Any]) -> Untyped:
    return port if port.get("nodePort") or not number or number in used else {**port, "nodePort": number}


def _node_ports(spec: Untyped) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports", []) if port.get("nodePort")]


def _without_node_port(port: Untyped) -> Untyped:
    return {key: value for key, value in port.items() if key != "nodePort"}
