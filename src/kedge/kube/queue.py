"""Queue: which object to reconcile next.

Promises:

* a key waits once, however often it was added;
* a key is with one worker at most; added in the meantime, it is handed out again after `done`;
* the highest priority goes first; within a priority, clusters take turns, so that ten thousand keys of one cluster
  delay a key of another by one turn each; within a cluster, first come, first served;
* of several adds before a hand-out, the earliest time and the highest priority count, and none is lost.

Belongs to the event loop it was created in, and uses its time. Every operation is O(1), or O(log n) in the keys that
wait for a later time. Priorities are meant to be a few small numbers.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import OrderedDict, deque

from msgspec import Struct

from kedge.kube.delayed_keys import DelayedKeys
from kedge.kube.histogram import DurationHistogram
from kedge.kube.limits import BackoffSteps

NORMAL = 0
LOW = -100  # objects that existed at the start: later changes go first


class Key(Struct, frozen=True, cache_hash=True, gc=False):
    """Names one object in one cluster. `namespace` is None for cluster-scoped kinds."""

    cluster: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.cluster, self.namespace, self.name) if part)


DEFAULT_WAIT = BackoffSteps(first=0.005, longest=60.0)

Line = OrderedDict[Key, float]  # the ready keys of one cluster, and since when
Turns = OrderedDict[str, Line]  # the lines of one priority, the cluster whose turn is next first; no line is empty


class Queue:
    """The work of one controller. Workers `get` a key, and say `done` when they are; None ends a worker.

    `per_cluster` bounds how many keys of one cluster are in work at once, so that a cluster that answers slowly
    cannot keep every worker.
    """

    def __init__(
        self,
        *,
        rng: random.Random,
        wait: BackoffSteps = DEFAULT_WAIT,
        per_cluster: int | None = None,
    ) -> None:
        self.adds = 0
        self.retries = 0
        self.waited = DurationHistogram()
        self.worked = DurationHistogram()
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._rng = rng
        self._wait = wait
        self._per_cluster = per_cluster
        self._ready: dict[Key, int] = {}  # priority
        self._levels: dict[int, Turns] = {}
        self._turns: list[Turns] = []  # of _levels, highest priority first
        self._later: dict[Key, int] = {}  # priority
        self._delayed_keys = DelayedKeys(self._on_due)
        self._working: dict[Key, tuple[float, int]] = {}  # since when, and the priority it came with
        self._again: dict[Key, int] = {}  # in work, and wanted again: priority
        self._busy: dict[str, int] = {}  # keys in work per cluster; only kept when there is a limit
        self._failures: dict[Key, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """How many keys are ready and not in work."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many keys wait for a later time."""
        return len(self._later)

    @property
    def closed(self) -> bool:
        return self._closed

    def in_work(self) -> list[float]:
        """For how long each key in work has been so, the longest first. Safe to ask from another thread."""
        now = self._now()
        return [now - since for since, _ in list(self._working.values())]

    def failures(self, key: Key) -> int:
        """How often the key was retried since it was last forgotten."""
        return self._failures.get(key, 0)

    def add(self, key: Key, *, after: float = 0.0, priority: int = NORMAL) -> None:
        """Add the key, now or in `after` seconds. Ignored once closed."""
        if self._closed:
            return
        if self._later and key in self._later:
            priority = max(priority, self._later[key])
            if not after > 0.0:
                del self._later[key]
                self._delayed_keys.cancel(key)
        if after > 0.0 and key not in self._ready and key not in self._again:
            self._later[key] = priority
            self._delayed_keys.schedule(key, self._now() + after)
        elif key in self._working:
            self._again[key] = max(priority, self._again.get(key, priority))
        else:
            self._enqueue(key, priority)

    def retry(self, key: Key, longest: float = math.inf) -> float:
        """Add the key again after a failure, with backoff, at its priority. Returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.retries += 1
        delay = min(longest, self._wait.after(failures, self._rng))
        _, priority = self._working.get(key, (0.0, NORMAL))
        self.add(key, after=delay, priority=priority)
        return delay

    def forget(self, key: Key) -> None:
        """The key succeeded: reset its backoff."""
        self._failures.pop(key, None)

    def retry_failed_now(self) -> None:
        """What failed may work now: add all failed keys at once, and reset their backoff."""
        for key in [key for key in self._failures if key in self._later]:
            self.forget(key)
            self.add(key)

    async def get(self) -> Key | None:
        """The next key, now in work with the caller; None once the queue is closed."""
        while not self._closed:
            key = self._take()
            if key is not None:
                return key
            await self._something_ready()
        return None

    def done(self, key: Key) -> None:
        """The caller no longer works on the key."""
        since, _ = self._working.pop(key)
        self.worked.add(self._now() - since)
        if self._per_cluster is not None:
            self._make_room(key.cluster)
        if self._again and (priority := self._again.pop(key, None)) is not None:
            self._enqueue(key, priority)

    def close(self) -> None:
        """Hand out nothing more. Waiting keys are dropped: the next start finds them again."""
        self._closed = True
        self._delayed_keys.clear()
        for waiting in (self._ready, self._levels, self._turns, self._again, self._later):
            waiting.clear()
        while self._getters:
            self._wake()

    def _on_due(self, key: Key) -> None:
        self.add(key, priority=self._later.pop(key))

    def _enqueue(self, key: Key, priority: int) -> None:
        held = self._ready.get(key)
        if held is None:
            self.adds += 1
            since = self._now()
        elif held < priority:
            since = self._withdraw(key, held)
        else:
            return
        self._ready[key] = priority
        turns = self._levels.get(priority)
        if turns is None:
            turns = self._open_level(priority)
        line = turns.get(key.cluster)
        if line is None:
            line = turns[key.cluster] = OrderedDict()
        line[key] = since
        if self._getters:
            self._wake()

    def _open_level(self, priority: int) -> Turns:
        turns = self._levels[priority] = OrderedDict()
        self._turns = [self._levels[level] for level in sorted(self._levels, reverse=True)]
        return turns

    def _withdraw(self, key: Key, priority: int) -> float:
        turns = self._levels[priority]
        line = turns[key.cluster]
        since = line.pop(key)
        if not line:
            del turns[key.cluster]
        return since

    def _take(self) -> Key | None:
        for turns in self._turns:
            if turns and (cluster := self._next_cluster(turns)) is not None:
                return self._dequeue(turns, cluster)
        return None

    def _next_cluster(self, turns: Turns) -> str | None:
        limit = self._per_cluster
        first = next(iter(turns))
        if limit is None or self._busy.get(first, 0) < limit:
            return first
        # Clusters without room keep their place, and are few: at most workers / per_cluster.
        return next((cluster for cluster in turns if self._busy.get(cluster, 0) < limit), None)

    def _dequeue(self, turns: Turns, cluster: str) -> Key:
        line = turns[cluster]
        key, since = line.popitem(last=False)
        if line:
            turns.move_to_end(cluster)
        else:
            del turns[cluster]
        now = self._now()
        self._working[key] = (now, self._ready.pop(key))
        self.waited.add(now - since)
        if self._per_cluster is not None:
            self._busy[cluster] = self._busy.get(cluster, 0) + 1
        return key

    def _make_room(self, cluster: str) -> None:
        left = self._busy.pop(cluster) - 1
        if left:
            self._busy[cluster] = left
        if self._ready:
            self._wake()

    async def _something_ready(self) -> None:
        getter = self._loop.create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if not getter.cancelled():
                self._wake()  # this wake-up was for a key: pass it on
            elif getter in self._getters:
                self._getters.remove(getter)
            raise

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
