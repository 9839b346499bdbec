"""Renewing: credentials that are a service account's token, and ask for the next one before it ends.

    renewal = Renewal(token, transport=as_token, read=read, save=save, clock=clock, remedy="write a new one there")
    connection = replace(connection, credentials=renewal.credentials())

A token is renewed after half of its life. The new one is saved, so that a process that starts later finds it; what
cannot be saved is used all the same. If the place it is kept in holds a newer one, which somebody put there, that is
taken. One that has ended cannot be renewed: then `remedy` says what to do, and the place is looked at again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from kedge.kube.clock import Clock
from kedge.kube.connect.credentials import Credentials, CredentialsFailed, Identity, bearer
from kedge.kube.connect.refreshing import Issued, Refreshing
from kedge.kube.connect.service_tokens import ServiceToken, request_token, service_token
from kedge.kube.transport import Transport

PAUSE: Final = 60.0
"""Seconds between two attempts."""

log = logging.getLogger(__name__)


class NotSaved(Exception):
    """A token could not be kept where it belongs; the message says why."""


class Renewal:
    """The token of one account."""

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
        return Refreshing(self.obtain, clock=self._clock, pause=PAUSE)

    async def obtain(self) -> Issued:
        """The token to use now: the one at hand, the one that is kept, or the next."""
        await self._take_what_is_kept()
        now, token = self._clock.now(), self._token
        if now >= token.expires:
            at = f"{token.expires:%Y-%m-%dT%H:%M:%SZ}"
            raise CredentialsFailed(f"the token of {token.account} ended at {at}: {self._remedy}")
        if now >= token.renew_at:
            self._token = token = await self._renewed(token)
            await self._keep(token)
        return Issued(_identity(token), token.expires, token.renew_at)

    async def _take_what_is_kept(self) -> None:
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
