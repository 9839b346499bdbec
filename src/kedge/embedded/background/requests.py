"""Requests: how a background controller writes: as any client does, so that webhooks are asked about it too.

Without webhooks a request is answered at once, before `send` returns. With webhooks it goes on by itself; the same
request is not sent a second time meanwhile, and one that was refused is tried again after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.kube.transport import Request

RETRY_SECONDS = 1.0
_OUTDATED = (404, 409)  # the object changed or is gone: that change brings it back


class BackgroundRequests:
    """The requests of one background controller."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}

    def send(self, request: Request, caller: Caller, again: Callable[[], None]) -> None:
        """Send a request. `again` is called some time after a webhook refused it."""
        key = (request.method, request.path)
        if not self._server.has_webhooks:
            self._server.handle(request, caller)
        elif key not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._carry_out(request, caller, again))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))

    def stop(self) -> None:
        """Give up what is under way."""
        for task in tuple(self._under_way.values()):
            task.cancel()

    async def _carry_out(self, request: Request, caller: Caller, again: Callable[[], None]) -> None:
        response = await self._server.respond(request, caller)
        if response.status >= 400 and response.status not in _OUTDATED:
            await asyncio.sleep(RETRY_SECONDS)
            again()
