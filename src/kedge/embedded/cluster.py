"""Cluster: an API server and its background controllers in one process; without workload controllers and nodes.

cluster = EmbeddedCluster("cluster-1", clock=SystemClock(), rng=Random(1))
cluster.start()
client = Client(cluster.transport())
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kedge.embedded.admission.service_addresses import Address
from kedge.embedded.background.event_expiry import EventExpiry
from kedge.embedded.background.garbage_collector import GarbageCollector
from kedge.embedded.background.namespace_defaults import NamespaceDefaults
from kedge.embedded.background.namespace_deletion import NamespaceDeletion
from kedge.embedded.background.volume_protection import VolumeProtection
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.clock import Clock
from kedge.kube.connect.outbound import Outbound

DELAY_SECONDS = (0.001, 0.01)  # between a write and what a background controller does about it


class EmbeddedCluster:
    """One cluster. All that is random in it comes from `rng`; `authority` (PEM) is what its pods are told to trust.

    Its admission webhooks are called through `outbound`; those of a Service at its address in `webhook_addresses`.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        rng: Random,
        authority: str = "",
        outbound: Outbound | None = None,
        webhook_addresses: Mapping[str, Address] | None = None,
    ) -> None:
        self.name = name
        self.server = Server(clock=clock, rng=child(rng), outbound=outbound, webhook_addresses=webhook_addresses)
        self._controllers = BackgroundControllers(self.server, rng=child(rng), authority=authority)
        self._rng = child(rng)

    def start(self) -> None:
        """Run the background controllers. Needs a running event loop."""
        self._controllers.start()

    def stop(self) -> None:
        """Stop the controllers and the server, and cut all connections. What is stored stays."""
        self._controllers.stop()
        self.server.stop()

    def transport(self) -> InProcessTransport:
        """A transport to its API, without a socket."""
        return InProcessTransport(self.server, rng=child(self._rng))


class BackgroundControllers:
    """All background controllers of one server. `authority` is the PEM that pods are told to trust."""

    def __init__(self, server: Server, *, rng: Random, authority: str = "") -> None:
        def delay() -> float:
            return rng.uniform(*DELAY_SECONDS)

        self._controllers = (
            GarbageCollector(server, delay),
            NamespaceDeletion(server, delay),
            NamespaceDefaults(server, delay, authority),
            VolumeProtection(server, delay),
            EventExpiry(server),
        )

    def start(self) -> None:
        for controller in self._controllers:
            controller.start()

    def stop(self) -> None:
        for controller in self._controllers:
            controller.stop()


def child(rng: Random) -> Random:
    """A random generator of its own, seeded by another: what one user draws does not change what others get."""
    return Random(rng.getrandbits(64))
