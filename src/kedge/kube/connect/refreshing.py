"""Credentials that change: read again, or issued again, while requests go on.

Promises: concurrent callers share one attempt, and a caller that gives up does not end it for the others. An identity
is renewed in the background a little before it expires, at once after a server refused it, and, if asked to,
every so many seconds. While a renewal fails, an identity that is still good stays in use. After an attempt
there is no other for `pause` seconds, so a server that keeps answering 401 cannot make a program run in a loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec import Struct

from kedge.kube.clock import Clock
from kedge.kube.connect.credentials import CredentialsFailed, Identity

EARLY = timedelta(minutes=1)
"""How long before its end an identity is renewed; a fifth of its life, if that is shorter."""

log = logging.getLogger(__name__)


class Issued(Struct, frozen=True):
    """An identity, when it ends, and when to ask for the next; `EARLY`, unless that is said."""

    identity: Identity
    expires: datetime | None = None
    renew_at: datetime | None = None


class Refreshing:
    """Credentials from a source that issues them anew."""

    def __init__(
        self,
        obtain: Callable[[], Awaitable[Issued]],
        *,
        clock: Clock,
        every: float | None = None,
        pause: float = 0.0,
    ) -> None:
        """`obtain` gets an identity or raises `CredentialsFailed`; `every` and `pause` are seconds."""
        self._obtain = obtain
        self._clock = clock
        self._every = every
        self._pause = pause
        self._held: Issued | None = None
        self._renew_at: datetime | None = None
        self._refused = False
        self._tried_at: float | None = None
        self._failure: str | None = None
        self._attempt: asyncio.Task[None] | None = None

    def held(self) -> Identity | None:
        held = self._held
        if held is None or not self._good(held) or self._due():
            return None
        if self._renew_at is not None and self._clock.now() >= self._renew_at:
            self._try()
        return held.identity

    async def identity(self) -> Identity:
        held = self.held()
        if held is not None:
            return held
        await self._renewed()
        return self._best()

    def refused(self, identity: Identity) -> bool:
        if self._held is not None and self._held.identity != identity:
            return True  # renewed since: whoever asks again gets another one
        self._refused = True
        return not self._tried_lately()

    def _good(self, held: Issued) -> bool:
        return not self._refused and (held.expires is None or self._clock.now() < held.expires)

    def _due(self) -> bool:
        if self._every is None or self._tried_at is None:
            return False
        return asyncio.get_running_loop().time() - self._tried_at >= self._every

    def _best(self) -> Identity:
        if self._held is not None and (self._failure is None or self._good(self._held)):
            return self._held.identity
        raise CredentialsFailed(self._failure)

    async def _renewed(self) -> None:
        attempt = self._try()
        if attempt is not None:
            await asyncio.shield(attempt)

    def _try(self) -> asyncio.Task[None] | None:
        """The attempt under way, or a new one; none if the last was a moment ago."""
        if self._attempt is None and not self._tried_lately():
            self._attempt = asyncio.create_task(self._renew())
            self._attempt.add_done_callback(self._tried)
        return self._attempt

    def _tried_lately(self) -> bool:
        if self._attempt is not None or self._tried_at is None:
            return False
        return asyncio.get_running_loop().time() - self._tried_at < self._pause

    def _tried(self, attempt: asyncio.Task[None]) -> None:
        self._attempt = None
        self._tried_at = attempt.get_loop().time()
        # Asked here too, since every caller may have given up; what failed in an unforeseen way may show a secret.
        if not attempt.cancelled() and (error := attempt.exception()):
            self._failure = f"credentials could not be had: {type(error).__name__}"

    async def _renew(self) -> None:
        try:
            held = await self._obtain()
        except CredentialsFailed as failure:
            self._failure = str(failure)
            if self._held is not None and self._good(self._held):
                log.warning("credentials not renewed, those at hand stay in use: %s", failure)
            return
        self._held, self._failure, self._refused = held, None, False
        self._renew_at = held.renew_at or self._early(held.expires)

    def _early(self, expires: datetime | None) -> datetime | None:
        if expires is None:
            return None
        return expires - min(EARLY, (expires - self._clock.now()) / 5)
