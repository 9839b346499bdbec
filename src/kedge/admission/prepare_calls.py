"""Prepare calls: telling pods that they are about to go, and telling them that they are not.

POST prepares a pod for its shutdown, DELETE takes that back. At most 32 calls run at the same time, and each has its
own time limit. Only an answer 2xx is a success.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kedge.kube.cluster_validation import HEADER
from kedge.kube.connect.outbound import Call, Outbound, OutboundFailed
from kedge.plan.text import cut
from kedge.plan.zoning.pod_hosts import CALL_TIMEOUT, CALLS_AT_ONCE

_SHOWN: Final = 200
log = logging.getLogger(__name__)


class PodFailed(Exception):
    """A pod did not do what it was told; the message says which, and why."""


class PrepareCalls:
    """Calls endpoints of pods. `timeout` bounds each call, in seconds."""

    def __init__(self, outbound: Outbound, *, timeout: float = CALL_TIMEOUT) -> None:
        self._outbound = outbound
        self._timeout = timeout

    async def prepare(self, urls: Sequence[str], *, cluster: str) -> None:
        """POST to all of them. Raises `PodFailed` for the first that fails; the others are then cancelled."""
        await _each(urls, lambda url: self._call("POST", url, cluster))

    async def undo(self, urls: Sequence[str], *, cluster: str) -> None:
        """DELETE on all of them, whatever their answers are."""

        async def one(url: str) -> None:
            try:
                await self._call("DELETE", url, cluster)
            except PodFailed as error:
                log.warning("a pod may still be prepared for its shutdown: %s", error)

        await _each(urls, one)

    async def _call(self, method: str, url: str, cluster: str) -> None:
        headers = {"Content-Type": "application/json", HEADER: cluster}
        call = Call(method, url, headers)
        try:
            answer = await self._outbound.fetch(call, timeout=self._timeout)
        except OutboundFailed as error:
            raise PodFailed(str(error)) from error
        if not 200 <= answer.status < 300:
            said = cut(answer.body[: 4 * _SHOWN].decode("utf-8", "replace").strip(), _SHOWN)
            raise PodFailed(f"{call}: {answer.status} {said}".rstrip())


async def _each(urls: Sequence[str], call: Callable[[str], Awaitable[None]]) -> None:
    """Call for each, so many at the same time, in order. The first error cancels what runs, and the rest."""
    left = iter(urls)

    async def worker() -> None:
        for url in left:
            await call(url)

    # Not a TaskGroup: Python 3.11 forgets to take back its own cancellation, and a time limit around it then breaks.
    workers = [asyncio.create_task(worker()) for _ in range(min(CALLS_AT_ONCE, len(urls)))]
    try:
        for ended in asyncio.as_completed(workers):
            await ended
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
