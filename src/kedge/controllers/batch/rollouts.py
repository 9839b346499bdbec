"""Rollouts: the controller of one kind of rollout in batches.

Looks at a rollout and its workloads, asks the plan for the next step, does it, and looks again, until there is
something to wait for. The status is written before anything is done in a new state, so that what is done is always
what the status says: a crash at any moment loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus
from kedge.controllers.batch.external_calls import ExternalCalls
from kedge.controllers.batch.located import RolloutKind
from kedge.controllers.batch.observing import BatchRolloutObserver, Current
from kedge.controllers.batch.rollout_events import RolloutEvents
from kedge.controllers.batch.workloads import MANAGER, Referrers, WorkloadAccess
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import BadRequest, Forbidden, Invalid
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Signal
from kedge.kube.store import Change
from kedge.plan.batching.progress import is_only_reported, moved, reported
from kedge.plan.batching.rollout import step
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.states import ENDED, Illegal, RolloutEvent
from kedge.plan.batching.steps import Act, BatchRolloutInput, Ended, Hold, Move, Note, RouteWrite
from kedge.plan.batching.traffic import LOOK_AGAIN
from kedge.plan.moving.wait import Wait

WORKERS: Final = 32
REPORTS_AFTER: Final = 2.0
"""Seconds after a status until the next one, if nothing but numbers and waits changed."""
MOST_STEPS: Final = 64
"""Of one reconcile: more is a mistake, and others want their turn."""
_MOVES_ELSEWHERE: Final = (
    RolloutEvent.located,
    RolloutEvent.modified,
    RolloutEvent.finalized,
    RolloutEvent.retried,
    RolloutEvent.deleted,
    RolloutEvent.adopted,
)
"""Events after which other workloads may be meant than before."""
_REFUSALS: Final = (Invalid, BadRequest)
AFTER_FORBIDDEN: Final = 30.0
"""Seconds after which what was forbidden is tried again."""
UNWATCHED: Final = 15.0
"""Seconds after which workloads are looked at again that nobody watches."""
_AT_START: Final = (None, RollingState.locating)
log = logging.getLogger(__name__)


def _is_asked_anew(change: Change[Any]) -> bool:
    """Whether a rollout is new or gone, or somebody asks for something else. Its status is written here only."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return bool(
        before.generation != after.generation
        or before.annotations != after.annotations
        or before.deletion_timestamp != after.deletion_timestamp
        or before.finalizers != after.finalizers
        or before.uid != after.uid
    )


def _only_adds(act: Act) -> bool:
    """Whether an act can be decided on what was seen a moment ago: each write names the version that it is for."""
    is_plain = act.call is None and act.query is None and act.route is None
    return is_plain and all(one.resource_version and not one.takes_away for one in act.writes)


def _by_namespace(rollout: Any) -> Iterable[str]:
    return (rollout.metadata.namespace or "",)


_NAMESPACED: Final = {"namespace": _by_namespace}


