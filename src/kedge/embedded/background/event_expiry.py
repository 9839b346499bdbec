"""Event expiry: deletes events an hour after they were last written, as Kubernetes does."""

from __future__ import annotations

import asyncio
from collections import deque

from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import APISERVER
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.codec import DELETED
from kedge.kube.transport import Request

EVENTS = Resource("", "v1", "Event", "events")
EVENT_TTL = 3600.0


class EventExpiry:
    """Deletes expired events, from `start` to `stop`. One timer for all of them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._written: deque[tuple[float, str, int]] = deque()  # when, which event, and its version; oldest first
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        server.store.subscribe(self._on_change)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._schedule()

    def stop(self) -> None:
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind.resource == EVENTS and change.type != DELETED and self._loop is not None:
            self._written.append((self._loop.time(), change.version.key, change.version.number))
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is None and self._written and self._loop is not None:
            self._timer = self._loop.call_at(self._written[0][0] + EVENT_TTL, self._delete_expired)

    def _delete_expired(self) -> None:
        self._timer = None
        assert self._loop is not None, "a timer that was cancelled does not fire"
        while self._written and self._written[0][0] + EVENT_TTL <= self._loop.time():
            _, key, number = self._written.popleft()
            found = self._server.store.all(Kind(EVENTS)).get(key)
            if found is not None and found.number == number and self._server.running:
                self._server.handle(Request("DELETE", EVENTS.path(found.namespace, found.name)), APISERVER)
        self._schedule()
