"""Process: something that runs, and may crash, stand still and start again.

    async def main(process: Process) -> None:
        async with Manager(clock=process.clock, rng=process.rng("manager")) as manager:
            cluster = await manager.connect("hub", process.link("hub"))
            ...
            await manager.run(signals=False)

Every task made by `main`, and by those, belongs to the process, and its links are its only way out. A crash cuts the
links first and cancels the tasks second: no `finally` reaches the outside. A start begins from nothing: another `main`,
other links, other random numbers. While it stands still (`suspend`) none of its tasks runs, and time goes on; a request
it has under way stays under way until it goes on.

`main` is expected to run for ever: when it ends or raises, the simulation fails, unless the error is one of `exits_on`,
after which it is started again, as a kubelet would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Protocol, TypeAlias

from kedge.simulate.clock import JumpingClock
from kedge.simulate.loop import Loop
from kedge.simulate.network import Link
from kedge.simulate.process_tasks import Group, context_of, unfinished
from kedge.simulate.trace import Trace

Main: TypeAlias = Callable[["Process"], Coroutine[Any, Any, None]]

AGAIN_AFTER = 1.0  # seconds until a process that exited is started again


class Surroundings(Protocol):
    """What a process is given by the simulation it is part of."""

    loop: Loop
    trace: Trace

    def rng(self, *names: str | int) -> Random: ...

    def new_clock(self, *names: str | int) -> JumpingClock: ...

    def new_link(self, name: str, server: str, rng: Random) -> Link: ...

    def failed(self, sentence: str, error: BaseException | None = None) -> None: ...


class Process:
    """One process, by name."""

    def __init__(
        self, name: str, main: Main, around: Surroundings, *, exits_on: tuple[type[Exception], ...] = ()
    ) -> None:
        self.name = name
        self.starts = 0
        self.writes = 0  # carried out, over all its lives
        self._main = main
        self._around = around
        self._exits_on = exits_on
        self._crash_at: int | None = None
        self._then: Callable[[], None] = _nothing
        self._group: Group | None = None
        self._links: dict[str, Link] = {}
        self._over = False
        self.clock = around.new_clock(name)

    @property
    def alive(self) -> bool:
        return self._group is not None

    # For its main

    def rng(self, use: str) -> Random:
        """A source of random numbers of this life."""
        return self._around.rng("process", self.name, self.starts, use)

    def link(self, server: str) -> Link:
        """Its way to a server, in this life."""
        if server not in self._links:
            rng = self.rng(f"link {server}")
            self._links[server] = self._around.new_link(f"{self.name} → {server}", server, rng)
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
        self._around.trace.remark(self.name, "starts")
        group = self._group = Group(self.name)
        task = self._around.loop.start_in(group, self._main(self), f"main of {self.name}")
        task.add_done_callback(lambda task: self._ended(group, task))

    def crash(self, why: str = "crashes") -> None:
        """End at once: cut off first, so that nothing its tasks do on their way out reaches anybody."""
        group, self._group = self._group, None
        if group is None:
            return
        self._around.trace.remark(self.name, why)
        for link in self._links.values():
            link.cut("the process is dead", for_good=True)
        self._around.loop.let_go_on(group)
        for task in unfinished(self._around.loop, group):
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
            self._around.trace.remark(self.name, "stands still")
            self._around.loop.stop_group(self._group)

    def resume(self) -> None:
        """Go on, as after SIGCONT."""
        if self._group is not None:
            self._around.trace.remark(self.name, "goes on")
            self._around.loop.let_go_on(self._group)

    def crash_after_write(self, number: int, then: Callable[[], None] | None = None) -> None:
        """Crash the moment so many writes of it, from now on, have changed something; no answer reaches it any more.

        `then` is called after the crash; by default it starts again at once.
        """
        self._crash_at = self.writes + number
        self._then = then or self.start

    def crash_no_more(self) -> None:
        """Forget about crashing after a write."""
        self._crash_at = None

    def cut(self) -> None:
        """Cut every link it has."""
        for link in self._links.values():
            link.cut()

    def mend(self) -> None:
        for link in self._links.values():
            link.mend()

    def calm(self) -> None:
        """Nothing goes wrong on its links and its clock from now on."""
        self.clock.calm()
        for link in self._links.values():
            link.calm()

    def wrote(self, who: Group, what: str) -> bool:
        """A write of it was carried out just now; told within that write, so its answer has not set out yet.

        Whether it crashed of that.
        """
        if who is not self._group:
            return False  # a life that is over
        self.writes += 1
        if self.writes != self._crash_at:
            return False
        self.crash(f"crashes after {what}")
        # Not within its own task: what it starts would be taken for a part of that.
        self._around.loop.call_soon(self._then, context=context_of(None))
        return True

    # Inside

    def _ended(self, group: Group, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._group is not group:
            return  # crashed before: however it came down after that is nobody's business
        self.crash("exits" if error is None else f"exits: {type(error).__name__}: {error}")
        if error is not None and isinstance(error, self._exits_on):
            self._around.loop.call_later(AGAIN_AFTER, self._start_again)
        else:
            self._around.failed(f"process {self.name} runs for ever", error)

    def _start_again(self) -> None:
        if self._group is None:
            self.start()


def _nothing() -> None:
    return None
