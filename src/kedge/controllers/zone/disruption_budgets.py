"""Disruption budgets: the valid ZoneAwarePodDisruptionBudgets there are.

A budget that is changed to something invalid keeps its last valid meaning: an edit that fails protects no less than
before. As long as it is invalid it is counted again and again, or an alert on the rate would end by itself. If the kind
is not served or may not be read, everything goes on without budgets; that is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.controllers.zone.budget_metrics import DELETE_IGNORED, DELETED, IGNORED, INVALID, UPDATED, BudgetMetrics
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import NORMAL
from kedge.kube.queue import Key as QueueKey
from kedge.kube.source import Signal, Source, Wake
from kedge.kube.store import Change, Key
from kedge.plan.zoning.budget_spec import KIND, InvalidBudget, ZoneBudget, read_budget

# As it came: an object that does not fit a type would count as deleted, and its last valid meaning would be lost.
BUDGETS: Final = untyped(ZoneAwarePodDisruptionBudget.resource)
COUNT_AGAIN: Final = 60.0
"""Seconds after which a budget that still is invalid is counted once more. Alerts look at the last five minutes."""
log = logging.getLogger(__name__)


class _Entry(Struct, frozen=True):
    uid: str
    budget: ZoneBudget


class DisruptionBudgets:
    """The valid budgets of some namespaces; of all if none is given."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = (), *, metrics: BudgetMetrics) -> None:
        self._cluster = cluster.name
        self._metrics = metrics
        self._entries: dict[Key, _Entry] = {}
        self._invalid: set[Key] = set()
        self._invalid_before: frozenset[Key] = frozenset()  # at the last count
        self._handlers: list[Callable[[str], None]] = []
        self._known = asyncio.Event()
        self._unread: set[Cache[Untyped]] = set()
        self._caches = [cluster.cache(BUDGETS, place, optional=True) for place in namespaces or (None,)]
        for cache in self._caches:
            cache.on_change(self._changed)
            cache.on_problem(partial(self._look_at_problem, cache))
        self._check_known()
        wakes = Signal(cluster.name, at_start=[QueueKey(cluster.name, None, "invalid")])
        self.controller = Controller("budgets", self._count_again, [wakes], workers=1)

    def in_namespace(self, namespace: str) -> tuple[ZoneBudget, ...]:
        """The valid budgets of a namespace, by name."""
        found = (entry.budget for (place, _), entry in sorted(self._entries.items()) if place == namespace)
        return tuple(found)

    async def known(self) -> None:
        """Wait until it is known which budgets there are, or that there can be none."""
        await self._known.wait()

    @property
    def is_known(self) -> bool:
        return self._known.is_set()

    def changes(self, to: Callable[[str], Iterable[QueueKey]]) -> Source:
        """A source for a controller, ready once the budgets are known. `to` says whom a budget of a namespace wakes."""
        return BudgetChanges(self._cluster, self, to)

    def on_change(self, handler: Callable[[str], None]) -> None:
        """Tell this handler the namespace of every budget that changes."""
        self._handlers.append(handler)

    # What the caches show

    def _look_at_problem(self, cache: Cache[Untyped], problem: str | None) -> None:
        if not _is_absent(cache):
            if problem is None and cache in self._unread:
                log.info("%ss can be read now", KIND)
                self._unread.discard(cache)
        elif cache not in self._unread:
            log.warning("going on without %ss, until they can be read: %s", KIND, problem)
            self._unread.add(cache)
        self._check_known()

    def _check_known(self) -> None:
        if all(cache.is_synced or _is_absent(cache) for cache in self._caches):
            self._known.set()

    def _changed(self, change: Change[Untyped]) -> None:
        meta = BUDGETS.meta(change.object)
        key = (meta.namespace or "", meta.name)
        before = self._entries.get(key)
        result = self._delete(key, change) if change.new is None else self._update(key, change.new)
        self._metrics.observed(result)
        if result == INVALID:
            self._invalid.add(key)
        else:
            self._invalid.discard(key)
        if self._entries.get(key) != before:
            for handler in self._handlers:
                handler(key[0])

    async def _count_again(self, _: QueueKey) -> Outcome:
        for _key in self._invalid & self._invalid_before:
            self._metrics.observed(INVALID)
        self._invalid_before = frozenset(self._invalid)
        return Outcome.again(after=COUNT_AGAIN)

    def _update(self, key: Key, found: Untyped) -> str:
        budget, meta = read_budget({**found, "kind": KIND}), BUDGETS.meta(found)
        if isinstance(budget, InvalidBudget):
            log.error("%s %s/%s is not valid, and ignored: %s", KIND, *key, budget.message)
            return INVALID
        before = self._entries.get(key)
        if before is not None and before.uid == meta.uid and before.budget.generation >= budget.generation:
            return IGNORED
        self._entries[key] = _Entry(meta.uid, budget)
        log.info("%s %s/%s counts now", KIND, *key, extra={"generation": budget.generation})
        return UPDATED

    def _delete(self, key: Key, change: Change[Untyped]) -> str:
        """A deletion in an older generation than the one kept is one that was overtaken."""
        before, meta = self._entries.get(key), BUDGETS.meta(change.object)
        if before is None or (before.uid == meta.uid and before.budget.generation > meta.generation):
            return DELETE_IGNORED
        del self._entries[key]
        log.info("%s %s/%s was deleted", KIND, *key)
        return DELETED


class BudgetChanges:
    """Wakes whoever depends on the budgets of a namespace."""

    def __init__(self, cluster: str, budgets: DisruptionBudgets, to: Callable[[str], Iterable[QueueKey]]) -> None:
        self.cluster = cluster
        self._budgets = budgets
        self._to = to

    async def ready(self) -> None:
        await self._budgets.known()

    def subscribe(self, wake: Wake) -> None:
        def changed(namespace: str) -> None:
            for key in self._to(namespace):
                wake(key, NORMAL)

        self._budgets.on_change(changed)


def _is_absent(cache: Cache[Untyped]) -> bool:
    return cache.kind_is_missing or cache.is_forbidden
