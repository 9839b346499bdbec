"""Process: something that runs, and may crash, stand still and start again.

    async def main(process: Process) -> None:
        async with Manager(clock=process.clock, rng=process.rng("manager")) as manager:
            cluster = await manager.connect("hub", process.link("hub"))
            ...
            await manager.run(signals=False)

Every task created by `main` belongs to the process, and its links are its only way out. A crash cuts the links first
and cancels the tasks second: no `finally` reaches the outside. A start begins from nothing: another `main`, other
links, other random numbers. While a process is suspended none of its tasks runs, and time goes on; its requests stay
in flight until it resumes.

`main` must run for ever: when it ends or raises, the simulation fails. If the error is one of `exits_on`, the process
is started again instead, as a kubelet would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Protocol, TypeAlias

from kedge.simulate.clock import JumpingClock
from kedge.simulate.loop import Loop
from kedge.simulate.network import Link
from kedge.simulate.process_tasks import ProcessGroup, context_for, unfinished
from kedge.simulate.trace import Trace

Main: TypeAlias = Callable[["Process"], Coroutine[Any, Any, None]]

AGAIN_AFTER = 1.0  # seconds until a process that exited is started again


class Environment(Protocol):
    """What the simulation provides to a process."""

    loop: Loop
    trace: Trace

    def rng(self, *names: str | int) -> Random: ...

    def new_clock(self, *names: str | int) -> JumpingClock: ...

    def new_link(self, name: str, server: str, rng: Random) -> Link: ...

    def failed(self, sentence: str, error: BaseException | None = None) -> None: ...


class Process:
    """One process, by name."""

    def __init__(
        self, name: str, main: Main, environment: Environment, *, exits_on: tuple[type[Exception], ...] = ()
    ) -> None:
        self.name = name
        self.starts = 0
        self.writes = 0  # carried out, over all starts
        self._main = main
        self._environment = environment
        self._exits_on = exits_on
        self._crash_at: int | None = None
        self._then: Callable[[], None] = _nothing
        self._group: ProcessGroup | None = None
        self._links: dict[str, Link] = {}
        self._over = False
        self.clock = environment.new_clock(name)

    @property
    def alive(self) -> bool:
        return self._group is not None

    # For its main

    def rng(self, use: str) -> Random:
        """A source of random numbers, new after each start."""
        return self._environment.rng("process", self.name, self.starts, use)

    def link(self, server: str) -> Link:
        """Its link to a server, new after each start."""
        if server not in self._links:
            rng = self.rng(f"link {server}")
            self._links[server] = self._environment.new_link(f"{self.name} → {server}", server, rng)
        return self._links[server]

    # From outside

    def start(self) -> None:
        """Begin from nothing."""
        if self._over:
            return
        if self._group is not None:
            raise RuntimeError(f"{self.name} runs already: crash it first")
        self.starts += 1
        self._links = {}
        self._environment.trace.remark(self.name, "starts")
        group = self._group = ProcessGroup(self.name)
        task = self._environment.loop.start_in(group, self._main(self), f"main of {self.name}")
        task.add_done_callback(lambda task: self._ended(group, task))

    def crash(self, why: str = "crashes") -> None:
        """End at once: cut off first, so that nothing its tasks do on their way out reaches anybody."""
        group, self._group = self._group, None
        if group is None:
            return
        self._environment.trace.remark(self.name, why)
        for link in self._links.values():
            link.cut("the process is dead", for_good=True)
        self._environment.loop.resume_group(group)
        for task in unfinished(self._environment.loop, group):
            task.cancel()

    def end(self) -> None:
        """Crash, and never start again."""
        self._over = True
        self.crash("is ended")

    def restart(self) -> None:
        """Crash, and start again at once."""
        self.crash()
        self.start()

    def suspend(self) -> None:
        """Stand still, as after SIGSTOP."""
        if self._group is not None:
            self._environment.trace.remark(self.name, "stands still")
            self._environment.loop.stop_group(self._group)

    def resume(self) -> None:
        """Go on, as after SIGCONT."""
        if self._group is not None:
            self._environment.trace.remark(self.name, "goes on")
            self._environment.loop.resume_group(self._group)

    def crash_after_write(self, number: int, then: Callable[[], None] | None = None) -> None:
        """Crash as soon as this many writes of it, from now on, have changed something; their answers do not arrive.

        `then` is called after the crash; by default the process starts again at once.
        """
        self._crash_at = self.writes + number
        self._then = then or self.start

    def crash_no_more(self) -> None:
        """Do not crash after a write any more."""
        self._crash_at = None

    def cut(self) -> None:
        """Cut every link it has."""
        for link in self._links.values():
            link.cut()

    def mend(self) -> None:
        for link in self._links.values():
            link.mend()

    def end_faults(self) -> None:
        """No more faults on its links and its clock."""
        self.clock.end_faults()
        for link in self._links.values():
            link.end_faults()

    def wrote(self, who: ProcessGroup, what: str) -> bool:
        """A write of it was just carried out, and is not answered yet. Returns whether the process crashed after it."""
        if who is not self._group:
            return False  # of an earlier start
        self.writes += 1
        if self.writes != self._crash_at:
            return False
        self.crash(f"crashes after {what}")
        # Not within its own task: a process started there would belong to that task.
        self._environment.loop.call_soon(self._then, context=context_for(None))
        return True

    # Inside

    def _ended(self, group: ProcessGroup, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._group is not group:
            return  # it crashed before: how its tasks ended does not matter
        self.crash("exits" if error is None else f"exits: {type(error).__name__}: {error}")
        if error is not None and isinstance(error, self._exits_on):
            self._environment.loop.call_later(AGAIN_AFTER, self._start_again)
        else:
            self._environment.failed(f"process {self.name} runs for ever", error)

    def _start_again(self) -> None:
        if self._group is None:
            self.start()


def _nothing() -> None:
    return None
