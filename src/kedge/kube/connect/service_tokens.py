"""Service tokens: what a service account's token says of itself, and how another is asked for.

    token = service_token(text)               # None if it is no service account's, or says no end
    token = await request_token(transport, "fleet-system", "agent", timedelta(hours=1))

What a token says is read, not verified: that is for the server it is shown to. Promises that no error shows a token.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from kedge.kube.connect.credentials import CredentialsFailed, Unprinted
from kedge.kube.transport import ConnectionFailed, Request, Transport

SHORTEST: Final = timedelta(minutes=10)
"""The shortest life an API server gives a token."""
_SUBJECT: Final = "system:serviceaccount:"
_SECONDS: Final = 30.0


class ServiceToken(Unprinted, Struct, frozen=True):
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
