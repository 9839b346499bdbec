"""Disruption budgets: the valid ZoneAwarePodDisruptionBudgets there are.

A budget that is changed to something invalid keeps its last valid meaning: an edit that fails protects no less than
before. If the kind is not served or may not be read, everything goes on without budgets; that is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.controllers.zone.budget_metrics import DELETE_IGNORED, DELETED, IGNORED, INVALID, UPDATED, BudgetMetrics
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.store import Change, Key
from kedge.plan.zoning.budget_spec import KIND, InvalidBudget, ZoneBudget, read_budget

# As it came: an object that does not fit a type would count as deleted, and its last valid meaning would be lost.
BUDGETS: Final = untyped(ZoneAwarePodDisruptionBudget.resource)
log = logging.getLogger(__name__)


class _Entry(Struct, frozen=True):
    uid: str
    budget: ZoneBudget


class DisruptionBudgets:
    """The valid budgets of one namespace, or of all."""

    def __init__(self, cluster: Cluster, namespace: str | None, *, metrics: BudgetMetrics) -> None:
        self._metrics = metrics
        self._entries: dict[Key, _Entry] = {}
        self._handlers: list[Callable[[str], None]] = []
        self._known = asyncio.Event()
        self._is_absent = False
        self._cache = cluster.cache(BUDGETS, namespace, optional=True)
        self._cache.on_change(self._changed)
        self._cache.on_problem(self._look_at_problem)
        if self._cache.is_synced:
            self._known.set()

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

    def on_change(self, handler: Callable[[str], None]) -> None:
        """Tell this handler the namespace of every budget that changes."""
        self._handlers.append(handler)

    # What the cache shows

    def _look_at_problem(self, problem: str | None) -> None:
        is_absent = self._cache.kind_is_missing or self._cache.is_forbidden
        if is_absent and not self._is_absent:
            log.warning("going on without %ss, until they can be read: %s", KIND, problem)
        elif self._is_absent and problem is None:
            log.info("%ss can be read now", KIND)
        self._is_absent = is_absent
        if is_absent or problem is None:
            self._known.set()

    def _changed(self, change: Change[Untyped]) -> None:
        meta = BUDGETS.meta(change.object)
        key = (meta.namespace or "", meta.name)
        before = self._entries.get(key)
        result = self._delete(key, change) if change.new is None else self._update(key, change.new)
        self._metrics.observed(result)
        if self._entries.get(key) != before:
            for handler in self._handlers:
                handler(key[0])

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
