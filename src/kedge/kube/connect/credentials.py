"""Credentials: who we are to one API server, now. Fixed, in files, or refreshed while requests go on.

A transport asks for the current identity before each request, and reports an identity that the server refused. The
source of an identity (a fixed token, a file that rotates, a program that logs in) never blocks the event loop. No value
here shows a secret when it is printed.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kedge.api.redacted import Redacted
from kedge.kube.clock import Clock

EARLY = timedelta(minutes=1)
"""How long before its end an identity is renewed; a fifth of its lifetime, if that is shorter."""

READ_AGAIN = 60.0
"""Seconds between two reads of files. A projected token is replaced at 80 % of a lifetime of at least ten minutes."""

log = logging.getLogger(__name__)


class ClientCertificate(Redacted, Struct, frozen=True):
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: bytes


class Identity(Redacted, Struct, frozen=True):
    """What to show the server. Either, both or neither; empty is anonymous."""

    authorization: str | None = None
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Where identities come from."""

    def held(self) -> Identity | None:
        """The identity to use now, if it is at hand; asking for it (`identity`) may take time."""
        ...

    async def identity(self) -> Identity:
        """The identity to use now. Raises `CredentialsFailed` if there is none to be had."""
        ...

    def refused(self, identity: Identity) -> bool:
        """The server answered 401 to this identity. True if a fresh one may be had by asking again."""
        ...


class CredentialsFailed(Exception):
    """No identity could be had; the message says from where, and what to do."""


class FixedCredentials(Struct, frozen=True):
    """An identity that does not change."""

    shown: Identity = Identity()

    def held(self) -> Identity:
        return self.shown

    async def identity(self) -> Identity:
        return self.shown

    def refused(self, identity: Identity) -> bool:  # noqa: ARG002 - part of the protocol
        return False


class IssuedIdentity(Struct, frozen=True):
    """An identity, when it expires, and when to ask for the next one (default: `EARLY`)."""

    identity: Identity
    expires: datetime | None = None
    renew_at: datetime | None = None


class RefreshingCredentials:
    """Credentials from a source that issues them again and again.

    Concurrent callers share one attempt, and a caller that gives up does not end it for the others. An identity is
    renewed in the background a little before it expires, at once after a server refused it, and `every` so many
    seconds. While a renewal fails, an identity that is still valid stays in use. After an attempt there is no other for
    `pause` seconds, so a server that keeps answering 401 cannot make a program run in a loop.
    """

    def __init__(
        self,
        obtain: Callable[[], Awaitable[IssuedIdentity]],
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
        self._held: IssuedIdentity | None = None
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

    def _good(self, held: IssuedIdentity) -> bool:
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


class IdentityFiles(Redacted, Struct, frozen=True):
    """An identity in files that others rotate: a token, a client certificate and its key, each in place or by path.

    Files are read outside of the event loop, again once a minute (as often as the kubelet and client-go assume), and at
    once after a server refused their content. Missing, unreadable and empty files are refused by name.
    """

    authorization: str | None = None
    token_file: Path | None = None
    certificate: bytes | Path | None = None
    key: bytes | Path | None = None

    @property
    def may_change(self) -> bool:
        return any(isinstance(part, Path) for part in (self.token_file, self.certificate, self.key))

    def credentials(self, clock: Clock) -> Credentials:
        """Fixed if all is in place, else read again now and then. Reads the files once, so that errors show early."""
        identity = self.read()
        if not self.may_change:
            return FixedCredentials(identity)
        return RefreshingCredentials(self._read_elsewhere, clock=clock, every=READ_AGAIN)

    def read(self) -> Identity:
        """What the files hold now. Blocks."""
        return Identity(self._authorization(), self._certificate())

    async def _read_elsewhere(self) -> IssuedIdentity:
        return IssuedIdentity(await asyncio.to_thread(self.read))

    def _authorization(self) -> str | None:
        if self.token_file is None:
            return self.authorization
        try:
            return bearer(_content(self.token_file).decode(errors="replace"))
        except ValueError as error:
            raise CredentialsFailed(f"{self.token_file}: {error}") from None
        except CredentialsFailed:
            if self.authorization is None:
                raise
            return self.authorization  # as client-go: the file wins while it can be read

    def _certificate(self) -> ClientCertificate | None:
        if self.certificate is None or self.key is None:
            return None
        return ClientCertificate(_content(self.certificate), _content(self.key))


def _content(part: bytes | Path) -> bytes:
    if isinstance(part, bytes):
        return part
    try:
        content = part.read_bytes()
    except OSError as error:
        raise CredentialsFailed(f"{part} cannot be read: {error.strerror}") from error
    if not content.strip():
        raise CredentialsFailed(f"{part} is empty")
    return content


def bearer(token: str) -> str:
    """The `Authorization` that shows a token. Refuses one that cannot be put in a header."""
    token = token.strip()
    if not token:
        raise ValueError("the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the token holds spaces, line breaks or other characters that no token has")
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    """The `Authorization` that shows a user name and a password."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()
