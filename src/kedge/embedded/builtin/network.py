"""Network: defaults and validation of NetworkPolicies, Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.label_selectors import selector_problems
from kedge.embedded.causes import IMMUTABLE, forbidden, invalid_value, must_be_one_of, required_value
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause


def _policy_types(spec: Untyped) -> Untyped:
    """A policy without policyTypes is for ingress, and for egress if it has egress rules."""
    if spec.get("policyTypes"):
        return spec
    return {**spec, "policyTypes": ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]}


_default_ports = struct(ports=each(struct({"protocol": "TCP"})))

default_network_policy = struct(
    {"spec": {}},
    spec=struct({"podSelector": {}}, ingress=each(_default_ports), egress=each(_default_ports), then=_policy_types),
)
default_endpoint_slice = struct(
    null=("endpoints", "ports"),
    endpoints=each(struct({"conditions": {}})),
    ports=each(struct({"name": "", "protocol": "TCP"})),
)
default_endpoints = struct(subsets=each(_default_ports))


def network_policy_problems(policy: Untyped) -> Iterator[Cause]:
    spec = policy["spec"]
    yield from selector_problems("spec.podSelector", spec["podSelector"])
    for way, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(way, ())):
            at = f"spec.{way}[{index}]"
            for place, port in enumerate(rule.get("ports", ())):
                yield from _port(f"{at}.ports[{place}]", port)
            for place, peer in enumerate(rule.get(peers, ())):
                yield from _peer(f"{at}.{peers}[{place}]", peer)
    for index, kind in enumerate(spec["policyTypes"]):
        yield from must_be_one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def endpoints_problems(endpoints: Untyped) -> Iterator[Cause]:
    for index, subset in enumerate(endpoints.get("subsets", ())):
        at = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required_value(at, "must specify `addresses` or `notReadyAddresses`")
        for part in ("addresses", "notReadyAddresses"):
            for place, one in enumerate(subset.get(part, ())):
                yield from _endpoint_address(f"{at}.{part}[{place}].ip", one.get("ip", ""))
        ports = subset.get("ports", ())
        for place, port in enumerate(ports):
            where = f"{at}.ports[{place}]"
            if not port.get("name") and len(ports) > 1:
                yield required_value(f"{where}.name")
            elif port.get("name"):
                yield from checks.label(f"{where}.name", port["name"])
            yield from checks.port(f"{where}.port", port.get("port", 0))
            yield from must_be_one_of(f"{where}.protocol", port["protocol"], checks.PROTOCOLS)


def endpoint_slice_problems(found: Untyped) -> Iterator[Cause]:
    kind = found.get("addressType", "")
    if not kind:
        yield required_value("addressType")
    else:
        yield from must_be_one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    for index, endpoint in enumerate(found["endpoints"] or ()):
        at = f"endpoints[{index}].addresses"
        addresses = endpoint.get("addresses") or ()
        if not addresses:
            yield required_value(at, "must contain at least 1 address")
        for place, text in enumerate(addresses):
            if kind in ("IPv4", "IPv6"):
                yield from checks.address(f"{at}[{place}]", text)
            elif kind == "FQDN":
                yield from checks.subdomain(f"{at}[{place}]", text.removesuffix("."))
    for index, port in enumerate(found["ports"] or ()):
        yield from must_be_one_of(f"ports[{index}].protocol", port["protocol"], checks.PROTOCOLS)


def endpoint_slice_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    if old.get("addressType") != new.get("addressType"):
        yield invalid_value("addressType", new.get("addressType", ""), IMMUTABLE)


def _port(at: str, port: Untyped) -> Iterator[Cause]:
    yield from must_be_one_of(f"{at}.protocol", port["protocol"], checks.PROTOCOLS)
    if "port" in port:
        yield from checks.port_or_name(f"{at}.port", port["port"])
    if "endPort" not in port:
        return
    if "port" not in port:
        yield required_value(f"{at}.port", "may not be specified when `port` is not specified")
    elif isinstance(port["port"], str):
        yield invalid_value(f"{at}.endPort", port["port"], "may not be specified when `port` is non-numeric")
    elif port["endPort"] < port["port"]:
        yield invalid_value(f"{at}.endPort", port["port"], "must be greater than or equal to `port`")


def _peer(at: str, peer: Untyped) -> Iterator[Cause]:
    for part in ("podSelector", "namespaceSelector"):
        if part in peer:
            yield from selector_problems(f"{at}.{part}", peer[part])
    if "ipBlock" in peer:
        yield from _block(f"{at}.ipBlock", peer["ipBlock"])
    if not peer:
        yield required_value(at, "must specify a peer")
    elif "ipBlock" in peer and len(peer) > 1:
        yield forbidden(at, "may not specify both ipBlock and another peer")


def _block(at: str, block: Untyped) -> Iterator[Cause]:
    whole = block.get("cidr", "")
    if not whole:
        yield required_value(f"{at}.cidr")
        return
    if problems := list(checks.cidr(f"{at}.cidr", whole)):
        yield from problems
        return
    if str(ip_network(whole, strict=False).network_address) != whole.partition("/")[0]:
        yield invalid_value(f"{at}.cidr", whole, "must not have bits set beyond the prefix length")
    for index, text in enumerate(block.get("except", ())):
        where = f"{at}.except[{index}]"
        if problems := list(checks.cidr(where, text)):
            yield from problems
        elif not _is_inside(text, whole):
            yield invalid_value(where, text, "must be a strict subset of `cidr`")


def _is_inside(part: str, whole: str) -> bool:
    inner, outer = ip_network(part, strict=False), ip_network(whole, strict=False)
    return inner.version == outer.version and inner.network_address in outer and inner.prefixlen > outer.prefixlen


def _endpoint_address(at: str, text: str) -> Iterator[Cause]:
    if not checks.is_address(text):
        yield from checks.address(at, text)
        yield invalid_value(at, text, "must be a valid IP address")
        return
    found = ip_address(text)
    if found.is_unspecified:
        yield invalid_value(at, text, f"may not be unspecified ({text})")
    elif found.is_loopback:
        yield invalid_value(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    elif found.is_link_local:
        yield invalid_value(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
