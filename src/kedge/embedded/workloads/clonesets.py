"""CloneSets: creates, replaces, updates in place and deletes their pods, and reports.

Decides in `cloneset_plan` and `cloneset_pods`; this is what is seen, and what is done about it. It does to pods what
the controller of OpenKruise does, on the embedded server and on a real one alike, as soon as the cluster has the CRD
(`kedge.api.crds.kruise_crds`). It looks neither at `scaleStrategy`, priorities, scattering and lifecycle hooks nor at
claim templates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kedge.api.apps import ControllerRevision
from kedge.api.kruise import FAILED_SCALE, FAILED_UPDATE, CloneSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.selector import selects
from kedge.embedded.workloads import cloneset_plan, cloneset_pods, cloneset_status, owned
from kedge.embedded.workloads.cloneset_plan import ClonePlan
from kedge.embedded.workloads.cloneset_status import CloneFailure, ObservedCloneSet
from kedge.embedded.workloads.pod_writes import PodWrites
from kedge.embedded.workloads.replica_plan import by_regret
from kedge.embedded.workloads.revisions import Histories
from kedge.embedded.workloads.served_kind import ServedKind
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import ApiError, Conflict, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.patches import StrategicPatch
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject, owner_of
from kedge.plan.workloads import pods

COMPONENT = "cloneset-controller"
_HASH = "controller.kubernetes.io/hash"


class CloneSets:
    """The CloneSets of one cluster."""

    def __init__(self, view: View, *, partition_rollback: bool = True) -> None:
        """`partition_rollback`: whether updated pods are rolled back when the partition grows."""
        self._view = view
        self._sets = ServedKind(view, CloneSet)
        self._histories = Histories(view, _HASH)
        self._writes = PodWrites(view, COMPONENT)
        self._events = view.events(COMPONENT)
        self._partition_rollback = partition_rollback

    def sources(self) -> Iterable[Source]:
        view = self._view
        their_pods = view.cluster.watch(view.of(Pod), to=self._owners)
        their_revisions = view.cluster.watch(view.of(ControllerRevision), to=self._owners)
        return [self._sets, their_pods, their_revisions]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._sets.get(key.name, key.namespace)
        if found is None or found.selector is None:
            return Outcome.done
        seen = await self._observe(found)
        if seen is None:
            return Outcome.done  # what was adopted or let go wakes this key again
        if found.metadata.deletion_timestamp is None and await self._changed(seen):
            return Outcome.done  # the pods wake this key again; how they were before is not worth a write
        await self._view.write_status(found, cloneset_status.status(seen, self._view.now()))
        await self._histories.drop(cloneset_status.unused_revisions(seen))
        wait = pods.next_available(seen.pods.values(), found.spec.min_ready_seconds, self._view.exact_now())
        return Outcome.done if wait is None else Outcome.again(after=wait)

    def _owners(self, seen: WatchedObject[Any]) -> Iterable[Key]:
        """Whom a pod or a revision wakes: its CloneSet, or all that might adopt it."""
        if controller_of(seen.meta) is not None:
            return owner_of(CloneSet)(seen)
        rivals = self._sets.by(owned.NAMESPACE, seen.meta.namespace or "")
        return [
            Key(seen.cluster, seen.meta.namespace, one.metadata.name)
            for one in rivals
            if selects(one.selector, seen.meta.labels)
        ]

    async def _observe(self, found: CloneSet) -> ObservedCloneSet | None:
        history = await self._histories.of(found)
        claims = self._view.claims(found, Pod, pods.is_active)
        if claims.adopt or claims.release:
            await owned.settle(self._view.client, found, claims, manager=MANAGER)
            return None
        if history is None:
            return None
        update = await self._histories.current(found, history)
        now = self._view.exact_now()
        known = {one.metadata.name: one for one in (*history, update)}
        in_order = by_regret(claims.own, claims.own, now)
        clones = tuple(cloneset_pods.clone_pod(pod, found.spec.min_ready_seconds, now) for pod in in_order)
        current = cloneset_status.current_revision(found, clones, history, update.metadata.name)
        wanted = cloneset_pods.wanted(found, current, update.metadata.name, partition_rollback=self._partition_rollback)
        return ObservedCloneSet(
            set=found,
            pods={pod.metadata.name: pod for pod in claims.own},
            clones=cloneset_pods.with_stuck(found, clones, wanted, known),
            history=tuple(history),
            update=update,
            wanted=wanted,
        )

    # Acting

    async def _changed(self, seen: ObservedCloneSet) -> bool:
        """Whether there was something to do; if it could not be done, the status says why."""
        plan = cloneset_plan.plan(seen.wanted, seen.clones)
        try:
            await self._act(seen, plan)
        except (Conflict, NotFound):
            raise  # somebody was faster, or the namespace is gone: nothing to tell
        except ApiError as error:
            failure = CloneFailure(FAILED_UPDATE if plan.update else FAILED_SCALE, error.message)
            await self._view.write_status(seen.set, cloneset_status.status(seen, self._view.now(), failure))
            raise
        return plan != ClonePlan()

    async def _act(self, seen: ObservedCloneSet, plan: ClonePlan) -> None:
        revisions = seen.revisions
        for name, number in ((seen.wanted.current, plan.create_current), (seen.wanted.update, plan.create_update)):
            for _ in range(number):
                await self._writes.create(seen.set, cloneset_pods.new_pod(seen.set, revisions[name]))
        for one in plan.delete:
            await self._writes.delete(seen.set, seen.pods[one.name])
        for one in plan.update:
            await self._update(seen, seen.pods[one.name], revisions[plan.target])

    async def _update(self, seen: ObservedCloneSet, pod: Pod, target: ControllerRevision) -> None:
        before = seen.revisions.get(pod.metadata.labels.get(cloneset_pods.REVISION, ""))
        images = cloneset_pods.new_images(seen.set, before, target)
        if images is None:
            await self._writes.delete(seen.set, pod)
        else:
            await self._update_in_place(seen.set, pod, cloneset_pods.in_place_change(target.metadata.name, images))

    async def _update_in_place(self, seen: CloneSet, pod: Pod, change: dict[str, Any]) -> None:
        """Not ready first, then new: so no pod is ever new and still ready from before."""
        client, name, namespace = self._view.client, pod.metadata.name, pod.metadata.namespace
        gate = {"status": cloneset_pods.closed_gate(pod, self._view.now())}
        closed = await client.amend(Pod, pod.metadata, gate, subresource="status", manager=MANAGER)
        meta = closed.metadata
        patch = StrategicPatch(change)
        await client.patch(
            Pod, name, patch, namespace, uid=meta.uid, resource_version=meta.resource_version, manager=MANAGER
        )
        revision = change["metadata"]["labels"][cloneset_pods.REVISION]
        message = f"successfully update pod {name} in-place(revision {revision})"
        self._events.normal(seen, "SuccessfulUpdatePodInPlace", message)
