"""Cluster: an API server and its housekeeping in one process; with no controllers for workloads, and no nodes.

cluster = EmbeddedCluster("cluster-1", clock=SystemClock(), rng=Random(1))
cluster.start()
client = Client(cluster.transport())
"""

from __future__ import annotations

from random import Random

from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.keeping.keeper import Keeper
from kedge.embedded.server import Server
from kedge.kube.clock import Clock


class EmbeddedCluster:
    """One cluster. All that is random in it comes from `rng`; `authority` (PEM) is what its pods are told to trust."""

    def __init__(self, name: str, *, clock: Clock, rng: Random, authority: str = "") -> None:
        self.name = name
        self.server = Server(clock=clock, rng=child(rng))
        self._keeper = Keeper(self.server, rng=child(rng), authority=authority)
        self._rng = child(rng)

    def start(self) -> None:
        """Keep house from now on. Needs a running event loop."""
        self._keeper.start()

    def stop(self) -> None:
        """Leave everything as it is, and cut off who is connected."""
        self._keeper.stop()
        self.server.stop()

    def transport(self) -> InProcessTransport:
        """A way to its API, with no socket between."""
        return InProcessTransport(self.server, rng=child(self._rng))


def child(rng: Random) -> Random:
    """Chance of its own, drawn from another: what one user of it does not change what others get."""
    return Random(rng.getrandbits(64))
