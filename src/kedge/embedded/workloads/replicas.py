"""ReplicaSets: keeps as many pods as each one wants, and says how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import ReplicaSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.embedded.workloads import owned, replica_plan
from kedge.embedded.workloads.pod_writes import PodWrites, from_template
from kedge.embedded.workloads.replica_plan import Failure, ReplicaPlan
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import ApiError, Conflict, Forbidden, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.workloads import pods

_NO_ACCOUNT: Final = "error looking up service account"


class ObservedReplicaSet(Struct, frozen=True):
    """A ReplicaSet, the pods that count, and how many are on their way out."""

    wanted: ReplicaSet
    active: tuple[Pod, ...]
    terminating: int


class ReplicaSets:
    """The ReplicaSets of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._sets = view.of(ReplicaSet)
        self._writes = PodWrites(view, "replicaset-controller")

    def sources(self) -> Iterable[Source]:
        return self._view.itself(ReplicaSet), self._view.its(Pod, ReplicaSet)

    async def reconcile(self, key: Key) -> Outcome:
        seen = self._sets.get(key.name, key.namespace)
        if seen is None:
            return Outcome.done
        claims = self._view.claims(seen, Pod, lambda pod: not pods.is_finished(pod))
        astray = replace(claims, release=tuple(filter(pods.is_active, claims.release)))
        if astray.adopt or astray.release:
            await owned.settle(self._view.client, seen, astray, manager=MANAGER)
            return Outcome.done  # what became of the pods wakes us again
        active = tuple(filter(pods.is_active, claims.own))
        return await self._act(ObservedReplicaSet(seen, active, len(claims.own) - len(active)))

    async def _act(self, found: ObservedReplicaSet) -> Outcome:
        plan = self._plan(found)
        if plan.create or plan.delete:
            return await self._change_pods(found, plan)
        await self._say(found)
        wait = pods.next_available(found.active, found.wanted.spec.min_ready_seconds, self._view.exact_now())
        return Outcome.done if wait is None else Outcome.again(after=wait)

    def _plan(self, found: ObservedReplicaSet) -> ReplicaPlan:
        wanted = found.wanted
        if wanted.metadata.deletion_timestamp is not None:
            return ReplicaPlan(0, ())
        related = self._related(wanted) if len(found.active) > wanted.replicas else ()
        return replica_plan.plan(wanted.replicas, found.active, related, self._view.exact_now())

    async def _change_pods(self, found: ObservedReplicaSet, plan: ReplicaPlan) -> Outcome:
        """Make or delete pods. If the server refuses, the status tells why before it is tried again."""
        try:
            for _ in range(plan.create):
                await self._create(found.wanted)
            for pod in plan.delete:
                await self._writes.delete(found.wanted, pod)
        except (Conflict, NotFound):
            raise  # somebody was faster, or the namespace is gone: nothing to tell
        except ApiError as error:
            await self._say(found, Failure("FailedCreate" if plan.create else "FailedDelete", error.message))
            if isinstance(error, Forbidden) and _NO_ACCOUNT in error.message:
                return Outcome.not_yet  # it comes with the namespace, a moment after it
            raise
        return Outcome.done  # the pods wake us again; what they were before is not worth a write

    async def _create(self, seen: ReplicaSet) -> None:
        meta = seen.metadata
        reference = owned.reference_to(seen)
        body = from_template(seen.spec.template, reference, meta.namespace, generate_name=f"{meta.name}-")
        await self._writes.create(seen, body)

    async def _say(self, found: ObservedReplicaSet, failure: Failure | None = None) -> None:
        now = self._view.exact_now()
        status = replica_plan.status(found.wanted, found.active, found.terminating, now, failure)
        await self._view.write_status(found.wanted, status)

    def _related(self, seen: ReplicaSet) -> tuple[Pod, ...]:
        """The pods of every revision of what this ReplicaSet belongs to."""
        owner = controller_of(seen.metadata)
        siblings = self._sets.by(owned.OWNER, owner.uid) if owner else (seen,)
        return tuple(pod for sibling in siblings for pod in self._view.owned_by(sibling, Pod))
