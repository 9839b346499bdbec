"""An identity kept in files: a token, a client certificate and its key, which others rotate under us.

Each part is given in place or by path. Promises: files are read off the event loop, again once a minute (as often as
the kubelet and client-go assume), and at once after a server refused what was in them. Refuses files that are
missing, unreadable or empty, by name.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from kedge.kube.clock import Clock
from kedge.kube.connect.credentials import (
    ClientCertificate,
    Credentials,
    CredentialsFailed,
    FixedCredentials,
    Identity,
    IssuedIdentity,
    Redacted,
    RefreshingCredentials,
    bearer,
)

READ_AGAIN = 60.0
"""Seconds. A projected token is replaced at 80 % of a life of at least ten minutes."""


class IdentityFiles(Redacted, Struct, frozen=True):
    """The parts of an identity, each in place or by path."""

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
