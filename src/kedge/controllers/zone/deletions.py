"""Deletions: pods deleted in the version that was seen, and those of which it is not known whether they will be.

A request that was never answered may still be carried out for a while. Until then its pod counts as unavailable, and it
is the first one to be deleted again: otherwise another pod might be deleted instead, and then both are gone. That a pod
has changed settles it, since the request names its version. What is remembered here is lost in a crash; the same time
bounds what that may cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.kube.errors import ServerError, Unreachable

LATE: Final = 75.0
"""Seconds in which a request that was never answered may be carried out: an API server gives up after 60."""


class Deletions:
    """Deletes pods, and remembers for a while those in doubt."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._doubts: dict[str, tuple[str, float]] = {}  # by uid: the version, and until when

    async def delete(self, pod: ObjectMeta) -> None:
        """Delete a pod: a Conflict if it changed since it was seen, nothing if it is gone."""
        self._doubts[pod.uid] = (pod.resource_version, asyncio.get_running_loop().time() + LATE)
        try:
            await self._client.remove(Pod, pod)
        except (Unreachable, ServerError):
            self._doubts[pod.uid] = (pod.resource_version, asyncio.get_running_loop().time() + LATE)
            raise
        except Exception:
            self._doubts.pop(pod.uid, None)
            raise
        self._doubts.pop(pod.uid, None)

    def in_doubt(self, pods: Iterable[Pod]) -> frozenset[str]:
        """The uids of those pods that may be deleted by a request that was sent earlier."""
        self._forget()
        return frozenset(pod.metadata.uid for pod in pods if self.is_in_doubt(pod.metadata))

    def remaining(self) -> float | None:
        """Seconds until the next doubt ends by itself; None if there is none."""
        self._forget()
        now = asyncio.get_running_loop().time()
        return min((until - now for _, until in self._doubts.values()), default=None)

    def is_in_doubt(self, pod: ObjectMeta) -> bool:
        """Whether a request that was sent earlier may still delete it."""
        return pod.uid in self._doubts and self._doubts[pod.uid][0] == pod.resource_version

    def _forget(self) -> None:
        now = asyncio.get_running_loop().time()
        self._doubts = {uid: found for uid, found in self._doubts.items() if found[1] > now}
