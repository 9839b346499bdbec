"""Kinds: what a cluster serves, as it said when it was last asked.

It is asked again when a kind is missing: a definition may have come since.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.discovery import discover

FRESH: Final = 0.2  # seconds: many that miss a kind at once ask once


class Kinds:
    """The kinds of one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client.as_flow("discovery")
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._asked = asyncio.Lock()
        self._asked_at: float | None = None

    def lookup(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource of a kind, as far as is known."""
        return self._served.get((group, version, kind))

    async def find(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind; None if the cluster serves no such kind. Raises `KubeError` if it does not say."""
        group, _, version = api_version.rpartition("/")
        if self.lookup(group, version, kind) is None:
            await self.ask()
        return self.lookup(group, version, kind)

    async def ask(self) -> None:
        """Ask the cluster what it serves. Raises `KubeError` if it does not say."""
        now = asyncio.get_running_loop().time
        async with self._asked:
            if self._asked_at is not None and now() - self._asked_at < FRESH:
                return
            found = await discover(self._client)
            writable = (one.resource for one in found.kinds if one.can("create", "get"))
            self._served = {(one.group, one.version, one.kind): one for one in writable}
            self._asked_at = now()
