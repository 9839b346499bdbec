"""Budget guard: whether a rollout may delete a pod, as far as disruption budgets have a say in it.

    decision = guard.decide(pod, zone, zones, max_unavailable=2)

A pod that may go is remembered in the same moment, so that neither the next pod of the rollout nor an eviction counts
it as there. A rollout goes on where a budget of 0 switches evictions off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.kube.clock import Clock
from kedge.plan.zoning.budget_spec import KIND, ZoneBudget
from kedge.plan.zoning.disruption import (
    ERROR,
    Allowed,
    Decision,
    Denied,
    Disruption,
    ZonePods,
    budget_for,
    decide,
    rollout_override,
)

NOT_KNOWN: Final = Denied(ERROR, f"it is not known yet which {KIND}s there are", "cfg-not-found")


class BudgetGuard:
    """Decides for the rollouts of one process."""

    def __init__(
        self, budgets: DisruptionBudgets, recent: RecentEvictions, clock: Clock, *, metrics: BudgetMetrics
    ) -> None:
        self._budgets = budgets
        self._recent = recent
        self._clock = clock
        self._metrics = metrics

    def decide(self, pod: Pod, own: ZonePods, zones: Iterable[ZonePods], *, max_unavailable: int) -> Decision:
        """Whether this pod of its own zone may be deleted now; `zones` are all zones, its own too.

        Waits for nothing: whatever was allowed before counts.
        """
        decision = self._decide(pod, own, tuple(zones), max_unavailable)
        self._metrics.decided(decision)
        if isinstance(decision, Allowed) and decision.counts:
            self._recent.record(pod.metadata)
        return decision

    def stays(self, pod: ObjectMeta) -> None:
        """A pod that was allowed to go was not deleted after all."""
        self._recent.forget(pod)

    def _decide(self, pod: Pod, own: ZonePods, zones: tuple[ZonePods, ...], max_unavailable: int) -> Decision:
        if not self._budgets.is_known:
            return NOT_KNOWN
        budgets = self._budgets.in_namespace(pod.metadata.namespace or "")
        budget = budget_for(pod, budgets)
        asked = Disruption(
            pod=pod,
            budgets=budgets,
            owner=own.stateful_set,
            zones=zones,
            recent=self._recent.uids(),
            now=self._clock.now(),
            override=rollout_override(budget, max_unavailable) if isinstance(budget, ZoneBudget) else None,
        )
        return decide(asked)
