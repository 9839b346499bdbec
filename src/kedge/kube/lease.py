"""Lease: leader election. Which one of several processes acts.

    election = Election(Client(transport), "kedge-hub", "kedge-system", clock=clock, rng=rng)
    acting = Client(FencedTransport(other_transport, election))    # refuses to write while not leading (fencing.py)
    await election.lead(lambda: run_controllers(acting))  # raises LeadershipLost: exit the process

Work runs only while the lease is held, and has ended before the lease is released. Each renewal has a time limit, and
counts from the moment it was requested: a server that hangs or a process that was stopped ends the leadership.
`is_leading` reads the time when it is called, so after a stop it returns False before any timer has fired.
Assumes that every contender waits a full duration, and that clocks run at about the same pace (their ratio may reach
duration / renew_deadline); the time they show does not matter. Deleting the Lease starts a new election at once.
A lease elects, it does not fence: requests already sent are not stopped. A write that must not happen twice carries a
precondition.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from kedge.api.coordination import Lease
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import AlreadyExists, Conflict, NotFound
from kedge.kube.fencing import NotLeading, Watchdog
from kedge.kube.lease_record import LeaseRecord, holder_of
from kedge.kube.limits import SAFE, Backoff, BackoffSteps
from kedge.kube.transport import Request

T = TypeVar("T")
NEVER = -math.inf
log = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """The lease could not be kept, or is someone else's. Work has been stopped; the process should exit."""


