"""Credentials: who we are to one API server, now.

A transport asks for the current identity before each request, and reports an identity the server refused. What is
behind it (a fixed token, a file that rotates, a program that logs in) is its own affair, and never blocks the
event loop. No value here shows a secret when it is printed.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Protocol

from msgspec import Struct


class Unprinted:
    """Mixed into Structs that hold secrets: printing one, or a traceback that shows one, tells only its type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class ClientCertificate(Unprinted, Struct, frozen=True):
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: bytes


class Identity(Unprinted, Struct, frozen=True):
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


class Fixed(Struct, frozen=True):
    """An identity that does not change."""

    shown: Identity = Identity()

    def held(self) -> Identity:
        return self.shown

    async def identity(self) -> Identity:
        return self.shown

    def refused(self, identity: Identity) -> bool:  # noqa: ARG002 - part of the protocol
        return False


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
