"""Cancellations: tells the pods that stay to forget that they prepared for a downscale, regularly but not all the time.

The pods of a StatefulSet are told

* once after start, and whenever the number of pods that stay or the URL has changed: all of them;
* when a pod is new and ready: that one, because it may remember on its disk what it was told before;
* otherwise every 5 minutes: all of them. If some could not be told, sooner, and later each time.

The peer tells all pods at every reconcile, which is every 5 seconds in a busy namespace. What is remembered here is
only a cache: if it is lost, pods are told once more, and cancelling twice does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.controllers.zone.attempts import NO_TIME
from kedge.controllers.zone.pod_calls import PodCalls
from kedge.kube.limits import BackoffSteps
from kedge.plan.text import first_few
from kedge.plan.zoning.pod_hosts import pod_name
from kedge.plan.zoning.pods import is_running_and_ready

EVERY: Final = 300.0
"""Seconds between two rounds to all pods while nothing changes."""
AFTER_FAILURE: Final = BackoffSteps(first=30.0, longest=EVERY)
log = logging.getLogger(__name__)


class _Round(Struct, frozen=True):
    """The last round: what it was about, which pods were told since, and when the next one is due."""

    url: str
    count: int
    told: frozenset[str]
    next_at: float
    failures: int = 0


class Cancellations:
    """When the pods of which StatefulSet were told last."""

    def __init__(self, calls: PodCalls, *, rng: random.Random) -> None:
        self._calls = calls
        self._rng = rng
        self._rounds: dict[str, _Round] = {}

    async def cancel(self, stateful_set: StatefulSet, url: str, count: int, pods: Iterable[Pod]) -> None:
        """Tell the first so many pods, as far as that is due."""
        ready = {one.metadata.name: one.metadata.uid for one in pods if is_running_and_ready(one)}
        uids = {ordinal: ready.get(pod_name(stateful_set, ordinal), "") for ordinal in range(count)}
        last = self._rounds.get(stateful_set.metadata.uid)
        if last is None or (last.url, last.count) != (url, count) or not self.remaining(stateful_set):
            await self._tell_all(stateful_set, url, uids, last)
        elif new := [ordinal for ordinal, uid in uids.items() if uid and uid not in last.told]:
            await self._tell_new(stateful_set, uids, new, last)

    def remaining(self, stateful_set: StatefulSet) -> float:
        """Seconds until all pods are told again."""
        last = self._rounds.get(stateful_set.metadata.uid)
        left = last.next_at - asyncio.get_running_loop().time() if last is not None else 0.0
        return left if left > NO_TIME else 0.0

    def forget(self, uids: Iterable[str]) -> None:
        """These StatefulSets are gone."""
        for uid in uids:
            self._rounds.pop(uid, None)

    async def _tell_all(self, stateful_set: StatefulSet, url: str, uids: dict[int, str], last: _Round | None) -> None:
        failed = await self._tell(stateful_set, url, uids)
        failures = (last.failures if last is not None else 0) + 1 if failed else 0
        seconds = AFTER_FAILURE.after(failures - 1, self._rng) if failures else EVERY
        told = frozenset(uid for ordinal, uid in uids.items() if uid and ordinal not in failed)
        next_at = asyncio.get_running_loop().time() + seconds
        self._rounds[stateful_set.metadata.uid] = _Round(url, len(uids), told, next_at, failures)

    async def _tell_new(self, stateful_set: StatefulSet, uids: dict[int, str], new: list[int], last: _Round) -> None:
        """A pod that fails is not tried before the next round, which comes sooner then."""
        failed = await self._tell(stateful_set, last.url, new)
        present = frozenset(filter(None, uids.values()))
        soon = asyncio.get_running_loop().time() + AFTER_FAILURE.after(last.failures, self._rng)
        self._rounds[stateful_set.metadata.uid] = _Round(
            last.url, last.count, present, min(last.next_at, soon) if failed else last.next_at, last.failures
        )

    async def _tell(self, stateful_set: StatefulSet, url: str, ordinals: Iterable[int]) -> frozenset[int]:
        """The ordinals that could not be told."""
        failed = await self._calls.cancel(stateful_set, url, ordinals)
        if failed:
            why = first_few(f"{one.pod}: {one.problem}" for one in failed)
            log.warning("pods did not cancel a delayed downscale: %s", why)
        return frozenset(one.ordinal for one in failed)
