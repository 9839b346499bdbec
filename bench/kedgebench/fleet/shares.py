"""Shares: whose CPU time it is, in a process that is a whole fleet.

Each role's tasks run in a context that names it (`belongs_to`), and what an API server computes for them is taken out
and counted as the servers'. Requests are counted with who made them. Needs the standard event loop, whose callbacks
can be timed one by one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.server import Server
from kedge.embedded.watch import Watch
from kedge.kube.transport import Request, Response

T = TypeVar("T")

HUB = "hub"
AGENTS = "agents"
SERVERS = "servers"
WORKLOADS = "workloads"
REST = "rest"
_role: ContextVar[str] = ContextVar("role", default=REST)


@contextmanager
def belongs_to(role: str) -> Iterator[None]:
    """What is started in here is this role's."""
    token = _role.set(role)
    try:
        yield
    finally:
        _role.reset(token)


class Shares:
    """Seconds of CPU time by role, and requests by role, verb and kind."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self._now = REST
        self._since = time.thread_time()

    def so_far(self) -> dict[str, float]:
        self._turn_to(self._now)
        return dict(self.seconds)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Time every callback of the running loop."""
        run = asyncio.Handle._run

        def timed(handle: Any) -> None:
            self._turn_to(handle._context.get(_role, REST))
            run(handle)
            self._turn_to(REST)

        setattr(asyncio.Handle, "_run", timed)  # noqa: B010  # the only place where all of them pass
        try:
            yield
        finally:
            setattr(asyncio.Handle, "_run", run)  # noqa: B010

    def take_out(self, server: Server) -> None:
        """Count what this server does as the servers', whoever asked for it."""
        answer, watch = server.handle, server.watch

        def handle(request: Request, caller: Caller = IN_PROCESS) -> Response:
            self.requests[_role.get(), request.method, _kind(request.path)] += 1
            return self._apart(lambda: answer(request, caller))

        def watched(request: Request, caller: Caller = IN_PROCESS) -> Watch | Response:
            return self._apart(lambda: watch(request, caller))

        server.handle = handle  # type: ignore[method-assign]
        server.watch = watched  # type: ignore[method-assign]

    def _apart(self, work: Callable[[], T]) -> T:
        """Do it in a context of the servers': so belongs what it starts."""
        asking = self._now
        self._turn_to(SERVERS)
        context = copy_context()
        context.run(_role.set, SERVERS)
        try:
            return context.run(work)
        finally:
            self._turn_to(asking)

    def _turn_to(self, role: str) -> None:
        now = time.thread_time()
        self.seconds[self._now] = self.seconds.get(self._now, 0.0) + now - self._since
        self._now, self._since = role, now


def _kind(path: str) -> str:
    """The plural in a path, with its subresource."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join([*parts[:1], *parts[2:]])
