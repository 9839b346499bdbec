"""Observing: a rollout and everything that its next step depends on, read from the server at the same time.

Nothing is changed here: who only asks what would happen (a preview) looks in the same way.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.keys import ABORT, RETRY
from kedge.api.oam.rollout_status import RollingState
from kedge.controllers.batch.external_calls import ExternalCalls
from kedge.controllers.batch.located import Located, NotLocated, RolloutKind
from kedge.controllers.batch.workloads import Referrers, WorkloadAccess
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import NotFound
from kedge.kube.queue import Key
from kedge.plan.batching.moves import Workloads
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.rollout_rules import reference_problems
from kedge.plan.batching.states import ENDED, is_others
from kedge.plan.batching.steps import BatchRolloutInput, RolloutIdentity
from kedge.plan.fields import text

_AT_START: Final = (None, RollingState.locating)
A_MOMENT: Final = 1.0
"""Seconds for which what was read is taken for what is there."""


class Current(Struct, frozen=True):
    """A rollout under reconcile: as it is on the server, and the status it has got to since."""

    rollout: Any
    status: Any

    @property
    def is_written(self) -> bool:
        return bool(self.rollout.status == self.status)


class BatchRolloutObserver:
    """Looks at rollouts of one kind."""

    def __init__(
        self,
        client: Client,
        kind: RolloutKind,
        workloads: WorkloadAccess,
        calls: ExternalCalls,
        referrers: Referrers,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._kind = kind
        self._workloads = workloads
        self._calls = calls
        self._referrers = referrers
        self._clock = clock

    async def look(self, key: Key, current: Current) -> tuple[Current, BatchRolloutInput] | None:
        """A rollout and all that its next step depends on, read at the same time. None if it is gone.

        If the answer about the rollout takes long, pods may have died since the others came: those are read again.
        """
        time = asyncio.get_running_loop().time
        began = time()
        read, seen = await asyncio.gather(self._read(current), self.observe(key, current))
        if read is None:
            return None
        is_same = read.rollout.metadata.resource_version == current.rollout.metadata.resource_version
        return read, seen if is_same and time() - began < A_MOMENT else await self.observe(key, read)

    async def _read(self, current: Current) -> Current | None:
        """The rollout as it is now: somebody may have paused it a moment ago. None if it is gone.

        If a status is still to be written, what it was made from is kept: writing it finds out whether that is so.
        """
        if not current.is_written or current.status.rolling_state in ENDED:
            return current
        meta = current.rollout.metadata
        try:
            found = await self._client.get(self._kind.kind, meta.name, meta.namespace)
        except NotFound:
            return None
        return Current(found, found.status) if found.metadata.uid == meta.uid else None

    async def observe(self, key: Key, current: Current) -> BatchRolloutInput:
        """All that the next step of a rollout depends on, as it is now."""
        rollout, status, kind = current.rollout, current.status, self._kind
        wanted, moving = kind.wanted(rollout), kind.moving(status)
        meta = rollout.metadata
        seen = BatchRolloutInput(
            RolloutIdentity(kind.kind.resource.kind, meta.namespace or "", meta.name, meta.uid, meta.generation),
            kind.plan(rollout),
            status,
            wanted,
            moving,
            is_deleting=meta.deletion_timestamp is not None,
            is_aborted=meta.annotations.get(ABORT) == "true",
            retry=meta.annotations.get(RETRY, ""),
            bad_references=tuple(map(str, reference_problems(rollout))),
        )
        is_over = seen.is_deleting and status.rolling_state is not RollingState.succeeded  # it lets go of workloads
        if status.rolling_state in ENDED and not is_over:
            self._referrers.look(key, None)
            is_failed = status.rolling_state is RollingState.failed
            return await self._with_applications(current, seen) if is_failed else seen
        return await self._with_applications(current, await self._located(key, current, seen))

    async def _with_applications(self, current: Current, seen: BatchRolloutInput) -> BatchRolloutInput:
        found = await self._kind.applications(current.rollout, current.status, seen.workloads)
        return replace(seen, applications=found)

    async def _located(self, key: Key, current: Current, seen: BatchRolloutInput) -> BatchRolloutInput:
        status = _as_known(current.status)
        is_new = status.rolling_state in _AT_START
        if seen.bad_references and (is_new or not seen.moving):
            return seen  # it says nothing of what to look for
        target = seen.wanted if is_new else seen.moving
        if not target:
            return seen  # it ends before it has begun
        answer = await self._kind.locate(current.rollout, status, target)
        if isinstance(answer, NotLocated):
            return replace(seen, wait=answer.wait, problem=answer.problem, writes=answer.writes)
        self._referrers.look(key, answer)
        return await self._with_workloads(seen, answer)

    async def _with_workloads(self, seen: BatchRolloutInput, located: Located) -> BatchRolloutInput:
        moves = moves_for(located.unread)  # before anything is read: nobody is made to read a Secret for another
        if isinstance(moves, str):
            return replace(seen, problem=moves)
        batches = seen.plan.rollout_batches or ()
        lists_pods = any(one.pod_list for one in batches)
        reading = self._workloads.read(located, seen.identity.claim, self._clock, lists_pods=lists_pods)
        namespace, traffic = seen.identity.namespace, seen.plan.traffic if located.tells_services_apart else None
        workloads, autoscalers, route, services = await asyncio.gather(
            reading,
            self._calls.autoscalers.read(namespace),
            self._calls.route(namespace, seen.plan, seen.status),
            self._workloads.services(namespace, traffic),
        )
        if problem := _another_object(located, workloads):
            return replace(seen, problem=problem)
        found = replace(seen, workloads=workloads, moves=moves, route=route)
        return replace(found, autoscalers=autoscalers, services=services)


def _as_known(status: Any) -> Any:
    """A status as far as it says where the workloads are: that of another controller does not."""
    return replace(status, rolling_state=RollingState.locating) if is_others(status) else status


def _another_object(located: Located, found: Workloads) -> str:
    """Whether a workload is not the very one that is meant."""
    meant = {place.ref: place.uid for place in (located.target, *located.sources) if place.uid}
    for one in (found.target, *found.sources):
        uid = text(one.obj, "metadata", "uid")
        if one.ref in meant and uid not in ("", meant[one.ref]):
            return f"{one.ref} has the uid {uid}, and the one with the uid {meant[one.ref]} is meant"
    return ""