class Election:
    """One contender for a lease."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        duration: int = 15,
        renew_deadline: float = 10.0,
        retry: float = 2.0,
        on_change: Callable[[bool], None] = lambda _: None,
        ticks: Callable[[], float] | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        """`client` must not be fenced, and best has a limiter of its own, so that renewals need not queue.

        Others may take over after `duration` seconds without a renewal; we stop after `renew_deadline`, and try every
        `retry`. The identity must be this process's alone; the default is its host's name and a random number.
        `on_change` is told when leadership begins and ends. `ticks` counts seconds; the default is `ticks_of` the loop.
        `watchdog` ends a leader that has not stopped halfway between `renew_deadline` and `duration`.
        """
        _check(duration, renew_deadline, retry)
        self.identity = identity or f"{socket.gethostname()}_{rng.getrandbits(64):016x}"
        self._record = LeaseRecord(client, name, namespace, self.identity, duration, clock)
        self._rng = rng
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry = retry
        self._on_change = on_change
        self._given_ticks = ticks
        self._ticks = ticks or uptime
        self._watchdog = watchdog
        self._until = NEVER
        self._ours: Lease | None = None  # as last written

    def __str__(self) -> str:
        return str(self._record)

    def is_leading(self) -> bool:
        """Whether this process leads at this very moment. Once false it stays so until `lead` is called anew."""
        return self._ticks() < self._until

    def guard(self, request: Request) -> None:
        """Raise `NotLeading` if the request writes and we do not lead."""
        if request.method not in SAFE and not self.is_leading():
            raise NotLeading(f"{request}: refused, {self.identity} does not hold {self}")

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then do the work, once. Returns or raises as the work does.

        When cancelled, stops the work, waits for its end, however long it takes, renewing all the while, and gives
        the lease up. When the lease is lost, stops the work likewise and raises `LeadershipLost`: whoever
        calls should exit then, since caches and queues of this process belong to a leadership that is over.
        """
        self._ticks = self._given_ticks or ticks_of(asyncio.get_running_loop())
        try:
            await self._acquire()
            await self._act(work)
        finally:
            if self._watchdog is not None:
                self._watchdog.disarm()

    async def _act(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            async with _running(self._keep()) as keeping, _running(_do(work)) as working:
                await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._until > NEVER:
                await self._release()
        if not keeping.cancelled():
            keeping.result()  # raises what ended it
        working.result()

    # Getting it

    async def _acquire(self) -> None:
        backoff = Backoff(self._rng, BackoffSteps(first=self._retry, longest=30.0))
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    pause = await self._try_to_acquire()
                backoff.reset()
            except (Conflict, AlreadyExists):
                pause = self._retry  # someone else was faster
            except Exception as error:  # noqa: BLE001  # whatever it is, it may pass, and nobody else would try again
                pause = backoff.next()
                log.warning("%s cannot be had, trying again in %.1f s: %s", self, pause, _say(error))
            if self.is_leading():
                log.info("leading: %s is held by %s", self, self.identity)
                self._on_change(True)
                return
            await asyncio.sleep(pause)

    async def _try_to_acquire(self) -> float:
        """Take the lease if it is free; else how long to wait before looking again."""
        started = self._ticks()
        lease = await self._record.look(self._ticks)
        wait = self._record.free_at(lease) - self._ticks()
        if wait > 0:
            return min(wait, self._retry * self._rng.uniform(1.0, 1.2))
        self._hold(await self._record.take(lease), started)
        return 0.0

    # Keeping it

    async def _keep(self) -> None:
        """Renew for as long as that works; raise `LeadershipLost` when no time is left for another attempt."""
        trouble, began = "", self._ticks()
        while self._left > self._retry:
            await asyncio.sleep(began + self._retry - self._ticks())  # a slow attempt has used up its pause
            began = self._ticks()
            if self.is_leading():
                trouble = await self._attempt()
        why = trouble or "this process stood still"
        raise self._lost(f"{self} could not be renewed within {self._renew_deadline:g} s: {why}")

    async def _attempt(self) -> str:
        """Renew, and say what went wrong, if anything did."""
        try:
            async with asyncio.timeout(min(self._patience, self._left)):
                await self._renew()
        except LeadershipLost:
            raise
        except Exception as error:  # noqa: BLE001  # any failure counts the same: the lease was not renewed
            log.warning("%s was not renewed: %s", self, _say(error))
            return _say(error)
        return ""

    async def _renew(self) -> None:
        started = self._ticks()
        ours = await self._on_ours(self._record.take)
        if self.is_leading():  # a renewal that comes too late must not open again what has been closed
            self._hold(ours, started)

    def _hold(self, lease: Lease, started: float) -> None:
        """The lease is ours, counting from when it was asked for."""
        self._ours, self._until = lease, started + self._renew_deadline
        if self._watchdog is not None and self.is_leading():
            self._watchdog.postpone(self._left + (self._duration - self._renew_deadline) / 2)

    async def _on_ours(self, write: Callable[[Lease], Awaitable[T]]) -> T:
        """Write to the lease as we left it; or, if it has been changed since but still is ours, as it is."""
        assert self._ours is not None
        try:
            return await write(self._ours)
        except (Conflict, NotFound):
            lease = await self._record.look(self._ticks)
        if lease is None or not self._record.is_ours(lease):
            raise self._lost(f"{self} is held by {holder_of(lease)} now, not by {self.identity}")
        return await write(lease)

    def _lost(self, why: str) -> LeadershipLost:
        self._close()
        log.warning("leading no more: %s", why)
        return LeadershipLost(why)

    @property
    def _left(self) -> float:
        return self._until - self._ticks()

    @property
    def _patience(self) -> float:
        """How long one attempt may take: when a connection is dead there must be time for another."""
        return self._renew_deadline / 2

    # Giving it up

    async def _release(self) -> None:
        """Give the lease up, so that a successor need not wait; a failure only costs it that time."""
        self._close()
        try:
            async with asyncio.timeout(self._patience):
                await self._on_ours(self._record.release)
        except LeadershipLost:
            pass  # someone else's already
        except Exception as error:  # noqa: BLE001  # we stop either way
            log.warning("%s was not released, it will expire: %s", self, _say(error))

    def _close(self) -> None:
        """Stop leading, for everyone who asks from now on."""
        if self._until > NEVER:
            self._until = NEVER
            self._on_change(False)


def uptime() -> float:
    """Seconds that have passed, also while the machine was suspended, which the loop's own time leaves out."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def ticks_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """What counts the seconds for a loop: its own time if that is not the machine's (virtual time), else `uptime`."""
    virtual = isinstance(loop, asyncio.BaseEventLoop) and type(loop).time is not asyncio.BaseEventLoop.time
    return loop.time if virtual else uptime


async def _do(work: Callable[[], Awaitable[None]]) -> None:
    await work()


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is cancelled, and over, when the context is left.

    If we are cancelled while waiting for its end, so is it, again: it must not outlive us.
    """
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    try:
        yield task
    finally:
        asked = task.cancel()
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        failure = None if task.cancelled() else task.exception()
        if asked and failure is not None:
            log.error("failed while being stopped", exc_info=failure)
    if cancelled is not None:
        raise cancelled


def _say(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"


def _check(duration: int, renew_deadline: float, retry: float) -> None:
    if not 0 < retry < renew_deadline < duration:
        raise ValueError(
            f"retry ({retry:g} s) must be shorter than renew_deadline ({renew_deadline:g} s), and that shorter than "
            f"duration ({duration} s): a leader has to stop before another may start"
        )
