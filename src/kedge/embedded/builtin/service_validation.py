"""Service validation: what is wrong with a Service, and with an update of one."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.services import has_address, has_health_port, has_node_ports, is_external
from kedge.embedded.causes import (
    IMMUTABLE,
    duplicate_value,
    forbidden,
    invalid_value,
    must_be_one_of,
    required_value,
    unsupported_value,
)
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_DAY_SECONDS = 86400


def service_problems(service: Untyped) -> Iterator[Cause]:
    """What is wrong with a Service."""
    spec = service["spec"]
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and has_address(spec):
        yield required_value("spec.ports")
    yield from must_be_one_of("spec.type", spec["type"], _TYPES)
    yield from _by_type(spec, headless=headless)
    yield from _addresses(spec)
    yield from _ports(spec)
    if selector := spec.get("selector"):
        yield from checks.labels("spec.selector", selector)
    yield from _affinity(spec)
    for index, text in enumerate(spec.get("externalIPs", ())):
        yield from _external_address(f"spec.externalIPs[{index}]", text)
    yield from _balancing(spec)
    yield from _traffic(spec)


def service_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The first cluster IP of a Service cannot be changed, unless its type changes."""
    before, after = old["spec"], new["spec"]
    if not (has_address(before) and has_address(after)):
        return
    had, has = before.get("clusterIPs") or [""], after.get("clusterIPs") or [""]
    if had[0] and had[0] != has[0]:
        yield invalid_value("spec.clusterIPs[0]", has, "may not change once set")
    same_type = before["type"] == after["type"] == "LoadBalancer"
    if same_type and before.get("loadBalancerClass") != after.get("loadBalancerClass"):
        yield invalid_value("spec.loadBalancerClass", after.get("loadBalancerClass"), "may not change once set")
    checked = has_health_port(before) and has_health_port(after)
    if checked and before.get("healthCheckNodePort") != after.get("healthCheckNodePort"):
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)


def _by_type(spec: Untyped, *, headless: bool) -> Iterator[Cause]:
    if spec["type"] in ("NodePort", "LoadBalancer") and headless:
        yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")
    if spec["type"] != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name) or (name == "clusterIPs" and spec.get("clusterIP")):
            yield forbidden(f"spec.{name}", "may not be set for ExternalName services")
    # A name of the DNS may end in a dot.
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        yield from checks.subdomain("spec.externalName", name)
    else:
        yield required_value("spec.externalName")


def _addresses(spec: Untyped) -> Iterator[Cause]:
    if not has_address(spec):
        return
    for index, text in enumerate(spec.get("clusterIPs", ())):
        if text != "None":
            yield from checks.address(f"spec.clusterIPs[{index}]", text)
    for index, family in enumerate(spec.get("ipFamilies", ())):
        yield from must_be_one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
    if "ipFamilyPolicy" in spec:
        yield from must_be_one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _FAMILY_POLICIES)


def _ports(spec: Untyped) -> Iterator[Cause]:
    ports = spec.get("ports", ())
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        yield from _port_name(at, port.get("name", ""), names, needed=len(ports) > 1)
        yield from checks.port(f"{at}.port", port.get("port", 0))
        yield from must_be_one_of(f"{at}.protocol", port["protocol"], checks.PROTOCOLS)
        yield from checks.port_or_name(f"{at}.targetPort", port["targetPort"])
        if "appProtocol" in port:
            yield from checks.qualified_name(f"{at}.appProtocol", port["appProtocol"])
        if port.get("nodePort") and not has_node_ports(spec):
            yield forbidden(f"{at}.nodePort", f"may not be used when `type` is '{spec['type']}'")
        key = (port["protocol"], port.get("port", 0))
        if key in numbers:
            yield duplicate_value(at, _port_shown(*key))
        numbers.add(key)


def _port_name(at: str, name: str, names: set[str], *, needed: bool) -> Iterator[Cause]:
    if not name:
        if needed:
            yield required_value(f"{at}.name")
        return
    yield from checks.label(f"{at}.name", name)
    if name in names:
        yield duplicate_value(f"{at}.name", name)
    names.add(name)


def _port_shown(protocol: str, number: int) -> Untyped:
    """A duplicate port as Kubernetes shows it."""
    return {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number, "TargetPort": 0, "NodePort": 0}


def _affinity(spec: Untyped) -> Iterator[Cause]:
    yield from must_be_one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if spec["sessionAffinity"] != "ClientIP":
        return
    seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if not 0 < seconds <= _DAY_SECONDS:
        where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield invalid_value(where, seconds, f"must be greater than 0 and less than {_DAY_SECONDS}")


def _external_address(at: str, text: str) -> Iterator[Cause]:
    if problems := list(checks.address(at, text)):
        yield from problems
        return
    found = ip_address(text)
    if found.is_unspecified:
        yield invalid_value(at, text, "may not be unspecified (0.0.0.0 or ::)")
    elif found.is_loopback:
        yield invalid_value(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    elif found.is_link_local:
        yield invalid_value(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")


def _balancing(spec: Untyped) -> Iterator[Cause]:
    ranges = spec.get("loadBalancerSourceRanges", ())
    if spec["type"] != "LoadBalancer":
        if ranges:
            yield forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCED)
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if name in spec:
                yield forbidden(f"spec.{name}", _ONLY_BALANCED)
        return
    for index, text in enumerate(ranges):
        yield from checks.cidr(f"spec.LoadBalancerSourceRanges[{index}]", text.strip())


def _traffic(spec: Untyped) -> Iterator[Cause]:
    outside = spec.get("externalTrafficPolicy")
    if outside and not is_external(spec):
        yield invalid_value("spec.externalTrafficPolicy", outside, "may only be set for externally-accessible services")
    elif outside:
        yield from must_be_one_of("spec.externalTrafficPolicy", outside, _POLICIES)
    if spec.get("healthCheckNodePort") and not has_health_port(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value("spec.healthCheckNodePort", spec["healthCheckNodePort"], why)
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _POLICIES:
        yield unsupported_value("spec.internalTrafficPolicy", inside, _POLICIES)
    if "trafficDistribution" in spec:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        yield from must_be_one_of("spec.trafficDistribution", spec["trafficDistribution"], known)
