"""Confirmations: whether a downscale that was allowed was stored in the end.

Another webhook, a quota or a lost connection may still stop it afterwards, and nobody tells. Its pods would stay
prepared for a shutdown that never comes, and the other zones would wait for nothing. So the StatefulSet is looked at
again once the API server must have decided: if its generation is the same, the downscale did not happen, and is undone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from kedge.api.apps import StatefulSet
from kedge.kube.client import Client
from kedge.kube.errors import KubeError, NotFound
from kedge.plan.zoning.downscale import was_not_stored
from kedge.plan.zoning.replica_change import Downscale

AFTER: Final = 65.0
"""An API server ends every request after a minute, unless it is told otherwise."""
_LOOKS: Final = 5
log = logging.getLogger(__name__)


class Confirmations:
    """The downscales of one process that are not confirmed yet, one for each zone."""

    def __init__(self, client: Client, *, after: float = AFTER) -> None:
        self._client = client
        self._after = after
        self._open: dict[tuple[str, str], asyncio.Task[None]] = {}

    def expect(self, zone: StatefulSet, downscale: Downscale, undo: Callable[[], Awaitable[bool]]) -> None:
        """Look later whether a downscale of this zone was stored, instead of what was expected of it before.

        `undo` is called if it was not; it says whether it could do so now.
        """
        key = (downscale.namespace, downscale.name)
        self.forget(key)
        task = asyncio.create_task(self._confirm(zone, downscale, undo))
        self._open[key] = task
        task.add_done_callback(lambda done: self._open.pop(key) if self._open.get(key) is done else None)

    def forget(self, key: tuple[str, str]) -> None:
        """Expect nothing of this zone any more."""
        if (task := self._open.pop(key, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _confirm(self, zone: StatefulSet, downscale: Downscale, undo: Callable[[], Awaitable[bool]]) -> None:
        for _ in range(_LOOKS):
            await asyncio.sleep(self._after)
            try:
                current = await self._client.get(StatefulSet, downscale.name, downscale.namespace)
            except NotFound:
                return
            except KubeError as error:
                log.warning("cannot tell whether a downscale was stored: %s", error, extra={"zone": downscale.name})
                continue
            if not was_not_stored(zone, current, downscale):
                return
            log.warning("%s was allowed, but not stored: undoing it", downscale.text)
            if await undo():
                return
