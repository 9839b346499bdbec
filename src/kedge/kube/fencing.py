"""Fencing: keeps a process that does not lead from writing.

    acting = Client(FencedTransport(HttpsTransport(connection, before_send=election.guard), election))

A process may be stopped between deciding to write and writing, for longer than its leadership lasts. So leadership is
checked as late as possible: here, before a request is handed on, and again when it is written to a connection
(`before_send`). A few dozen microseconds remain between that check and the kernel. An `AlarmWatchdog` closes this
gap: a process that was stopped for too long does not wake up to use it. Requests sent earlier may still be in flight:
a write that must not happen twice carries a precondition as well.
"""

from __future__ import annotations

import ctypes
import signal
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kedge.kube.transport import Request, Response, Stream, Transport


class NotLeading(Exception):
    """A write was refused, unsent, because this process does not lead now."""


class Guard(Protocol):
    """Decides whether a request may be sent: an `Election`."""

    def guard(self, request: Request) -> None:
        """Raise `NotLeading` if it may not."""
        ...


class FencedTransport:
    """A transport that sends a write only while its guard allows it. Reads always pass."""

    def __init__(self, transport: Transport, election: Guard) -> None:
        self._transport = transport
        self._election = election

    async def send(self, request: Request, *, timeout: float) -> Response:
        self._election.guard(request)
        return await self._transport.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        self._election.guard(request)
        return self._transport.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._transport.close()


class Watchdog(Protocol):
    """Ends a process that does not postpone it in time."""

    def postpone(self, seconds: float) -> None:
        """End the process in this many seconds, and not earlier."""
        ...

    def disarm(self) -> None: ...


class AlarmWatchdog:
    """Ends this process, with code 14, unless it is postponed in time. One per process: it uses SIGALRM.

    The kernel counts, also while the process is stopped or frozen: on waking up it ends before it runs another
    instruction of its own. Suspension of the whole machine is not counted; the guard covers that. The handler is in C:
    one in Python would have to wait for the interpreter, and the default one does not end the first process of a
    container.
    """

    def __init__(self) -> None:
        if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            raise RuntimeError("SIGALRM is in use already: the watchdog needs it")
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        libc.signal.restype = ctypes.c_void_p
        libc.signal(signal.SIGALRM, ctypes.cast(libc._exit, ctypes.c_void_p))

    def postpone(self, seconds: float) -> None:
        # Zero would disarm it.
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
