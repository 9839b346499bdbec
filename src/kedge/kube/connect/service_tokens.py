"""Service tokens: the tokens of service accounts: reading one, requesting the next one, and renewing it in time.

    token = service_token(text)               # None if it is not of a service account, or does not expire
    token = await request_token(transport, "fleet-system", "agent", timedelta(hours=1))
    renewal = Renewal(token, transport=as_token, read=read, save=save, clock=clock, remedy="write a new one there")
    connection = replace(connection, credentials=renewal.credentials())

The claims of a token are read, not verified: the server does that. No error shows a token.
"""

from __future__ import annotations

import binascii
import logging
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from kedge.api.redacted import Redacted
from kedge.kube.clock import Clock
from kedge.kube.connect.credentials import (
    Credentials,
    CredentialsFailed,
    Identity,
    IssuedIdentity,
    RefreshingCredentials,
    bearer,
)
from kedge.kube.transport import ConnectionFailed, Request, Transport

SHORTEST: Final = timedelta(minutes=10)
"""The shortest life an API server gives a token."""
_SUBJECT: Final = "system:serviceaccount:"
_SECONDS: Final = 30.0
PAUSE: Final = 60.0
"""Seconds between two attempts to renew a token."""

log = logging.getLogger(__name__)


class ServiceToken(Redacted, Struct, frozen=True):
    """A token of a service account, and the times between which it is good."""

    text: str
    namespace: str
    account: str
    issued: datetime
    expires: datetime

    @property
    def life(self) -> timedelta:
        return self.expires - self.issued

    @property
    def renew_at(self) -> datetime:
        """Half of its life before it ends: a hub that cannot be reached for shorter than that locks nobody out."""
        return self.issued + self.life / 2


class _Claims(Struct, frozen=True):
    sub: str = ""
    exp: float | None = None
    iat: float | None = None


class _TokenStatus(Struct, frozen=True):
    token: str = ""


class _TokenRequest(Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


def service_token(text: str) -> ServiceToken | None:
    """What a token says of itself; None if it is no service account's, or says no end."""
    parts = text.strip().split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    namespace, colon, account = claims.sub.removeprefix(_SUBJECT).partition(":")
    if not claims.sub.startswith(_SUBJECT) or not colon or claims.exp is None or claims.iat is None:
        return None
    return ServiceToken(text.strip(), namespace, account, _time(claims.iat), _time(claims.exp))


async def request_token(transport: Transport, namespace: str, account: str, life: timedelta) -> ServiceToken:
    """A new token for an account, of at least the shortest life. Raises `CredentialsFailed`."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": round(max(life, SHORTEST).total_seconds())},
    }
    try:
        answer = await transport.send(Request("POST", path, body=msgspec.json.encode(wanted)), timeout=_SECONDS)
    except ConnectionFailed as error:
        raise CredentialsFailed(f"no new token for {account}: {error}") from None
    if answer.status not in (200, 201):
        raise CredentialsFailed(f"no new token for {account}: {_refusal(namespace, account, answer.status)}")
    try:
        made = service_token(msgspec.json.decode(answer.body, type=_TokenRequest).status.token)
    except msgspec.MsgspecError:
        made = None
    if made is None:
        raise CredentialsFailed(f"no new token for {account}: the server's answer holds none")
    return made


def _refusal(namespace: str, account: str, status: int) -> str:
    if status == 403:
        return (
            f"nobody allows to ask for one (create serviceaccounts/token of {account} in {namespace}): "
            "`kedge join` for the same member grants it"
        )
    return f"the server answered {status}"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class NotSaved(Exception):
    """A token could not be kept where it belongs; the message says why."""


class Renewal:
    """Renews the token of one account after half of its lifetime.

    The new token is saved, so that a process that starts later finds it; one that cannot be saved is used all the same.
    If somebody put a newer token where it is saved, that one is used. An expired token cannot be renewed: then `remedy`
    says what to do, and the saved one is read again.
    """

    def __init__(
        self,
        token: ServiceToken,
        *,
        transport: Callable[[Identity], Transport],
        read: Callable[[], Awaitable[str]],
        save: Callable[[str], Awaitable[None]],
        clock: Clock,
        remedy: str,
    ) -> None:
        """`transport` reaches the server as somebody; `read` gives the token that is kept, `save` keeps another."""
        self._token = token
        self._transport = transport
        self._read = read
        self._save = save
        self._clock = clock
        self._remedy = remedy

    def credentials(self) -> Credentials:
        """For a connection."""
        return RefreshingCredentials(self.obtain, clock=self._clock, pause=PAUSE)

    async def obtain(self) -> IssuedIdentity:
        """The token to use now: the one at hand, the one that is kept, or the next."""
        await self._use_saved_token()
        now, token = self._clock.now(), self._token
        if now >= token.expires:
            at = f"{token.expires:%Y-%m-%dT%H:%M:%SZ}"
            raise CredentialsFailed(f"the token of {token.account} ended at {at}: {self._remedy}")
        if now >= token.renew_at:
            self._token = token = await self._renewed(token)
            await self._keep(token)
        return IssuedIdentity(_identity(token), token.expires, token.renew_at)

    async def _use_saved_token(self) -> None:
        with suppress(CredentialsFailed):
            kept = service_token(await self._read())
            if kept is not None and kept.expires > self._token.expires:
                self._token = kept

    async def _renewed(self, token: ServiceToken) -> ServiceToken:
        transport = self._transport(_identity(token))
        try:
            return await request_token(transport, token.namespace, token.account, token.life)
        finally:
            await transport.close()

    async def _keep(self, token: ServiceToken) -> None:
        try:
            await self._save(token.text)
        except NotSaved as error:
            until = f"{token.expires:%Y-%m-%dT%H:%M:%SZ}"
            log.warning("the renewed token of %s is not saved: %s; it is good until %s", token.account, error, until)
        else:
            log.info("the token of %s is renewed, until %s", token.account, f"{token.expires:%Y-%m-%dT%H:%M:%SZ}")


def _identity(token: ServiceToken) -> Identity:
    return Identity(authorization=bearer(token.text))
