"""Rollouts: the controller of one kind of rollout in batches.

Looks at a rollout and its workloads, asks the plan for the next step, does it, and looks again, until there is
something to wait for. The status is written before anything is done in a new state, so that what is done is always
what the status says: a crash at any moment loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.keys import ABORT, RETRY
from kedge.api.oam.rollout_status import RollingState, RolloutStatus
from kedge.controllers.batch.located import Located, NotLocated, RolloutKind
from kedge.controllers.batch.rollout_events import RolloutEvents
from kedge.controllers.batch.workloads import MANAGER, Referrers, WorkloadAccess
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.plan.batching.moves import Progress
from kedge.plan.batching.progress import moved, reported
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.rollout import Act, Ended, Hold, Identity, Move, RolloutInput, step
from kedge.plan.batching.states import ENDED, Illegal, RolloutEvent
from kedge.plan.moving.wait import Wait

WORKERS: Final = 32
MOST_STEPS: Final = 64
"""Of one reconcile: more is a mistake, and others want their turn."""
_MOVES_ELSEWHERE: Final = (RolloutEvent.located, RolloutEvent.modified, RolloutEvent.finalized, RolloutEvent.retried)
"""Events after which other workloads may be meant than before."""
_AT_START: Final = (None, RollingState.locating)
log = logging.getLogger(__name__)


class Current(Struct, frozen=True):
    """A rollout under reconcile: as it is on the server, and the status it has got to since."""

    rollout: Any
    status: Any

    @property
    def is_written(self) -> bool:
        return bool(self.rollout.status == self.status)


class Rollouts:
    """The controller of all rollouts of one kind."""

    def __init__(
        self,
        cluster: Cluster,
        kind: RolloutKind,
        workloads: WorkloadAccess,
        *,
        clock: Clock,
        finalizer: str,
        namespaces: Sequence[str] = (),
    ) -> None:
        self._kind = kind
        self._client = cluster.client
        self._workloads = workloads
        self._clock = clock
        self._finalizer = finalizer
        self._referrers = Referrers()
        self._events = RolloutEvents(cluster.events)
        places: Sequence[str | None] = namespaces or (None,)
        self._caches = {place: cluster.cache(kind.kind, place, optional=True) for place in places}
        sources = [cluster.watch(cache) for cache in self._caches.values()]
        name = kind.kind.resource.plural
        self.controller = Controller(
            name, self.reconcile, [*sources, *workloads.sources(self._referrers)], workers=WORKERS
        )

    async def reconcile(self, key: Key) -> Outcome:
        cache = self._caches.get(key.namespace) or self._caches[None]
        rollout = cache.get(key.name, key.namespace)
        if rollout is None:
            self._referrers.look(key, None)
            return Outcome.done
        is_deleting = rollout.metadata.deletion_timestamp is not None
        if self._finalizer not in rollout.metadata.finalizers:
            if is_deleting:
                return Outcome.done
            rollout = await self._set_finalizers(rollout, (*rollout.metadata.finalizers, self._finalizer))
        return await self._steps(key, Current(rollout, rollout.status))

    async def _steps(self, key: Key, current: Current) -> Outcome:
        seen: RolloutInput | None = None
        for _ in range(MOST_STEPS):
            if seen is None:
                seen = await self._observe(key, current)
            else:
                seen = replace(seen, status=current.status)
            found = step(seen, self._clock.now())
            match found:
                case Move():
                    current = self._moved(current, found)
                    if found.event in _MOVES_ELSEWHERE:
                        seen = None
                case Act():
                    if current.is_written:
                        await self._act(current, found)
                    else:
                        current = await self._write(current, seen, None)
                    seen = None
                case Hold():
                    await self._write(current, seen, found.wait)
                    self._events.waiting(current.rollout, found.wait)
                    return _again(found.until, self._clock.now())
                case Ended():
                    current = await self._write(current, seen, None)
                    return await self._end(key, current)
        return Outcome.not_yet

    # Observing

    async def _observe(self, key: Key, current: Current) -> RolloutInput:
        rollout, status, kind = current.rollout, current.status, self._kind
        wanted, moving = kind.wanted(rollout), kind.moving(status)
        meta = rollout.metadata
        seen = RolloutInput(
            Identity(kind.kind.resource.kind, meta.namespace or "", meta.name, meta.uid, meta.generation),
            kind.plan(rollout),
            status,
            wanted,
            moving,
            is_deleting=meta.deletion_timestamp is not None,
            is_aborted=meta.annotations.get(ABORT) == "true",
            retry=meta.annotations.get(RETRY, ""),
        )
        if status.rolling_state in ENDED:
            self._referrers.look(key, None)
            return seen
        return await self._located(key, current, seen)

    async def _located(self, key: Key, current: Current, seen: RolloutInput) -> RolloutInput:
        target = seen.wanted if current.status.rolling_state in _AT_START else seen.moving
        answer = await self._kind.locate(current.rollout, current.status, target)
        if isinstance(answer, NotLocated):
            return replace(seen, wait=answer.wait, problem=answer.problem)
        self._referrers.look(key, answer)
        return await self._with_workloads(seen, answer)

    async def _with_workloads(self, seen: RolloutInput, located: Located) -> RolloutInput:
        batches = seen.plan.rollout_batches or ()
        lists_pods = any(one.pod_list for one in batches)
        workloads = await self._workloads.read(located, seen.identity.claim, self._clock, lists_pods=lists_pods)
        moves = moves_for(workloads)
        if isinstance(moves, str):
            return replace(seen, problem=moves)
        return replace(seen, workloads=workloads, moves=moves)

    # Acting

    def _moved(self, current: Current, move: Move) -> Current:
        """The status after an event. An event that cannot happen is a mistake of ours: it changes nothing."""
        status = move.status
        if move.event is RolloutEvent.located:
            wanted = self._kind.wanted(current.rollout)
            status = self._kind.with_moving(current.rollout, status, wanted)
        found = moved(replace(move, status=status), current.status, self._clock.now())
        if isinstance(found, Illegal):
            raise RuntimeError(str(found))  # noqa: TRY004  # no type is wrong
        self._events.moved(current.rollout, move, found)
        return replace(current, status=found)

    async def _act(self, current: Current, act: Act) -> None:
        for write in act.writes:
            await self._workloads.write(write)
            self._events.wrote(current.rollout, write)

    async def _write(self, current: Current, seen: RolloutInput | None, wait: Wait | None) -> Current:
        """Write the status, if it changed."""
        now, meta = self._clock.now(), current.rollout.metadata
        progress = _progress(seen)
        status = reported(current.status, wait, progress, now=now, generation=meta.generation)
        if status == current.rollout.status:
            return replace(current, status=status)
        # Without a state there is no status on the server yet: then fields that hold nothing are written as well.
        before = current.rollout.status
        known = _plain(before) if before.rolling_state is not None else {}
        change = {"status": difference(known, _plain(status))}
        written = await self._client.amend(self._kind.kind, meta, change, manager=MANAGER, subresource="status")
        return Current(written, written.status)

    async def _end(self, key: Key, current: Current) -> Outcome:
        meta = current.rollout.metadata
        self._referrers.look(key, None)
        if meta.deletion_timestamp is not None:
            await self._set_finalizers(current.rollout, tuple(one for one in meta.finalizers if one != self._finalizer))
        return Outcome.done

    async def _set_finalizers(self, rollout: Any, finalizers: tuple[str, ...]) -> Any:
        change = {"metadata": {"finalizers": list(finalizers)}}
        return await self._client.amend(self._kind.kind, rollout.metadata, change, manager=MANAGER)


def _progress(seen: RolloutInput | None) -> Progress | None:
    if seen is None or seen.workloads is None or seen.moves is None:
        return None
    return seen.moves.progress(seen.workloads, seen.status)


def _plain(status: RolloutStatus) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(status, str_keys=True)
    return found


def _again(until: datetime | None, now: datetime) -> Outcome:
    if until is None:
        return Outcome.done
    return Outcome.again(after=max(0.001, (until - now).total_seconds()))
