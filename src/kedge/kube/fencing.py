"""Fence: keeps a process that does not lead from writing.

    acting = Client(Fenced(HttpsTransport(connection, before_send=election.guard), election))

A process may be stopped between deciding to write and writing, for longer than its leadership lasts. So it is asked
whether it leads as late as can be: here, before a request is handed on, and again in a transport that lets requests
wait for a connection, when one is written to it (`before_send`). Between that look and the kernel a few dozen
microseconds remain, which a `DeadMansSwitch` closes: a process that was stopped too long does not wake up to use them.
What was sent before may still be under way: what must not happen twice carries a precondition as well.
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
    """Who says whether a request may be sent: an `Election`."""

    def guard(self, request: Request) -> None:
        """Raise `NotLeading` if it may not."""
        ...


class Fenced:
    """A transport that sends only what its guard lets pass at that very moment. Reading goes on."""

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


class Switch(Protocol):
    """Something that has to be put off again and again."""

    def put_off(self, seconds: float) -> None:
        """Strike in so many seconds, and no earlier."""
        ...

    def disarm(self) -> None: ...


class DeadMansSwitch:
    """Ends this process, with code 14, unless it is put off in time. One per process: it takes SIGALRM.

    The kernel counts, and also while the process is stopped or frozen: on waking up it ends before it runs another
    instruction of its own. Suspension of the whole machine is not counted; for that there is the guard. A handler in C,
    since one in Python would have to wait for its turn, and none at all would not end the first process of a container.
    """

    def __init__(self) -> None:
        if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            raise RuntimeError("SIGALRM is in use already: without it there can be no dead man's switch")
        libc = ctypes.CDLL(None)
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        libc.signal.restype = ctypes.c_void_p
        libc.signal(signal.SIGALRM, ctypes.cast(libc._exit, ctypes.c_void_p))

    def put_off(self, seconds: float) -> None:
        # Zero would disarm it.
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
