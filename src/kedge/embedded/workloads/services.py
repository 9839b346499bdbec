"""Services of type LoadBalancer: gives them an address, as a cloud would.

    kedge.dev/ready-after: 2s         from asked for to answering; at once unless told
    kedge.dev/never-ready: "true"     no address, and none any more if it had one

kube-controller-manager leaves this to the cloud, so on a cluster without one such a service waits for ever. Addresses
are of the range that is set aside for tests of networks, and the same for the same name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from kedge.api.core import LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus
from kedge.api.times import parse_duration
from kedge.embedded.workloads.view import View
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source

READY_AFTER, NEVER_READY = "kedge.dev/ready-after", "kedge.dev/never-ready"


class LoadBalancers:
    """The load balancers of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._services = view.of(Service)

    def sources(self) -> Iterable[Source]:
        return [self._view.itself(Service)]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._services.get(key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return Outcome.done
        if found.spec.type != "LoadBalancer" or found.metadata.annotations.get(NEVER_READY) == "true":
            if found.status.load_balancer.ingress:
                await self._view.write_status(found, ServiceStatus(load_balancer=LoadBalancerStatus()))
            return Outcome.done
        wait = 0.0 if found.status.load_balancer.ingress else remaining(found, self._view.exact_now())
        if wait > 0:
            return Outcome.again(after=wait)
        await self._view.write_status(found, balanced(found))
        return Outcome.done


def remaining(service: Service, now: datetime) -> float:
    """In how many seconds the load balancer answers. A text that is no duration means at once."""
    born = service.metadata.creation_timestamp or now
    try:
        takes = parse_duration(service.metadata.annotations.get(READY_AFTER, "0"))
    except ValueError:
        takes = timedelta()
    return max(0.0, (born + takes - now).total_seconds())


def balanced(service: Service) -> ServiceStatus:
    """The status of a load balancer that answers."""
    digest = hashlib.blake2s(f"{service.metadata.namespace}/{service.metadata.name}".encode(), digest_size=3).digest()
    address = f"198.{18 + digest[0] % 2}.{digest[1]}.{1 + digest[2] % 254}"
    return ServiceStatus(load_balancer=LoadBalancerStatus(ingress=(LoadBalancerIngress(ip=address, ip_mode="VIP"),)))