class Rollouts:
    """The controller of all rollouts of one kind."""

    def __init__(
        self,
        cluster: Cluster,
        kind: RolloutKind,
        workloads: WorkloadAccess,
        calls: ExternalCalls,
        *,
        clock: Clock,
        finalizer: str,
        namespaces: Sequence[str] = (),
    ) -> None:
        self._kind = kind
        self._client = cluster.client
        self._workloads = workloads
        self._calls = calls
        self._answers = Signal(cluster.name)
        self._clock = clock
        self._finalizer = finalizer
        self._referrers = Referrers()
        self._observer = BatchRolloutObserver(self._client, kind, workloads, calls, self._referrers, clock=clock)
        self._events = RolloutEvents(cluster.events)
        self._reports = Throttle(REPORTS_AFTER)
        places: Sequence[str | None] = namespaces or (None,)
        self._caches = {place: cluster.cache(kind.kind, place, indexes=_NAMESPACED, optional=True) for place in places}
        self._cluster = cluster.name
        own = [cluster.watch(cache, when=_is_asked_anew) for cache in self._caches.values()]
        others = [*calls.autoscalers.sources(self._referrers.in_namespace), *kind.sources(self._unfinished)]
        sources = [*own, *workloads.sources(self._referrers), *others, self._answers]
        self.controller = Controller(kind.kind.resource.plural, self.reconcile, sources, workers=WORKERS)

    def _unfinished(self, namespace: str) -> Iterable[tuple[Key, Any]]:
        """The rollouts of a namespace that have not ended."""
        for cache in self._caches.values():
            for one in cache.by("namespace", namespace):
                if one.status.rolling_state not in ENDED:
                    yield Key(self._cluster, namespace, one.metadata.name), one

    async def reconcile(self, key: Key) -> Outcome:
        cache = self._caches[key.namespace if key.namespace in self._caches else None]  # an empty one is false
        rollout = cache.get(key.name, key.namespace)
        if rollout is None:
            self._referrers.look(key, None)
            return Outcome.done
        is_deleting = rollout.metadata.deletion_timestamp is not None
        if self._finalizer not in rollout.metadata.finalizers:
            if is_deleting:
                return Outcome.done
            rollout = await self._set_finalizers(rollout, (*rollout.metadata.finalizers, self._finalizer))
        try:
            return await self._steps(key, Current(rollout, rollout.status))
        except Forbidden as error:
            return await self._forbidden(rollout, error)

    async def _forbidden(self, rollout: Any, error: Forbidden) -> Outcome:
        """Say what may not be done, and try again: somebody has to allow it."""
        meta = rollout.metadata
        found = await self._client.get(self._kind.kind, meta.name, meta.namespace)
        wait = waiting_for("the rollout", BatchCode.forbidden, error.message)
        current = await self._write(Current(found, found.status), None, wait)
        self._events.waiting(current.rollout, wait)
        return Outcome.again(after=AFTER_FORBIDDEN)

    async def _steps(self, key: Key, current: Current) -> Outcome:
        """Step after step, until there is something to wait for."""
        seen: BatchRolloutInput | None = None
        for _ in range(MOST_STEPS):
            if seen is None:
                looked = await self._observer.look(key, current)
                if looked is None:
                    return Outcome.not_yet
                current, seen = looked
            seen = replace(seen, status=current.status)
            found = step(seen, self._clock.now())
            match found:
                case Move():
                    current = self._moved(await self._annotated(current, seen, found), found)
                    seen = None if found.event in _MOVES_ELSEWHERE else seen
                case Note():
                    self._events.warned(current.rollout, found)
                    current = replace(current, status=found.status)
                case Act() if not current.is_written:
                    # The status first. What takes something away is decided again on what is there then.
                    current = await self._write(current, seen, None)
                    seen = seen if _only_adds(found) else None
                case Act(route=RouteWrite() as shift):
                    current = await self._write(replace(current, status=shift.status), seen, None)
                    refused = await self._calls.write_route(seen.route, shift)
                    if refused is not None:
                        return await self._hold(key, current, seen, Hold(refused, self._clock.now() + LOOK_AGAIN))
                    seen = None
                case Act(call=None, query=None):
                    problem = await self._act(current, found)
                    if problem is not None:
                        return await self._hold(key, current, seen, Hold(problem, self._clock.now() + LOOK_AGAIN))
                    seen = None
                case Act():
                    status = await self._calls.answered(seen, found, partial(self._answers.wake, key))
                    if isinstance(status, Wait):
                        return await self._hold(key, current, seen, Hold(status))
                    current, seen = replace(current, status=status), None
                case Hold():
                    return await self._hold(key, current, seen, found)
                case Ended():
                    return await self._end(key, await self._write(current, seen, None))
        return Outcome.not_yet

    async def _hold(self, key: Key, current: Current, seen: BatchRolloutInput, found: Hold) -> Outcome:
        self._events.waiting(current.rollout, found.wait)
        is_told = seen.workloads is None or self._workloads.are_watched(seen.workloads)
        poll = None if is_told else UNWATCHED
        if (later := self._reports.remaining(key)) and _is_report(current):
            return _sooner(later, found.until, self._clock.now())
        written = await self._write(current, seen, found.wait)
        if written.rollout is not current.rollout:
            self._reports.restart(key)
        return _sooner(poll, found.until, self._clock.now())

    # Observing

    @property
    def kind(self) -> type[Any]:
        """The kind of rollouts that it moves."""
        return self._kind.kind

    async def observe(self, rollout: Any) -> BatchRolloutInput:
        """All that the next step of a rollout depends on, as it is now. Nothing is changed: a preview asks here too."""
        meta = rollout.metadata
        return await self._observer.observe(Key("", meta.namespace, meta.name), Current(rollout, rollout.status))

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

    async def _annotated(self, current: Current, seen: BatchRolloutInput, move: Move) -> Current:
        """With the annotations that name the workload, once it is known."""
        if move.event is not RolloutEvent.located or seen.workloads is None:
            return current
        meta, wanted = current.rollout.metadata, self._kind.annotations(seen.workloads.target.ref)
        if wanted.items() <= meta.annotations.items():
            return current
        change = {"metadata": {"annotations": dict(wanted)}}
        rollout = await self._client.amend(self._kind.kind, meta, change, manager=MANAGER)
        return replace(current, rollout=rollout)

    async def _act(self, current: Current, act: Act) -> Wait | None:
        """Make the writes; or what to wait for, if the server does not take one."""
        for write in act.writes:
            try:
                await self._workloads.write(write)
            except _REFUSALS as error:
                return waiting_for(str(write.ref), BatchCode.refused, error.message)
            self._events.wrote(current.rollout, write)
        return None

    async def _write(self, current: Current, seen: BatchRolloutInput | None, wait: Wait | None) -> Current:
        """Write the status, if it changed."""
        now, meta = self._clock.now(), current.rollout.metadata
        if current.status.rolling_state is None:  # the status that says what is waited for has to say where, too
            begun = replace(
                current.status, rolling_state=RollingState.locating, batch_rolling_state=BatchState.initializing
            )
            current = replace(current, status=begun)
        status = reported(current.status, wait, _ready_pods(seen), now=now, generation=meta.generation)
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


def _is_report(current: Current) -> bool:
    """Whether all that could be written is how far a wait is. What somebody asked for is answered at once."""
    is_answered = current.status.observed_generation == current.rollout.metadata.generation
    return is_answered and is_only_reported(current.rollout.status, current.status)


def _ready_pods(seen: BatchRolloutInput | None) -> int | None:
    if seen is None or seen.workloads is None or seen.moves is None:
        return None
    return seen.moves.ready_pods(seen.workloads)


def _plain(status: RolloutStatus) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(status, str_keys=True)
    return found


def _sooner(seconds: float | None, until: datetime | None, now: datetime) -> Outcome:
    """Look again after some seconds or at some time, whichever comes first."""
    waits = [one for one in (seconds, None if until is None else (until - now).total_seconds()) if one is not None]
    return Outcome.again(after=max(0.001, min(waits))) if waits else Outcome.done
