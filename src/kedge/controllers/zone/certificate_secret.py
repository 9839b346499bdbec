"""Certificate Secret: the one Secret that holds the certificate of a webhook server.

It is read, created and updated by name, and never listed or watched: nothing more is granted for it. An update carries
the resourceVersion that was read, so of two replicas one is first, and the other reads again.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.core import Secret
from kedge.api.redacted import Redacted
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import AlreadyExists, NotFound, as_conflict
from kedge.plan.zoning.certificate import CA, CERT, KEY, NEXT_CERT, NEXT_KEY

MANAGER: Final = "kedge-certificates"
_SECRETS: Final = untyped(Secret.resource)
_OURS: Final = frozenset({CA, CERT, KEY, NEXT_CERT, NEXT_KEY})


class ReadSecret(Redacted, Struct, frozen=True):
    """The Secret as it was read, and its data."""

    body: Untyped
    data: Mapping[str, bytes]


class CertificateSecret:
    """One Secret, by name."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    def __str__(self) -> str:
        return f"Secret {self._namespace}/{self._name}"

    async def read(self) -> ReadSecret | None:
        """The newest there is; None if there is none."""
        try:
            body = await self._client.get(_SECRETS, self._name, self._namespace)
        except NotFound:
            return None
        return ReadSecret(body, {name: _decoded(value) for name, value in (body.get("data") or {}).items()})

    async def write(self, data: Mapping[str, bytes], before: ReadSecret | None) -> None:
        """Store this in place of what was read. A Conflict if that has changed, or somebody else created it."""
        if before is None:
            await self._create(data)
            return
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        others = {name: value for name, value in (before.body.get("data") or {}).items() if name not in _OURS}
        try:
            await self._client.replace(_SECRETS, {**before.body, "data": others | encoded}, manager=MANAGER)
        except NotFound as error:
            raise as_conflict(error) from error

    async def _create(self, data: Mapping[str, bytes]) -> None:
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "data": encoded}
        try:
            await self._client.create(_SECRETS, body, manager=MANAGER)
        except AlreadyExists as error:
            raise as_conflict(error) from error


def _decoded(value: Any) -> bytes:
    """The bytes of a value; none if it is no base64."""
    try:
        return b64decode(value or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return b""
