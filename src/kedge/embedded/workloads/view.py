"""View: one cluster, as its workload controllers share it.

One cache for each kind, with the same indexes for everyone; events signed by the component that tells them; statuses
written as the difference to what was seen, for the object that was seen. Knows a cluster, its client and its caches,
and nothing of the server behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

from msgspec import to_builtins

from kedge.api.meta import Object, Value, controller_of
from kedge.api.pods import Node, Pod
from kedge.api.selector import selects
from kedge.embedded.workloads import owned
from kedge.embedded.workloads.owned import Claims, Selecting
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.events import Recorder
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject, owner_of
from kedge.kube.store import Index

O = TypeVar("O", bound=Object)  # noqa: E741  # an object
MANAGER = "kube-controller-manager"
NODE, ADDRESS = "node", "address"
UNBOUND = ""  # the node of pods that have none


class WithStatus(Protocol):
    """An object that says how it is doing."""

    @property
    def metadata(self) -> Any: ...

    @property
    def status(self) -> Value: ...


class View:
    """The caches of one cluster, and the ways to write to it."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self._clock = clock

    def now(self) -> datetime:
        """The time, in whole seconds: as fine as objects carry it."""
        return self._clock.now().replace(microsecond=0)

    def exact_now(self) -> datetime:
        """The time, for what is measured and not written down."""
        return self._clock.now()

    def events(self, component: str) -> Recorder:
        """Tells what this component does, as Kubernetes' own would."""
        return self.cluster.events.signed(component, combine=True)

    # Reading

    def of(self, kind: type[O]) -> Cache[O]:
        """All objects of a kind, by owner, orphans, and namespace; pods also by node and address."""
        return self.cluster.cache(kind, indexes=cast("Mapping[str, Index[O]]", _INDEXES.get(kind, owned.INDEXES)))

    @property
    def pods(self) -> Cache[Pod]:
        return self.of(Pod)

    @property
    def nodes(self) -> Cache[Node]:
        return self.of(Node)

    def owned_by(self, owner: Object, kind: type[O]) -> tuple[O, ...]:
        """What this object controls, whether or not its selector selects it."""
        return self.of(kind).by(owned.OWNER, owner.metadata.uid)

    def claims(self, workload: Selecting, kind: type[O], when: Callable[[O], bool] | None = None) -> Claims[O]:
        """What of a kind is a workload's, or is to become or to stop being so. `when` says which count at all."""
        orphans = self.of(kind).by(owned.ORPHAN, workload.metadata.namespace or "")
        candidates = (*self.owned_by(workload, kind), *orphans)
        return owned.claims(workload, candidates if when is None else filter(when, candidates))

    # Waking

    def itself(self, kind: type[Object]) -> Source:
        """Each object of the kind wakes itself."""
        return self.cluster.watch(self.of(kind))

    def its(self, kind: type[Object], owner: type[Selecting]) -> Source:
        """Each object of the kind wakes its controller; one that nobody controls, all that might adopt it."""
        controller = owner_of(owner)

        def wakes(seen: WatchedObject[Any]) -> Iterable[Key]:
            if controller_of(seen.meta) is not None:
                return controller(seen)
            rivals = self.of(owner).by(owned.NAMESPACE, seen.meta.namespace or "")
            return [
                Key(seen.cluster, seen.meta.namespace, rival.metadata.name)
                for rival in rivals
                if selects(rival.selector, seen.meta.labels)
            ]

        return self.cluster.watch(self.of(kind), to=wakes)

    # Writing

    async def write_status(
        self, seen: WithStatus, status: Value, *, annotations: Mapping[str, str] | None = None
    ) -> bool:
        """Make this the status of the object that was seen; False if it is already, and nothing was written."""
        has_status = seen.status != type(seen.status)()
        # A first status is written whole: a zero that Kubernetes writes looks as if it were there already.
        change = difference(to_builtins(seen.status) if has_status else {}, to_builtins(status))
        body: dict[str, Any] = {"status": change} if change else {}
        if annotations:
            body["metadata"] = {"annotations": dict(annotations)}
        if not body:
            return False
        meta = seen.metadata
        await self.client.amend(type(seen), meta, body, subresource="status", manager=MANAGER)
        return True


def _by_node(pod: Pod) -> Iterable[str]:
    """Index: the node it is bound to, or that it is bound to none."""
    return (pod.spec.node_name or UNBOUND,)


def _by_address(pod: Pod) -> Iterable[str]:
    """Index: its own address."""
    return (pod.status.pod_ip,) if pod.status.pod_ip else ()


_INDEXES: Mapping[type[Any], Mapping[str, Index[Any]]] = {
    Pod: {**owned.INDEXES, NODE: _by_node, ADDRESS: _by_address},
}
