"""Everything: the simulated controllers of any number of clusters, as one set.

    workloads = add_workloads(manager, cluster)
    workloads.join(another)

There is one controller for each part (Deployments, kubelet, …), however many clusters join; within it every cluster
has its own instance of the part, over the caches its parts share (`View`). A cluster that the manager removes is gone
from the controllers too, and may join again under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from kedge.embedded.workloads.budgets import Budgets
from kedge.embedded.workloads.clonesets import CloneSets
from kedge.embedded.workloads.daemonsets import DaemonSets
from kedge.embedded.workloads.deployments import Deployments
from kedge.embedded.workloads.endpoints import EndpointKeeper
from kedge.embedded.workloads.exports import ServiceExports
from kedge.embedded.workloads.jobs import Jobs
from kedge.embedded.workloads.kubelet import Kubelet
from kedge.embedded.workloads.nodes import Nodes
from kedge.embedded.workloads.replicas import ReplicaSets
from kedge.embedded.workloads.scheduler import Scheduler
from kedge.embedded.workloads.services import LoadBalancers
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.embedded.workloads.view import View
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source


class Part(Protocol):
    """One controller, for one cluster."""

    def sources(self) -> Iterable[Source]:
        """What wakes its keys."""
        ...

    async def reconcile(self, key: Key) -> Outcome: ...


class MakesPart(Protocol):
    """Makes a part for a cluster: mostly the part's class."""

    def __call__(self, view: View) -> Part: ...


Parts: TypeAlias = Sequence[tuple[str, MakesPart]]

EVERYTHING: Parts = (
    ("deployment", Deployments),
    ("replicaset", ReplicaSets),
    ("statefulset", StatefulSets),
    ("daemonset", DaemonSets),
    ("cloneset", CloneSets),
    ("job", Jobs),
    ("endpoints", EndpointKeeper),
    ("loadbalancer", LoadBalancers),
    ("disruption", Budgets),
    ("scheduler", Scheduler),
    ("kubelet", Kubelet),
    ("node", Nodes),
)

FLEET_NETWORK: Parts = (("serviceexport", ServiceExports),)
"""For clusters that serve ServiceExports: a cache of a kind that is not there never fills."""


class Workloads:
    """The simulated controllers of one manager."""

    def __init__(self, manager: Manager, parts: Parts = EVERYTHING) -> None:
        self._clock = manager.clock
        self._parts = [_Shared(name, make) for name, make in parts]
        for part in self._parts:
            manager.add_controller(part.controller)

    def join(self, cluster: Cluster) -> View:
        """Act in this cluster too, from now on."""
        view = View(cluster, self._clock)
        for part in self._parts:
            part.join(cluster.name, view)
        return view


class _Shared:
    """One part in every cluster, behind one controller."""

    def __init__(self, name: str, make: MakesPart) -> None:
        self._make = make
        self._by_cluster: dict[str, Part] = {}
        self.controller = Controller(name, self._reconcile)

    def join(self, cluster: str, view: View) -> None:
        part = self._make(view)
        self._by_cluster[cluster] = part
        for source in part.sources():
            self.controller.add_source(source)

    async def _reconcile(self, key: Key) -> Outcome:
        try:
            return await self._by_cluster[key.cluster].reconcile(key)
        except NotFound:  # it, or one of its own, went while it was looked at: that is no error, and will be seen soon
            return Outcome.again(after=1.0)


def add_workloads(manager: Manager, cluster: Cluster, parts: Parts = EVERYTHING) -> Workloads:
    """Run the simulated controllers for this cluster. Others may join."""
    workloads = Workloads(manager, parts)
    workloads.join(cluster)
    return workloads
