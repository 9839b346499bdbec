"""Service addresses: where the Service of a webhook leads to.

    addresses = ServiceAddresses(store, {"default/hooks": ("127.0.0.1", 8443)})

Somebody who runs a webhook beside an embedded server says where it listens: here, or in the annotation
`kedge.dev/address: 127.0.0.1:8443` of the Service. Otherwise a Service leads to one of its ready endpoints, as with
kube-apiserver and aggregator routing; which is of use where pods have addresses: in a simulation, whose `Outbound`
answers in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kedge.api.admission import ServiceReference
from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.store import Store, key_of, part
from kedge.kube.codec import Untyped

Address: TypeAlias = tuple[str, int]
ADDRESS = "kedge.dev/address"

_SERVICES = Kind(Resource("", "v1", "Service", "services"))
_SLICES = Kind(Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"))
_SERVICE_NAME = "kubernetes.io/service-name"


class Unresolved(Exception):
    """A Service that leads nowhere; the message says why, as kube-apiserver does."""


class ServiceAddresses:
    """The addresses of the Services of one server. Those in `known`, by namespace and name, come first."""

    def __init__(self, store: Store, known: Mapping[str, Address] | None = None) -> None:
        self._store = store
        self._known = dict(known or {})

    def resolve(self, service: ServiceReference) -> Address:
        """Where a Service leads to. Raises `Unresolved`."""
        key = key_of(service.namespace, service.name)
        if found := self._known.get(key):
            return found
        stored = self._store.all(_SERVICES).get(key)
        if stored is None:
            raise Unresolved(f'service "{service.name}" not found')
        found_service = stored.decode()
        if annotated := found_service["metadata"].get("annotations", {}).get(ADDRESS):
            return _annotated(annotated)
        port = _port_name(service, found_service)
        address = next(self._ready(service, port), None)
        if address is None:
            raise Unresolved(f'no endpoints available for service "{service.name}"')
        return address

    def _ready(self, service: ServiceReference, port: str) -> Iterator[Address]:
        for version in self._store.all(_SLICES).at(self._store.number).within(f"{service.namespace}/"):
            if version.labels.get(_SERVICE_NAME) == service.name:
                yield from _ready_addresses(version.decode(), port)


def _annotated(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not (host and port.isdecimal()):
        raise Unresolved(f'annotation {ADDRESS} is "{text}", not a host and a port: 127.0.0.1:8443')
    return host.strip("[]"), int(port)


def _port_name(service: ServiceReference, stored: Untyped) -> str:
    """The name of the wanted port, by which endpoints know it."""
    ports = part(stored, "spec").get("ports") or []
    names = [str(one.get("name", "")) for one in ports if one.get("port") == service.port]
    if not names:
        raise Unresolved(f'no service port {service.port} found for service "{service.name}"')
    return names[0]


def _ready_addresses(endpoints: Untyped, port: str) -> Iterator[Address]:
    numbers = [one["port"] for one in endpoints.get("ports") or [] if one.get("name", "") == port and "port" in one]
    for endpoint in endpoints.get("endpoints") or []:
        if part(endpoint, "conditions").get("ready") is not False and numbers:
            yield endpoint["addresses"][0], numbers[0]
