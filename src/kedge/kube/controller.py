"""Controller: calls `reconcile` with the key of every object that may need work.

    Controller("greeter", greeter.reconcile, [cluster.watch(greeter.maps)])

Promises:

* a key is in one `reconcile` at a time, and is reconciled again after every change in the meantime;
* a key is not reconciled before every source of its cluster is ready, nor before the caches show what the last
  `reconcile` of that key wrote; a cluster that is not ready does not delay the others;
* a `reconcile` that raises or takes too long is logged, counted, and retried with backoff; the others go on;
* once told to stop it starts nothing new, and ends when the last `reconcile` has ended.

Assumes that `reconcile` decides on the current state, not on the event, and that it awaits instead of blocking.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from kedge.kube.errors import Conflict, Forbidden, Unreachable, namespace_terminates
from kedge.kube.expectations import WriteSet, record_writes
from kedge.kube.limits import BackoffSteps
from kedge.kube.logs import about
from kedge.kube.metrics import ERROR, REQUEUE, ControllerMetrics, Metrics
from kedge.kube.outcome import Outcome
from kedge.kube.queue import DEFAULT_WAIT, NORMAL, Key, Queue
from kedge.kube.source import Source

Reconcile: TypeAlias = Callable[[Key], Awaitable[Outcome]]

SOON = 1.0  # seconds: the longest wait after `not_yet`, and between checks of a closed gate
log = logging.getLogger(__name__)


class Controller:
    """Keys from sources, through a queue, to `reconcile`. Runs once."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        sources: Iterable[Source] = (),
        *,
        workers: int = 8,
        per_cluster: int | None = None,
        timeout: float = 120.0,
        catch_up: float = 2.0,
        wait: BackoffSteps = DEFAULT_WAIT,
    ) -> None:
        """At most `per_cluster` workers work for one cluster (default: three quarters of them).

        `timeout` bounds one reconcile; `catch_up` how long to wait for a cache to show an own write before the server
        is asked; `wait` is the backoff after failures.
        """
        if workers < 1:
            raise ValueError(f"controller {name}: workers is {workers}: at least 1 has to do the work")
        self.name = name
        self.workers = workers
        self._reconcile = reconcile
        self._sources = list(sources)
        self._per_cluster = per_cluster or max(1, workers * 3 // 4)
        self._timeout = timeout
        self._catch_up_within = catch_up
        self._wait = wait
        self._queue: Queue | None = None
        self._opening: dict[asyncio.Task[None], str] = {}
        self._unready: Counter[str] = Counter()  # of _opening, by cluster
        self._openers: asyncio.TaskGroup | None = None
        self._held: dict[str, dict[Key, int]] = {}  # keys of clusters that are not ready: priority
        self._unseen_writes: dict[Key, WriteSet] = {}  # what the last reconcile wrote, if a cache may not show it
        self._sweep_at = 1000
        self._complaints: dict[Key, str] = {}
        self._stopped = False

    # From outside

    def add_source(self, source: Source) -> None:
        """Take keys from this source too. Allowed while running."""
        self._sources.append(source)
        if self._openers is not None and not self._stopped:
            self._open_soon(self._openers, source)

    def forget_cluster(self, cluster: str) -> None:
        """The cluster is gone: do not wait for it, and take no more keys from its sources."""
        self._sources = [source for source in self._sources if source.cluster != cluster]
        for task in [task for task, name in self._opening.items() if name == cluster]:
            task.cancel()
        self._held.pop(cluster, None)

    def retry_failed_now(self) -> None:
        """A cluster is back: retry at once what failed because of it."""
        if self._queue is not None:
            self._queue.retry_failed_now()

    def waits_for(self) -> list[str]:
        """The clusters whose sources are not ready."""
        return sorted(self._unready)

    @property
    def queue(self) -> Queue:
        """The queue, once running."""
        if self._queue is None:
            raise RuntimeError(f"controller {self.name} is not running: its queue is made by run()")
        return self._queue

    def stop(self) -> None:
        """Start nothing new; `run` returns when the reconciles in progress have ended."""
        self._stopped = True
        if self._queue is not None:
            self._queue.close()

    async def run(
        self, *, rng: random.Random, metrics: Metrics | None = None, gate: Callable[[], bool] | None = None
    ) -> None:
        """Work until stopped. While `gate` returns False, no reconcile starts."""
        metrics = metrics or Metrics()
        self._queue = Queue(rng=rng, wait=self._wait, per_cluster=self._per_cluster)
        metrics.watch_queue(self.name, self._queue)
        counts = metrics.controller(self.name)
        if self._stopped:
            return
        async with asyncio.TaskGroup() as self._openers:
            for source in self._sources:
                self._open_soon(self._openers, source)
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.workers):
                    workers.create_task(self._work(self._queue, counts, gate))
            for task in list(self._opening):
                task.cancel()

    # Sources

    def _open_soon(self, openers: asyncio.TaskGroup, source: Source) -> None:
        task = openers.create_task(self._open(source))
        self._opening[task] = source.cluster
        self._unready[source.cluster] += 1
        task.add_done_callback(self._opened)

    async def _open(self, source: Source) -> None:
        await source.ready()
        source.subscribe(self._wake)

    def _opened(self, task: asyncio.Task[None]) -> None:
        cluster = self._opening.pop(task)
        self._unready[cluster] -= 1
        if self._unready[cluster] == 0:
            del self._unready[cluster]
            for key, priority in self._held.pop(cluster, {}).items():
                self.queue.add(key, priority=priority)

    def _wake(self, key: Key, priority: int) -> None:
        if key.cluster in self._unready:
            self._hold(key, priority)
        else:
            self.queue.add(key, priority=priority)

    def _hold(self, key: Key, priority: int) -> None:
        held = self._held.setdefault(key.cluster, {})
        held[key] = max(priority, held.get(key, priority))

    # Workers

    async def _work(self, queue: Queue, metrics: ControllerMetrics, gate: Callable[[], bool] | None) -> None:
        metrics.workers.inc()
        try:
            while (key := await queue.get()) is not None:
                try:
                    if gate is not None and not gate():
                        queue.add(key, after=SOON)
                    elif key.cluster in self._unready:
                        self._hold(key, NORMAL)
                    else:
                        await self._attempt(key, metrics)
                finally:
                    queue.done(key)
        finally:
            metrics.workers.dec()

    async def _attempt(self, key: Key, metrics: ControllerMetrics) -> None:
        now = asyncio.get_running_loop().time
        started = now()
        metrics.active.inc()
        try:
            with about(controller=self.name, cluster=key.cluster, namespace=key.namespace, name=key.name):
                result = await self._result(key, metrics)
            metrics.ended(result, now() - started)
        finally:
            metrics.active.dec()

    async def _result(self, key: Key, metrics: ControllerMetrics) -> str:
        """Reconcile, and requeue the key as the result says."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                outcome = await self._caught_up_reconcile(key, metrics)
        except Conflict as error:
            return self._failed(key, error) if _is_contested(error) else self._overtaken(key, error)
        except Forbidden as error:
            return self._too_late(key, error) if namespace_terminates(error) else self._failed(key, error)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            # Something that the reconcile awaited was cancelled, not the reconcile: a failure like any other.
            return self._failed(key, error)
        except TimeoutError as error:
            slow = TimeoutError(f"not done after {self._timeout:g} s") if limit.expired() else error
            return self._failed(key, slow)
        except Exception as error:  # noqa: BLE001  # one object never stops the others
            return self._failed(key, error)
        self._ended(key, outcome)
        return outcome.result

    async def _caught_up_reconcile(self, key: Key, metrics: ControllerMetrics) -> Outcome:
        writes = self._unseen_writes.get(key)
        if writes is not None:
            if not writes.shown():
                metrics.waited_for_cache()
                await writes.settle(self._catch_up_within)
            self._unseen_writes.pop(key, None)
        with record_writes() as writes:
            try:
                outcome = await self._reconcile(key)
            finally:
                self._keep(key, writes)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"reconcile of {self.name} returned {outcome!r}: return Outcome.done, .again or .not_yet")
        return outcome

    def _keep(self, key: Key, writes: WriteSet) -> None:
        if writes.shown():
            return
        self._unseen_writes[key] = writes
        # A key that never comes back would stay here for ever.
        if len(self._unseen_writes) > self._sweep_at:
            self._unseen_writes = {key: kept for key, kept in self._unseen_writes.items() if not kept.shown()}
            self._sweep_at = 2 * len(self._unseen_writes) + 1000

    def _ended(self, key: Key, outcome: Outcome) -> None:
        self._complaints.pop(key, None)
        if outcome is Outcome.not_yet:
            self.queue.retry(key, longest=SOON)
            return
        self.queue.forget(key)
        if outcome.after > 0:
            self.queue.add(key, after=outcome.after)

    def _overtaken(self, key: Key, error: Conflict) -> str:
        log.debug("someone else was faster, reconciling again: %s", error)
        self.queue.retry(key, longest=SOON)
        return REQUEUE

    def _too_late(self, key: Key, error: Forbidden) -> str:
        delay = self.queue.retry(key)
        log.debug("its namespace is going, looking again in %.3g s: %s", delay, error)
        return REQUEUE

    def _failed(self, key: Key, error: BaseException) -> str:
        delay = self.queue.retry(key)
        said = f"{type(error).__name__}: {error}"
        # The traceback once: the same failure again needs only a line.
        is_new = self._complaints.get(key) != said and not isinstance(error, Unreachable)
        self._complaints[key] = said
        log.error(
            "reconcile failed, trying again in %.3g s", delay, exc_info=error if is_new else None, extra={"error": said}
        )
        return ERROR


def _is_contested(error: Conflict) -> bool:
    """Whether a field belongs to another manager: a retry does not change that."""
    return any(cause.reason == "FieldManagerConflict" for cause in error.causes)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
