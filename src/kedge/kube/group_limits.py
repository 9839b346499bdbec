"""Group limits: a transport that measures each request, and one with a rate limit for each API group.

    transport = GroupLimitedTransport(MeasuredTransport(transport, metrics), qps=5, burst=10, metrics=metrics)

Each group has a token bucket of its own, so that a burst of requests for pods does not hold up StatefulSets. Events
have a bucket of their own too, though they are of the core group: what is reported must not hold up what is done.
The wait for a token is bounded by the time-out of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from kedge.kube.api_paths import CORE, group_of, resource_of
from kedge.kube.client_metrics import ClientMetrics
from kedge.kube.limits import Limiter
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream, Transport


class MeasuredTransport:
    """A transport that says of every request how long its answer took; of a stream, how long until it began."""

    def __init__(self, transport: Transport, metrics: ClientMetrics) -> None:
        self._transport = transport
        self._metrics = metrics

    async def send(self, request: Request, *, timeout: float) -> Response:
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            response = await self._transport.send(request, timeout=timeout)
            status = response.status
        finally:
            self._answered(request, status, started)
        return response

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request, timeout, silence)

    async def close(self) -> None:
        await self._transport.close()

    @asynccontextmanager
    async def _stream(self, request: Request, timeout: float, silence: float) -> AsyncIterator[Stream]:
        started = asyncio.get_running_loop().time()
        opened = False
        try:
            async with self._transport.stream(request, timeout=timeout, silence=silence) as stream:
                opened = True
                self._answered(request, stream.status, started)
                yield stream
        finally:
            if not opened:
                self._answered(request, 0, started)

    def _answered(self, request: Request, status: int, started: float) -> None:
        seconds = asyncio.get_running_loop().time() - started
        self._metrics.answered(request.method, request.path, status, seconds)


class GroupLimitedTransport:
    """A transport that sends at most `qps` requests a second of each API group, and `burst` at once. 0: no limit."""

    def __init__(self, transport: Transport, *, qps: float, burst: int, metrics: ClientMetrics) -> None:
        self._transport = transport
        self._qps = qps
        self._burst = burst
        self._metrics = metrics
        self._limiters: dict[tuple[str, bool], Limiter] = {}

    async def send(self, request: Request, *, timeout: float) -> Response:
        await self._wait(request, timeout)
        return await self._transport.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request, timeout, silence)

    async def close(self) -> None:
        await self._transport.close()

    @asynccontextmanager
    async def _stream(self, request: Request, timeout: float, silence: float) -> AsyncIterator[Stream]:
        await self._wait(request, timeout)
        async with self._transport.stream(request, timeout=timeout, silence=silence) as stream:
            yield stream

    async def _wait(self, request: Request, timeout: float) -> None:
        """Wait for a token, for as long as the request may take."""
        group = group_of(request.path)
        limiter = self._limiter(group, is_event=resource_of(request.path).startswith(f"{CORE}/v1/events "))
        if limiter.try_acquire():
            return
        self._metrics.delayed(group)
        try:
            async with asyncio.timeout(timeout):
                await limiter.acquire(group)
        except TimeoutError:
            self._metrics.limited(group)
            raise ConnectionFailed(
                f'client-side rate limiter for Kubernetes API group "{group}": context deadline exceeded', sent=False
            ) from None
        except asyncio.CancelledError:
            self._metrics.limited(group)
            raise

    def _limiter(self, group: str, *, is_event: bool) -> Limiter:
        key = (group, is_event)
        if key not in self._limiters:
            self._limiters[key] = Limiter(self._qps, self._burst)
        return self._limiters[key]
