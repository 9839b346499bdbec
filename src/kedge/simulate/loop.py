"""Loop: an event loop in virtual time, on which the seed decides which task runs next.

Sleeps take no time: when nothing is ready, time jumps to the next timer. With a seed, any of the tasks that are ready
may run first. What is permuted, and what is not:

* callbacks (`call_soon`, and what futures call when they are done) run in the order they were registered, as asyncio
  promises, and before the tasks of that turn, so that a callback of a future still comes before those who await it;
* timers due at the same moment run in any order, which asyncio leaves open as well;
* tasks that are ready run in any order, and now and then some of them only in the next turn, as if they were slow; then
  without fail, so nobody starves.

Without a seed everything runs in asyncio's own order. Either way the same seed gives the same order in any process.

There is no outside: threads, sockets, subprocesses and signals raise `NotSimulated`. When every task waits and no timer
is set, `Deadlock` says where; when turn after turn passes and no time, `Livelock` says who.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context, copy_context
from random import Random
from typing import Any, NoReturn, TypeVar

from kedge.simulate.process_tasks import ProcessGroup, Task, context_for, describe, group_of_context, unfinished

T = TypeVar("T")

SLOW = 0.25  # how often some of the tasks that are ready wait for the next turn
MOST_TURNS = 100_000  # at one moment, without time passing
SHOWN = 20  # tasks that an error names
_OUTSIDE = {
    "threads": ("run_in_executor", "set_default_executor"),
    "sockets": (
        *("getaddrinfo", "getnameinfo", "create_connection", "create_server", "create_datagram_endpoint"),
        *("create_unix_connection", "create_unix_server", "connect_accepted_socket", "start_tls", "sendfile"),
        *("add_reader", "remove_reader", "add_writer", "remove_writer", "sock_recv", "sock_recv_into"),
        *("sock_recvfrom", "sock_recvfrom_into", "sock_sendall", "sock_sendto", "sock_connect", "sock_accept"),
        "sock_sendfile",
    ),
    "subprocesses": ("subprocess_exec", "subprocess_shell", "connect_read_pipe", "connect_write_pipe"),
    "signals": ("add_signal_handler", "remove_signal_handler"),
}


class NotSimulated(RuntimeError):
    """Something reached for the outside, which a simulation does not have."""


class Deadlock(RuntimeError):
    """Every task waits, and no timer is set: nothing would ever happen again."""


class Livelock(RuntimeError):
    """Tasks keep each other busy while no time passes."""


class _Handle(asyncio.Handle):
    """As asyncio's, but for what that notes for its debug mode: one is made for every step of a run."""

    __slots__ = ()

    def __init__(self, callback: Callable[..., object], args: Any, loop: Loop, context: Context | None) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _TimerHandle(asyncio.TimerHandle):
    """The same, for timers."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, loop: Loop, context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = True  # so that cancelling it is told to us


class Loop(asyncio.BaseEventLoop):
    """An event loop in virtual time, beginning at 0."""

    _ready: deque[asyncio.Handle]
    _stopping: bool
    _closed: bool
    _thread_id: int | None

    def __init__(self, seed: int | None = None) -> None:
        """Without a seed everything runs in asyncio's own order."""
        self.turns = 0
        self.steps = 0  # callbacks and tasks run
        self._now = 0.0
        self._order = None if seed is None else Random(seed)
        self._turns_now = 0  # of `turns`, those at this moment
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._timers_cancelled = 0
        self._tasks_made = 0
        self._slow: list[asyncio.Handle] = []  # put off by the last turn
        self._withheld: list[asyncio.Handle] = []  # of groups that are stopped
        self._stopped_groups = 0
        self._every = 1 << 62
        self._do_then: Callable[[], object] = _nothing
        super().__init__()

    # Time

    def time(self) -> float:
        return self._now

    def skip(self, seconds: float) -> None:
        """Let time pass without anything running, as when the machine stands still."""
        self._now += seconds
        self._turns_now = 0

    @property
    def timers(self) -> int:
        """How many are set."""
        return sum(not timer.cancelled() for _, _, timer in self._timers)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]  # the arguments fit the callback or they do not: that is the caller's
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = _TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        if timer._scheduled:  # type: ignore[attr-defined]
            self._timers_cancelled += 1
        if self._timers_cancelled > 100 and self._timers_cancelled > len(self._timers) // 2:
            # This one is not marked as cancelled yet, and stays.
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._timers_cancelled = 1

    def _advance(self) -> None:
        """Let time pass until a timer is due, and make ready all that are due then."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            self._drop_timer()
        if not timers:
            raise Deadlock(f"every task waits, and no timer is set: nothing would ever happen again{self._waiting()}")
        if timers[0][0] > self._now:
            self._now, self._turns_now = timers[0][0], 0
        due: list[asyncio.Handle] = [self._drop_timer()]
        while timers and timers[0][0] <= self._now:
            due.append(self._drop_timer())
        if len(due) > 1 and self._order is not None:
            self._order.shuffle(due)
        self._ready.extend(due)

    def _drop_timer(self) -> asyncio.TimerHandle:
        timer = heapq.heappop(self._timers)[2]
        timer._scheduled = False  # type: ignore[attr-defined]
        self._timers_cancelled -= timer._cancelled
        return timer

    # Turns

    def _run_once(self) -> None:
        """One turn: what is ready now, each once."""
        ready = self._ready
        if not ready and not self._slow and not self._stopping:
            self._advance()
        self.turns += 1
        self._turns_now += 1
        if self._turns_now > MOST_TURNS:
            self._turns_now = 0  # whoever cleans up gets another chance
            raise Livelock(f"{MOST_TURNS} turns, and no time has passed{self._waiting()}")
        if len(ready) == 1 and not self._slow and not self._stopped_groups:
            chosen: Iterable[asyncio.Handle] = (ready.popleft(),)  # most turns: worth the short cut
        else:
            chosen = self._chosen()
        for handle in chosen:
            if not handle._cancelled:
                self.steps += 1
                handle._run()
        if self.turns % self._every == 0:
            self._do_then()

    def every(self, turns: int, do: Callable[[], object]) -> None:
        """Do this each so many turns, between two of them."""
        self._every, self._do_then = turns, do

    def _chosen(self) -> list[asyncio.Handle]:
        """What runs in this turn, in order. The rest stays for later ones."""
        ready = list(self._ready)
        self._ready.clear()
        if self._order is None and not self._stopped_groups:
            return ready
        callbacks: list[asyncio.Handle] = []
        tasks: list[asyncio.Handle] = []
        for handle in ready:
            # A task's own steps and wake-ups are methods of it.
            owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
            if type(owner) is not Task:
                callbacks.append(handle)
            elif self._stopped_groups and owner.group is not None and owner.group.stopped:
                self._withheld.append(handle)
            else:
                tasks.append(handle)
        return callbacks + self._permuted(tasks)

    def _permuted(self, tasks: list[asyncio.Handle]) -> list[asyncio.Handle]:
        if self._order is None:
            return tasks
        late, self._slow = self._slow, []
        if len(tasks) > 1:
            self._order.shuffle(tasks)
            if self._order.random() < SLOW:
                first = self._order.randrange(1, len(tasks))
                tasks, self._slow = tasks[:first], tasks[first:]
        if not late:
            return tasks
        tasks += late
        self._order.shuffle(tasks)
        return tasks

    # Tasks

    def create_task(  # type: ignore[override]  # newer Pythons have more options, which are passed on
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> Task[T]:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        self._tasks_made += 1
        number, group = self._tasks_made, group_of_context(context)
        made: Task[T] = Task(coro, number=number, group=group, loop=self, context=context, **options)
        made.set_name(f"task {number}" if name is None else name)
        return made

    def start_in(self, group: ProcessGroup | None, coro: Coroutine[Any, Any, T], name: str) -> Task[T]:
        """A task of this group; those it makes are of the group too."""
        return self.create_task(coro, name=name, context=context_for(group))

    def stop_group(self, group: ProcessGroup) -> None:
        """Run no task of this group until it is resumed, as SIGSTOP does. Its timers still fire."""
        if not group.stopped:
            group.stopped = True
            self._stopped_groups += 1
            # Those put off by the last turn are of all groups: they are to be looked at again.
            self._ready.extendleft(reversed(self._slow))
            self._slow = []

    def resume_group(self, group: ProcessGroup) -> None:
        """Run the group's tasks again, as SIGCONT does."""
        if group.stopped:
            group.stopped = False
            self._stopped_groups -= 1
            self._ready.extend(self._withheld)  # those of others are withheld again
            self._withheld = []

    def _waiting(self) -> str:
        tasks = unfinished(self)
        more = f"\n  and {len(tasks) - SHOWN} more" if len(tasks) > SHOWN else ""
        return "".join(f"\n  {describe(task)}" for task in tasks[:SHOWN]) + more

    # The outside

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._thread_id not in (None, threading.get_ident()):
            raise NotSimulated("call_soon_threadsafe was called by another thread: a simulation has only one")
        return self.call_soon(callback, *args, context=context)


def _nothing() -> None:
    return None


def _refusing(what: str, name: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotSimulated(f"loop.{name}: there are no {what} in virtual time; go through a Transport instead")

    return refuse


for _what, _names in _OUTSIDE.items():
    for _name in _names:
        setattr(Loop, _name, _refusing(_what, _name))


def run(work: Coroutine[Any, Any, T], *, seed: int | None = None) -> T:
    """Run to the end in virtual time. Tasks left behind are an error."""
    with asyncio.Runner(loop_factory=lambda: Loop(seed)) as runner:
        return runner.run(_alone(work))


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    result = await work
    left = [task for task in unfinished(asyncio.get_running_loop()) if task is not asyncio.current_task()]
    if left:
        raise RuntimeError("tasks left behind:" + "".join(f"\n  {describe(task)}" for task in left))
    return result
