"""Health: `/healthz`, `/readyz` and `/metrics` over HTTP, for whoever runs the process.

`/healthz` answers as long as the event loop runs: a component that crashes ends the process, so there is nothing else
to check. `/readyz` lists every check, a line each, and is 503 while a required one fails; the others are for
information. It serves no secrets and takes no input, and listens only where it is told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


class Address(Struct, frozen=True):
    """Where to listen. The default reaches this machine only, an empty host every network, by IPv4 and IPv6.

    `::` would be IPv6 alone: asyncio binds it so. Port 0: any free one.
    """

    host: str = "127.0.0.1"
    port: int = 8081


class Check(Struct, frozen=True):
    """One thing that may be wrong: an empty problem is none."""

    name: str
    problem: str = ""
    required: bool = True

    @property
    def line(self) -> str:
        if not self.problem:
            return f"[+] {self.name} ok"
        return f"[{'-' if self.required else '~'}] {self.name}: {self.problem}"


def is_ready(checks: list[Check]) -> bool:
    return not any(check.problem and check.required for check in checks)


@asynccontextmanager
async def served(app: web.Application, address: Address) -> AsyncIterator[str]:
    """Serve an application over plain HTTP until the context is left; gives the URL. Raises OSError if it cannot."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host, address.port).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await runner.cleanup()


class Health:
    """Answers for one process. `checks` is asked anew each time."""

    def __init__(self, checks: Callable[[], list[Check]], registry: CollectorRegistry) -> None:
        self._checks = checks
        self._registry = registry

    @asynccontextmanager
    async def serve(self, address: Address) -> AsyncIterator[str]:
        """Listen until the context is left; gives the URL. Raises OSError if the address cannot be had."""
        app = web.Application()
        app.add_routes(self.routes())
        async with served(app, address) as url:
            yield url

    def routes(self) -> list[web.RouteDef]:
        """What it answers, for an application that answers more."""
        return [
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
        ]

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        checks = self._checks()
        ready = is_ready(checks)
        lines = [check.line for check in checks] + ["ready" if ready else "not ready"]
        return web.Response(text="\n".join(lines) + "\n", status=200 if ready else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Thousands of label sets take a tenth of a second to write, and reading /proc blocks: not on the loop.
        body = await asyncio.to_thread(encode, self._registry)
        return web.Response(body=body, headers={"Content-Type": content_type})
