"""The Lease of the hub: whether its controllers are at work, as far as can be told from outside."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Self

from kedge.api.coordination import Lease
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, KubeError, NotFound
from kedge.plan.telling.freshness import holds_for, silent_since

LEASE: Final = "kedge-hub"
BETWEEN_LOOKS: Final = 1.0  # seconds, at a Lease that looks old
LISTENS_EVERY: Final = 5.0  # seconds


async def hub_silent_since(client: Client) -> datetime | None:
    """Since when the hub was not heard from; None if it is heard, or has no Lease that one may see.

    A Lease that looks old may be one of a machine whose clock differs: it is watched for as long as it holds.
    """
    lease = await _read(client)
    since = silent_since(lease, datetime.now(UTC))
    if lease is None or since is None or not lease.spec.holder_identity:
        return since
    deadline = asyncio.get_running_loop().time() + holds_for(lease).total_seconds()
    while asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(BETWEEN_LOOKS)
        found = await _read(client)
        if found is None or found.spec != lease.spec:
            return None
    return since


class Listening:
    """Listens to the hub for as long as the context is open."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self.since: datetime | None = None
        """Since when it was not heard from; None if it is."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            with suppress(KubeError):  # that the server does not answer is said by who follows
                self.since = await hub_silent_since(self._client)
            await asyncio.sleep(LISTENS_EVERY)


async def _read(client: Client) -> Lease | None:
    try:
        return await client.get(Lease, LEASE, SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):
        return None
