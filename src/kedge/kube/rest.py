"""REST client: sends requests to one API server, with rate limit and retries, and reads the answers.

Every request keeps to the rate limit (`limits`), and is retried only where that cannot do a thing twice. It ends in a
2xx answer, or in a `KubeError`. A stream is opened once: its reader decides when to open it again. An answer that is
not what the API promises is raised as `NotUnderstood`.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias, TypeVar

from kedge.kube.codec import DECODE_ERRORS, Bookmark, Codec, Event, Page, Unreadable
from kedge.kube.errors import KubeError, NotUnderstood, Status, Unreachable, api_error, refusal
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream, Transport

T = TypeVar("T")
WatchEvents: TypeAlias = AsyncIterator[Event[T] | Event[Unreadable] | Bookmark]
log = logging.getLogger(__name__)


class RestClient:
    """Sends requests through a transport."""

    def __init__(
        self,
        transport: Transport,
        *,
        limiter: Limiter | None = None,
        retry: Retry | None = None,
        rng: random.Random | None = None,
        timeout: float = 30.0,
        flow: str = "",
        on_answer: Callable[[str, int], None] | None = None,
    ) -> None:
        """`flow` names the caller, for fairness; `on_answer` is told method and code of every answer (0: none)."""
        self.transport = transport
        self._limiter = limiter or Limiter()
        self._retry = retry or Retry()
        self._rng = rng or random.Random()
        self._timeout = timeout
        self._flow = flow
        self._on_answer = on_answer
        self._warned: set[str] = set()

    def with_options(self, *, flow: str | None = None, retry: Retry | None = None) -> RestClient:
        """The same client with another flow, or other retries."""
        other = copy.copy(self)
        other._flow = self._flow if flow is None else flow
        other._retry = retry or self._retry
        return other

    async def send(self, request: Request) -> Response:
        """The answer to a request."""
        attempt = 1
        while True:
            if not self._limiter.try_acquire():
                await self._limiter.acquire(self._flow)
            try:
                return await self._send_once(request)
            except KubeError as error:
                delay = self._retry.delay(error, attempt, self._rng)
                if delay is None:
                    raise
            attempt += 1
            await asyncio.sleep(delay)

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[Stream]:
        """An open stream. If it breaks while it is used, that is raised as `Unreachable` too."""
        await self._limiter.acquire(self._flow)
        try:
            async with self.transport.stream(request, timeout=self._timeout, silence=silence) as stream:
                self._count(request, stream.status)
                if stream.status != 200:
                    raise refusal(request, Response(stream.status, await stream.read(), stream.headers))
                yield stream
        except ConnectionFailed as error:
            self._count(request, 0)
            raise Unreachable(request, str(error), maybe_done=False) from error

    async def _send_once(self, request: Request) -> Response:
        try:
            response = await self.transport.send(request, timeout=self._timeout)
        except ConnectionFailed as error:
            self._count(request, 0)
            raise Unreachable(request, str(error), maybe_done=error.sent) from error
        self._count(request, response.status)
        if "warning" in response.headers:
            self._warn(request, response)
        if 200 <= response.status < 300:
            return response
        raise refusal(request, response)

    def _count(self, request: Request, code: int) -> None:
        if self._on_answer is not None:
            self._on_answer(request.method, code)

    def _warn(self, request: Request, response: Response) -> None:
        """Log each warning of the server once: it repeats them with every request."""
        for text in response.warnings:
            if text not in self._warned:
                self._warned.add(text)
                log.warning("the API server warns: %s", text, extra={"request": f"{request.method} {request.path}"})


# Answers


def read_object(form: Codec[T], request: Request, response: Response) -> T:
    try:
        return form.one(response.body)
    except DECODE_ERRORS as error:
        raise NotUnderstood(request, f"the answer is no {form.resource.kind}: {error}") from error


def read_page(form: Codec[T], request: Request, response: Response) -> Page[T]:
    try:
        return form.page(response.body)
    except DECODE_ERRORS as error:
        raise NotUnderstood(request, f"the answer is no list of {form.resource.kind}: {error}") from error


async def read_events(form: Codec[T], request: Request, stream: Stream) -> WatchEvents[T]:
    """The events of a watch, as they arrive. The error with which a server ends a watch is raised."""
    async for line in stream.lines():
        try:
            event = form.event(line)
        except DECODE_ERRORS as error:
            raise NotUnderstood(request, f"a watch event that is no JSON: {error}") from error
        if isinstance(event, Status):
            raise api_error(request, event)
        yield event
