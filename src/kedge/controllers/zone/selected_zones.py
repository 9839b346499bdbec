"""Selected zones: the StatefulSets that a disruption budget selects, and their pods, as the server has them now.

    async with turns.of(budget):
        zones = await selected.read(budget)

A budget spans StatefulSets, and not rollout groups: it may select those of several groups, and of none. Whoever decides
by a budget, on an eviction or for a rollout, reads them here, in its turn. What was allowed before is then seen or
remembered.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from weakref import WeakValueDictionary

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.controllers.gather import gather
from kedge.kube.client import Client
from kedge.kube.errors import KubeError
from kedge.plan.zoning.budget_spec import ZoneBudget
from kedge.plan.zoning.disruption import TOO_FEW_ZONES, UNCOUNTED, Denied, SelectedZone, pods_of

log = logging.getLogger(__name__)


class BudgetTurns:
    """Decisions by one budget are made one after another."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, budget: ZoneBudget) -> asyncio.Lock:
        """The lock of this budget, for as long as somebody holds it or waits for it."""
        lock = self._locks.get(budget.key)
        if lock is None:
            lock = self._locks[budget.key] = asyncio.Lock()
        return lock


class SelectedZones:
    """Reads the zones of budgets."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, budget: ZoneBudget) -> tuple[SelectedZone, ...] | Denied:
        """The StatefulSets that the budget selects; or the denial if they cannot be read."""
        try:
            found = await self._client.list(StatefulSet, budget.namespace, labels=budget.labels)
        except KubeError as error:
            log.warning("cannot list StatefulSets: %s", error)
            return TOO_FEW_ZONES
        if found.unreadable:  # a zone that cannot be read may be disrupted
            return UNCOUNTED
        try:
            return tuple(await gather([partial(self._zone, one) for one in found.items]))
        except KubeError as error:
            log.warning("cannot list pods: %s", error)
            return UNCOUNTED

    async def _zone(self, one: StatefulSet) -> SelectedZone:
        selector = one.spec.selector
        labels = selector.match_labels if selector is not None else {}
        pods = await self._client.list(Pod, one.metadata.namespace, labels=labels or None)
        return SelectedZone(one, pods_of(one, pods.items))
