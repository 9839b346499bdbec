"""DaemonSets: keeps one pod on every node they are meant for, replaces old ones within the budget, and reports.

Decides in `daemon_plan`; this is what is seen, and what is done about it. Unlike kube-controller-manager it does not
wait longer each time a pod of its fails: it remembers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kedge.api.apps import HISTORY_LIMIT, ControllerRevision, DaemonSet, DaemonSetStatus
from kedge.api.numbers import resolve
from kedge.api.pods import Node, Pod
from kedge.embedded.workloads import daemon_plan, daemon_pods
from kedge.embedded.workloads.daemon_plan import Daemon, DaemonPlan, Place
from kedge.embedded.workloads.owned import settle
from kedge.embedded.workloads.pod_writes import PodWrites
from kedge.embedded.workloads.revisions import Histories
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import ApiError
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan.workloads import pods

COMPONENT = "daemonset-controller"


class ObservedDaemonSet(Struct, frozen=True):
    """A set, the nodes, and its pods by name; and its revisions, oldest first."""

    set: DaemonSet
    places: tuple[Place, ...]
    pods: dict[str, Pod]
    daemons: tuple[Daemon, ...]
    history: tuple[ControllerRevision, ...]
    current: ControllerRevision

    @property
    def hash(self) -> str:
        return self.current.metadata.labels.get(daemon_pods.HASH, "")


class DaemonSets:
    """The DaemonSets of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._sets = view.of(DaemonSet)
        self._histories = Histories(view, daemon_pods.HASH)
        self._writes = PodWrites(view, COMPONENT)
        self._events = view.events(COMPONENT)

    def sources(self) -> Iterable[Source]:
        view = self._view
        nodes = view.cluster.watch(view.nodes, to=self._everyone, when=_concerns_daemons)
        return [view.itself(DaemonSet), view.its(Pod, DaemonSet), view.its(ControllerRevision, DaemonSet), nodes]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._sets.get(key.name, key.namespace)
        if found is None or found.selector is None or found.metadata.deletion_timestamp is not None:
            return Outcome.done
        seen = await self._observe(found)
        if seen is None or await self._changed(seen):
            return Outcome.done  # the pods wake this key again
        await self._histories.drop(forgotten(seen))
        await self._view.write_status(found, status(seen))
        wait = pods.next_available(seen.pods.values(), found.spec.min_ready_seconds, self._view.exact_now())
        return Outcome.done if wait is None else Outcome.again(after=wait)

    def _everyone(self, seen: WatchedObject[Node]) -> Iterable[Key]:
        return [Key(seen.cluster, one.metadata.namespace, one.metadata.name) for one in self._sets.all()]

    async def _observe(self, found: DaemonSet) -> ObservedDaemonSet | None:
        view = self._view
        history = await self._histories.of(found)
        claims = view.claims(found, Pod)
        if claims.adopt or claims.release:
            await settle(view.client, found, claims, manager=MANAGER)
            return None
        if history is None:
            return None
        current = await self._histories.current(found, history)
        hashed = current.metadata.labels.get(daemon_pods.HASH, "")
        wait, now = found.spec.min_ready_seconds, view.exact_now()
        return ObservedDaemonSet(
            set=found,
            places=daemon_pods.places(found, view.nodes.all()),
            pods={pod.metadata.name: pod for pod in claims.own},
            daemons=tuple(daemon_pods.daemon(pod, hashed, wait, now) for pod in claims.own),
            history=tuple(history),
            current=current,
        )

    async def _changed(self, seen: ObservedDaemonSet) -> bool:
        """Whether there was something to do; if it could not be done, the status says how things stand."""
        todo = plan(seen)
        try:
            for node in todo.create:
                body = daemon_pods.new_pod(seen.set, node, seen.hash, seen.current.revision)
                await self._writes.create(seen.set, body)
            for one in todo.delete:
                self._tell_of_end(seen.set, one)
                await self._writes.delete(seen.set, seen.pods[one.name])
        except ApiError:
            await self._view.write_status(seen.set, status(seen))
            raise
        return todo != DaemonPlan()

    def _tell_of_end(self, seen: DaemonSet, one: Daemon) -> None:
        where = f"daemon pod {seen.metadata.namespace}/{one.name} on node {one.node}"
        if one.failed:
            self._events.warning(seen, "FailedDaemonPod", f"Found failed {where}, will try to kill it")
        elif one.succeeded:
            self._events.normal(seen, "SucceededDaemonPod", f"Found succeeded {where}, will try to delete it")


def plan(seen: ObservedDaemonSet) -> DaemonPlan:
    """Give every node its pod; when all have, go on with the update."""
    desired = sum(place.should_run for place in seen.places)
    managed = daemon_plan.manage(seen.places, seen.daemons, surge=surge_of(seen.set, 1) > 0)
    if managed != DaemonPlan() or seen.set.spec.update_strategy.type == "OnDelete":
        return managed
    unavailable, surge = unavailable_of(seen.set, desired), surge_of(seen.set, desired)
    if not unavailable and not surge:
        unavailable = 1
    return daemon_plan.roll(seen.places, seen.daemons, max_unavailable=unavailable, max_surge=surge)


def surge_of(seen: DaemonSet, desired: int) -> int:
    """How many nodes may have two pods at once."""
    rolling = seen.spec.update_strategy.rolling_update
    if seen.spec.update_strategy.type == "OnDelete" or rolling is None or rolling.max_surge is None:
        return 0
    return resolve(rolling.max_surge, desired, round_up=True)


def unavailable_of(seen: DaemonSet, desired: int) -> int:
    """How many nodes may be without an available pod."""
    rolling = seen.spec.update_strategy.rolling_update
    if rolling is None or rolling.max_unavailable is None:
        return 1
    return resolve(rolling.max_unavailable, desired, round_up=True)


def status(seen: ObservedDaemonSet) -> DaemonSetStatus:
    """What the set says of itself."""
    counted = daemon_plan.counts(seen.places, seen.daemons)
    return DaemonSetStatus(
        observed_generation=seen.set.metadata.generation,
        desired_number_scheduled=counted.desired,
        current_number_scheduled=counted.current,
        number_misscheduled=counted.misscheduled,
        number_ready=counted.ready,
        number_available=counted.available,
        number_unavailable=counted.unavailable,
        updated_number_scheduled=counted.updated,
    )


def forgotten(seen: ObservedDaemonSet) -> Sequence[ControllerRevision]:
    """The revisions beyond the limit, oldest first; those some pod has are kept, and count."""
    used = {pod.metadata.labels.get(daemon_pods.HASH) for pod in seen.pods.values()}
    old = [one for one in seen.history if one.metadata.name != seen.current.metadata.name]
    limit = seen.set.spec.revision_history_limit
    surplus = max(0, len(old) - (HISTORY_LIMIT if limit is None else limit))
    return [one for one in old if one.metadata.labels.get(daemon_pods.HASH) not in used][:surplus]


def _concerns_daemons(change: Change[Node]) -> bool:
    if change.old is None or change.new is None:
        return True
    old, new = change.old, change.new
    return old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints
