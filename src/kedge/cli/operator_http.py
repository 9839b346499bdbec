"""The plain HTTP server of an operator: `/metrics`, `/ready`, `/healthz` and `/readyz`.

`/ready` is the peer's: 200 or 500, without a body. It is 500 until controllers are there and their caches are in sync.
`/debug/pprof` is a way of Go programs to look inside; a Python process has none, and says so with a 404.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry

from kedge.kube.health import Address, Check, Health, is_ready, served

STARTING: Final = Check("start", "the controllers have not been started yet")
NO_PPROF: Final = "this process has no pprof: it is written in Python; `py-spy dump --pid PID` shows what it does\n"


class OperatorHttp:
    """Answers for one process, from before it knows its cluster. `watch` gives it the checks of a manager."""

    def __init__(self, registry: CollectorRegistry, middlewares: Sequence[Middleware] = ()) -> None:
        self._checks: Callable[[], list[Check]] = lambda: [STARTING]
        self._health = Health(self.checks, registry)
        self._middlewares = tuple(middlewares)

    def watch(self, checks: Callable[[], list[Check]]) -> None:
        """Readiness is by these checks from now on."""
        self._checks = checks

    def checks(self) -> list[Check]:
        return self._checks()

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[str]:
        """Listen until the context is left; gives the URL. Raises OSError if the address cannot be had."""
        app = web.Application(middlewares=self._middlewares)
        app.add_routes(self._health.routes())
        app.add_routes([web.get("/ready", self._ready), web.get("/debug/pprof{rest:.*}", self._pprof)])
        async with served(app, address) as url:
            yield url

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if is_ready(self.checks()) else 500)

    async def _pprof(self, _: web.Request) -> web.Response:
        return web.Response(status=404, text=NO_PPROF)
