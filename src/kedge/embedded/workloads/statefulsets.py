"""StatefulSets: makes, replaces and deletes their pods in order, and reports.

Decides in `stateful_plan` and `stateful_pods`; this is what is seen, and what is done about it. Looks at its pods,
their claims (only where a set has claim templates) and the set's revisions. It makes claims and says whose they are; it
deletes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import Struct, to_builtins

from kedge.api.apps import HISTORY_LIMIT, ControllerRevision, StatefulSet, StatefulSetStatus
from kedge.api.core import PersistentVolumeClaim
from kedge.api.meta import OwnerReference
from kedge.api.pods import Pod
from kedge.embedded.workloads import stateful_plan, stateful_pods
from kedge.embedded.workloads.owned import settle
from kedge.embedded.workloads.revisions import Histories, template_in
from kedge.embedded.workloads.stateful_plan import OrdinalPod, StatefulPlan, Wanted
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import AlreadyExists, ApiError, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.workloads import pods

COMPONENT = "statefulset-controller"
_HASH = "controller.kubernetes.io/hash"


class ObservedStatefulSet(Struct, frozen=True):
    """A set, its pods by ordinal, and its revisions, oldest first; the one it asks for may be none of them yet."""

    set: StatefulSet
    pods: dict[int, Pod]
    ordinal_pods: tuple[OrdinalPod, ...]
    history: tuple[ControllerRevision, ...]
    current: ControllerRevision
    update: ControllerRevision

    @property
    def wanted(self) -> Wanted:
        return stateful_pods.wanted(self.set, self.current.metadata.name, self.update.metadata.name)


class StatefulSets:
    """The StatefulSets of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._sets = view.of(StatefulSet)
        self._histories = Histories(view, _HASH)
        self._events = view.events(COMPONENT)

    def sources(self) -> Iterable[Source]:
        view = self._view
        return [view.itself(StatefulSet), view.its(Pod, StatefulSet), view.its(ControllerRevision, StatefulSet)]

    async def reconcile(self, key: Key) -> Outcome:
        found = self._sets.get(key.name, key.namespace)
        if found is None or not found.selector:
            return Outcome.done
        if found.spec.volume_claim_templates and not self._view.of(PersistentVolumeClaim).is_synced:
            return Outcome.not_yet
        seen = await self._observe(found)
        if seen is None:
            return Outcome.done  # what was adopted or let go wakes this key again
        await self._keep_claims(seen)
        plan = stateful_plan.plan(seen.wanted, seen.ordinal_pods)
        if any(self._must_wait(seen.set, one.ordinal) for one in plan.create):
            return Outcome.not_yet  # for claims that are to go first
        if found.metadata.deletion_timestamp is None and await self._changed(seen, plan):
            return Outcome.done  # the pods wake this key again; how they were before is not worth a write
        await self._view.write_status(found, status(seen))
        await self._histories.drop(forgotten(seen))
        return self._look_again(seen)

    async def _observe(self, found: StatefulSet) -> ObservedStatefulSet | None:
        view = self._view
        history = await self._histories.of(found)
        claims = view.claims(found, Pod, lambda pod: stateful_pods.ordinal_of(found, pod) is not None)
        if claims.adopt or claims.release:
            await settle(view.client, found, claims, manager=MANAGER)
            return None
        if history is None:
            return None
        update = await self._histories.current(found, history)
        named = (one for one in history if one.metadata.name == found.status.current_revision)
        mine = {ordinal: pod for pod in claims.own if (ordinal := stateful_pods.ordinal_of(found, pod)) is not None}
        wait, now = found.spec.min_ready_seconds, view.exact_now()
        return ObservedStatefulSet(
            set=found,
            pods=mine,
            ordinal_pods=tuple(
                stateful_pods.ordinal_pod(mine[ordinal], ordinal, wait, now) for ordinal in sorted(mine)
            ),
            history=tuple(history),
            current=next(named, update),
            update=update,
        )

    async def _changed(self, seen: ObservedStatefulSet, plan: StatefulPlan) -> bool:
        """Whether there was something to do; if it could not be done, the status says how things stand."""
        try:
            await self._act(seen, plan)
        except ApiError:
            await self._view.write_status(seen.set, status(seen))
            raise
        return bool(plan.create or plan.delete)

    async def _act(self, seen: ObservedStatefulSet, plan: StatefulPlan) -> None:
        for ordinal in plan.claims:
            await self._make_claims(seen.set, ordinal)
        for one in plan.create:
            await self._create(seen, one)
        for one in plan.delete:
            await self._delete(seen, seen.pods[one.ordinal])

    async def _create(self, seen: ObservedStatefulSet, one: OrdinalPod) -> None:
        await self._make_claims(seen.set, one.ordinal)
        revision = seen.current if one.revision == seen.current.metadata.name else seen.update
        body = stateful_pods.new_pod(seen.set, template_in(revision), one)
        name = body["metadata"]["name"]
        try:
            await self._view.client.create(Pod, body, manager=MANAGER)
        except AlreadyExists:
            raise  # somebody else's pod is in the way: nothing to tell of the set, only to try again
        except ApiError as error:
            message = f"Create Pod {name} in StatefulSet {seen.set.metadata.name} failed error: {error.message}"
            self._events.warning(seen.set, "FailedCreate", message)
            raise
        self._tell(seen.set, "Create", name)

    async def _delete(self, seen: ObservedStatefulSet, pod: Pod) -> None:
        meta = pod.metadata
        with suppress(NotFound):  # gone is as wanted
            await self._view.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        self._tell(seen.set, "Delete", meta.name)

    async def _make_claims(self, seen: StatefulSet, ordinal: int) -> None:
        there = self._view.of(PersistentVolumeClaim) if seen.spec.volume_claim_templates else None
        for claim in stateful_pods.claims(seen, ordinal):
            name = claim["metadata"]["name"]
            if there is None or there.get(name, seen.metadata.namespace) is not None:
                continue
            try:
                await self._view.client.create(PersistentVolumeClaim, claim, manager=MANAGER)
            except AlreadyExists:
                continue
            pod = f"Pod {seen.metadata.name}-{ordinal} in StatefulSet {seen.metadata.name}"
            self._events.normal(seen, "SuccessfulCreate", f"Create Claim {name} {pod} success")

    async def _keep_claims(self, seen: ObservedStatefulSet) -> None:
        """Have each claim belong to whom the policy says. A pod that stays is said to be updated by that."""
        for one in seen.ordinal_pods:
            pod, surplus = seen.pods[one.ordinal], one.ordinal not in seen.wanted.ordinals
            changes = [
                (claim, owners)
                for claim in self._claims(seen.set, one.ordinal)
                if (owners := stateful_pods.claim_owners(seen.set, pod, claim, surplus=surplus)) is not None
            ]
            for claim, owners in changes:
                await self._give(claim, owners)
            if changes and not surplus and not one.pending:
                self._tell(seen.set, "Update", pod.metadata.name)

    async def _give(self, claim: PersistentVolumeClaim, owners: tuple[OwnerReference, ...]) -> None:
        change = {"metadata": {"ownerReferences": to_builtins(owners) or None}}
        with suppress(NotFound):
            await self._view.client.amend(PersistentVolumeClaim, claim.metadata, change, manager=MANAGER)

    def _claims(self, seen: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
        """The claims of a pod that are there."""
        if not seen.spec.volume_claim_templates:
            return []
        names = [claim["metadata"]["name"] for claim in stateful_pods.claims(seen, ordinal)]
        found = [self._view.of(PersistentVolumeClaim).get(name, seen.metadata.namespace) for name in names]
        return [claim for claim in found if claim is not None]

    def _must_wait(self, seen: StatefulSet, ordinal: int) -> bool:
        name = f"{seen.metadata.name}-{ordinal}"
        return any(stateful_pods.is_left_over(seen, name, claim) for claim in self._claims(seen, ordinal))

    def _tell(self, seen: StatefulSet, verb: str, pod: str) -> None:
        message = f"{verb} Pod {pod} in StatefulSet {seen.metadata.name} successful"
        self._events.normal(seen, f"Successful{verb}", message)

    def _look_again(self, seen: ObservedStatefulSet) -> Outcome:
        wait = pods.next_available(seen.pods.values(), seen.set.spec.min_ready_seconds, self._view.exact_now())
        return Outcome.done if wait is None else Outcome.again(after=wait)


def status(seen: ObservedStatefulSet) -> StatefulSetStatus:
    """What the set says of itself."""
    wanted = seen.wanted
    counted = stateful_plan.counts(seen.ordinal_pods, wanted.current, wanted.update)
    complete = stateful_plan.is_complete(wanted, counted)
    return StatefulSetStatus(
        observed_generation=seen.set.metadata.generation,
        replicas=counted.replicas,
        ready_replicas=counted.ready,
        available_replicas=counted.available,
        current_replicas=counted.updated if complete else counted.current,
        updated_replicas=counted.updated,
        current_revision=wanted.update if complete else wanted.current,
        update_revision=wanted.update,
        collision_count=seen.set.status.collision_count or 0,
    )


def forgotten(seen: ObservedStatefulSet) -> Sequence[ControllerRevision]:
    """The revisions beyond the limit, oldest first. Those in use do not count, and stay."""
    used = {seen.current.metadata.name, seen.update.metadata.name, *(one.revision for one in seen.ordinal_pods)}
    unused = [one for one in seen.history if one.metadata.name not in used]
    limit = seen.set.spec.revision_history_limit
    keep = HISTORY_LIMIT if limit is None else limit
    return unused[: max(0, len(unused) - keep)] if keep >= 0 else ()
