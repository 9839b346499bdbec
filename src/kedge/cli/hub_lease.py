"""The Lease of the hub: it shows from outside whether the hub's controllers run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, Self

from kedge.api.coordination import Lease
from kedge.api.fleet import SYSTEM_NAMESPACE
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, KubeError, NotFound
from kedge.plan.explaining.freshness import holds_for, silent_since

LEASE: Final = "kedge-hub"
RECHECK_EVERY: Final = 1.0  # seconds, while a Lease looks old
POLL_EVERY: Final = 5.0  # seconds


async def hub_silent_since(client: Client) -> datetime | None:
    """When the hub last renewed its Lease, if that is too long ago. None if it renews it, or if we cannot read a Lease.

    A Lease may look old because the clocks of two machines differ. So we watch it for one lease duration.
    """
    lease = await _read(client)
    since = silent_since(lease, datetime.now(UTC))
    if lease is None or since is None or not lease.spec.holder_identity:
        return since
    deadline = asyncio.get_running_loop().time() + holds_for(lease).total_seconds()
    while asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(RECHECK_EVERY)
        found = await _read(client)
        if found is None or found.spec != lease.spec:
            return None
    return since


class LeaseWatcher:
    """Reads the hub's Lease again and again while the context is open."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self.since: datetime | None = None
        """As `hub_silent_since`."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._poll())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _poll(self) -> None:
        while True:
            with suppress(KubeError):  # whoever watches reports that the server does not answer
                self.since = await hub_silent_since(self._client)
            await asyncio.sleep(POLL_EVERY)


async def _read(client: Client) -> Lease | None:
    try:
        return await client.get(Lease, LEASE, SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):
        return None
