"""The work queue against a model too simple to be wrong: lists, searched from the front."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kedge.kube.queue import DEFAULT_WAIT, Key, Queue
from support.virtual import VirtualLoop

keys = st.builds(Key, st.sampled_from("abc"), st.none(), st.sampled_from("12345"))
priorities = st.sampled_from([-1, 0, 0, 1])
delays = st.sampled_from([0, 0, 0, 1, 2, 3, 5, 8])  # whole seconds: sums are exact


@dataclass
class Model:
    """What waits, each with what was asked; in the order of asking."""

    now: float = 0
    ready: dict[Key, int] = field(default_factory=dict)
    later: dict[Key, tuple[float, int]] = field(default_factory=dict)
    working: dict[Key, int] = field(default_factory=dict)
    again: dict[Key, int] = field(default_factory=dict)

    def add(self, key: Key, after: float, priority: int) -> None:
        due, held = self.later.get(key, (self.now + after, priority))
        priority = max(priority, held)
        if key in self.again or (key in self.working and after <= 0):
            self.again[key] = max(priority, self.again.get(key, priority))
        elif key in self.ready or after <= 0:
            self.line_up(key, priority)
        elif self.now + after < due:
            del self.later[key]
            self.later[key] = (self.now + after, priority)
        else:
            self.later[key] = (due, priority)
            return
        if key in self.again or key in self.ready:
            self.later.pop(key, None)

    def line_up(self, key: Key, priority: int) -> None:
        if self.ready.get(key, priority - 1) < priority:
            self.ready.pop(key, None)
            self.ready[key] = priority

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for key, (due, priority) in sorted(self.later.items(), key=lambda item: item[1][0]):
            if due <= self.now:
                del self.later[key]
                self.add(key, 0, priority)

    def done(self, key: Key) -> None:
        del self.working[key]
        if key in self.again:
            self.ready[key] = self.again.pop(key)


class QueueMachine(RuleBasedStateMachine):
    """Adds, hand-outs and time in any order; the queue and the model must agree on what waits and who may go."""

    per_cluster: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.model = Model()
        self.passed: dict[Key, int] = {}
        self.queue = self.loop.run_until_complete(self.make())

    async def make(self) -> Queue:
        return Queue(rng=random.Random(1), wait=DEFAULT_WAIT, per_cluster=self.per_cluster)

    def teardown(self) -> None:
        self.loop.close()

    def may_go(self) -> list[Key]:
        """Those of the highest priority among the clusters that have room."""
        busy = [key.cluster for key in self.model.working]
        limit = 10**6 if self.per_cluster is None else self.per_cluster
        able = {key: p for key, p in self.model.ready.items() if busy.count(key.cluster) < limit}
        return [key for key, p in able.items() if p == max(able.values())]

    @rule(key=keys, after=delays, priority=priorities)
    def add(self, key: Key, after: float, priority: int) -> None:
        self.queue.add(key, after=after, priority=priority)
        self.model.add(key, after, priority)

    @rule(seconds=st.sampled_from([1, 2, 4]))
    def sleep(self, seconds: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.model.sleep(seconds)

    @precondition(lambda self: self.may_go())
    @rule()
    def get(self) -> None:
        may_go = self.may_go()
        got = self.loop.run_until_complete(self.queue.get())
        assert got is not None
        heads = {key.cluster: key for key in reversed(may_go)}
        assert got == heads[got.cluster]
        self.check_turns(got, heads)
        self.model.working[got] = self.model.ready.pop(got)

    def check_turns(self, got: Key, heads: dict[str, Key]) -> None:
        """The first in a line is passed once by each other cluster at most, at each priority it went through."""
        self.passed.pop(got, None)
        for head in heads.values():
            if head.cluster != got.cluster:
                self.passed[head] = self.passed.get(head, 0) + 1
                assert self.passed[head] <= (len("abc") - 1) * len({-1, 0, 1})

    @precondition(lambda self: not self.may_go())
    @rule()
    def get_waits(self) -> None:
        async def taken() -> bool:
            getter = asyncio.ensure_future(self.queue.get())
            await asyncio.sleep(0)
            done = getter.done()
            getter.cancel()
            await asyncio.wait([getter])
            return done

        assert not self.loop.run_until_complete(taken())

    @precondition(lambda self: self.model.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.working, key=str)))
        self.queue.done(key)
        self.model.done(key)

    @invariant()
    def nothing_is_lost_and_nothing_is_twice(self) -> None:
        assert self.queue._ready == self.model.ready
        assert self.queue._later == {key: priority for key, (_, priority) in self.model.later.items()}
        assert self.queue._working.keys() == self.model.working.keys()
        assert not self.model.working.keys() & self.model.ready.keys()
        assert len(self.queue) == len(self.model.ready)

    @invariant()
    def lines_hold_what_is_ready_and_nothing_else(self) -> None:
        in_line = [
            (key, priority) for priority, turns in self.queue._levels.items() for line in turns.values() for key in line
        ]
        assert len(in_line) == len(self.model.ready)
        assert dict(in_line) == self.model.ready
        assert all(line for turns in self.queue._turns for line in turns.values())


class SharedQueueMachine(QueueMachine):
    """The same, with at most one key of a cluster in work."""

    per_cluster = 1


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(stateful_step_count=50)
TestSharedQueue = SharedQueueMachine.TestCase
TestSharedQueue.settings = settings(stateful_step_count=50)
