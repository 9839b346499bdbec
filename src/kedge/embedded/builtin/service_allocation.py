"""Service allocation: the cluster addresses and node ports of Services, from the ranges of one server.

Gives the lowest free one. The first ones of each range are left to Services that ask for them explicitly, as in
Kubernetes. Refuses what is in use, or outside the range. Looks at every Service: ranges are small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from ipaddress import IPv4Network

from kedge.api.resource import Resource
from kedge.embedded.builtin.checks import is_address
from kedge.embedded.builtin.services import has_address, has_health_port, has_node_ports
from kedge.embedded.causes import invalid_value
from kedge.embedded.kind_rules import AdmissionContext
from kedge.embedded.statuses import Refused, invalid
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

SERVICES = Resource("", "v1", "Service", "services")
NETWORK = IPv4Network("10.0.0.0/24")
FIRST_ADDRESS = str(NETWORK[1])  # the API server's own
_ADDRESSES = [str(address) for address in NETWORK.hosts()]
_RESERVED_ADDRESSES = 15
_PORTS = range(30000, 32768)
_RESERVED_PORTS = 86


def allocate_for_new(service: Untyped, context: AdmissionContext) -> Untyped:
    """A new Service with its cluster address and node ports."""
    return _allocated(service, _InUse(context, service["metadata"]), {})


def allocate_for_changed(old: Untyped, new: Untyped, context: AdmissionContext) -> Untyped:
    """A changed Service with the addresses and ports that it did not have before."""
    return _allocated(new, _InUse(context, old["metadata"]), old["spec"])


def _allocated(service: Untyped, taken: _InUse, had: Untyped) -> Untyped:
    spec = service["spec"]
    if not has_address(spec):
        return service
    spec = _families(service, spec)
    if spec.get("clusterIP") != "None":
        spec = _with_addresses(service, spec, taken, had)
    else:
        spec = {**spec, "clusterIPs": ["None"]}
    if has_node_ports(spec) and not _all_there(spec, had):
        spec = _with_node_ports(service, spec, taken)
    return {**service, "spec": spec}


class _InUse:
    """Addresses and ports of other Services, read when first needed: most changes need none."""

    def __init__(self, context: AdmissionContext, own: Untyped) -> None:
        self._context = context
        self._own = (own.get("namespace"), own.get("name"))

    @cached_property
    def _others(self) -> list[Untyped]:
        return [one["spec"] for one in self._context.each(SERVICES) if _key(one) != self._own]

    def addresses(self) -> frozenset[str]:
        return frozenset(address for spec in self._others for address in spec.get("clusterIPs", ()))

    def ports(self) -> frozenset[int]:
        return frozenset(number for spec in self._others for number in _ports_of(spec))


def _families(service: Untyped, spec: Untyped) -> Untyped:
    # Without a selector nobody knows which families the endpoints will have: Kubernetes then names both.
    both = spec.get("clusterIP") == "None" and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or ("RequireDualStack" if both else "SingleStack")
    families = spec.get("ipFamilies") or ["IPv4"]
    if both and policy != "SingleStack" and len(families) == 1:
        families = [*families, "IPv6" if families == ["IPv4"] else "IPv4"]
    if not both and (causes := list(_beyond_this_server(policy, families))):
        raise _refused(service, causes)
    return {**spec, "ipFamilyPolicy": policy, "ipFamilies": families}


def _beyond_this_server(policy: str, families: list[str]) -> Iterator[Cause]:
    if policy == "RequireDualStack":
        yield invalid_value("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for index, family in enumerate(families):
        if family == "IPv6":
            yield invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _with_addresses(service: Untyped, spec: Untyped, taken: _InUse, had: Untyped) -> Untyped:
    wanted = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or [""]))
    if wanted and wanted == had.get("clusterIP"):
        return spec
    used = taken.addresses()
    if wanted and is_address(wanted) and (cause := _address_problem(wanted, used)):
        raise _refused(service, [cause])
    if wanted:
        return {**spec, "clusterIP": wanted, "clusterIPs": [wanted]}
    given = _first_free(_ADDRESSES, _RESERVED_ADDRESSES, used)
    if not given:
        raise Refused(500, "InternalError", "Internal error occurred: failed to allocate a serviceIP: range is full")
    return {**spec, "clusterIP": given, "clusterIPs": [given]}


def _address_problem(address: str, used: frozenset[str]) -> Cause | None:
    if ":" in address:
        return invalid_value("spec.clusterIPs[0]", [address], "IPv6 is not configured on this cluster")
    if address not in _ADDRESSES:
        why = "the provided network does not match the current range"
    elif address in used:
        why = "provided IP is already allocated"
    else:
        return None
    return invalid_value("spec.clusterIPs", [address], f"failed to allocate IP {address}: {why}")


def _with_node_ports(service: Untyped, spec: Untyped, taken: _InUse) -> Untyped:
    """With a node port for every port that lacks one; ports of the same number share it."""
    others = taken.ports()
    chosen = {port["port"]: port["nodePort"] for port in reversed(spec.get("ports", [])) if port.get("nodePort")}
    used = {*others, *chosen.values()}
    ports = []
    for index, port in enumerate(spec.get("ports", [])):
        number = port.get("nodePort") or chosen.get(port["port"], 0)
        if number and (why := _port_problem(number, others)):
            raise _refused(service, [invalid_value(f"spec.ports[{index}].nodePort", number, why)])
        if not number and spec.get("allocateLoadBalancerNodePorts", True):
            number = chosen[port["port"]] = _free_port(used)
            used.add(number)
        ports.append({**port, "nodePort": number} if number and number != port.get("nodePort") else port)
    changed = {**spec, "ports": ports} if ports else spec
    if has_health_port(spec) and not spec.get("healthCheckNodePort"):
        changed = {**changed, "healthCheckNodePort": _free_port(used)}
    return changed


def _all_there(spec: Untyped, had: Untyped) -> bool:
    """Whether it has all its node ports, and had them before."""
    if has_health_port(spec) and not spec.get("healthCheckNodePort"):
        return False
    before = {port.get("nodePort") for port in had.get("ports", ())}
    return all(port.get("nodePort") and port["nodePort"] in before for port in spec.get("ports", ()))


def _port_problem(number: int, others: frozenset[int]) -> str:
    if number not in _PORTS:
        return _OUT_OF_RANGE
    return "provided port is already allocated" if number in others else ""


_OUT_OF_RANGE = f"provided port is not in the valid range. The range of valid ports is {_PORTS[0]}-{_PORTS[-1]}"


def _free_port(used: Iterable[int]) -> int:
    if found := _first_free([*map(str, _PORTS)], _RESERVED_PORTS, frozenset(map(str, used))):
        return int(found)
    raise Refused(500, "InternalError", "Internal error occurred: failed to allocate a nodePort: range is full")


def _first_free(all_of_them: list[str], by_name: int, used: frozenset[str]) -> str:
    return next((one for one in [*all_of_them[by_name:], *all_of_them[:by_name]] if one not in used), "")


def _ports_of(spec: Untyped) -> Iterator[int]:
    yield from (port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort"))
    if number := spec.get("healthCheckNodePort"):
        yield number


def _key(obj: Untyped) -> tuple[str | None, str | None]:
    return obj["metadata"].get("namespace"), obj["metadata"].get("name")


def _refused(service: Untyped, causes: Sequence[Cause]) -> Refused:
    return invalid(SERVICES, service["metadata"].get("name", ""), causes)
