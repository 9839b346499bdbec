"""Budget guard: which pods a rollout may delete, as far as disruption budgets have a say in it.

    decisions = await guard.decide(zone, pods, max_unavailable=2)

A budget spans all StatefulSets that it selects, also those outside of the rollout group: they are read from the server,
as for an eviction. A pod that may go is remembered at once, so that neither the next pod of a rollout nor an eviction
counts it as there. A rollout goes on where a budget of 0 switches evictions off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.controllers.zone.selected_zones import BudgetTurns, SelectedZones
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
        self,
        budgets: DisruptionBudgets,
        selected: SelectedZones,
        recent: RecentEvictions,
        clock: Clock,
        *,
        turns: BudgetTurns,
        metrics: BudgetMetrics,
    ) -> None:
        self._budgets = budgets
        self._selected = selected
        self._recent = recent
        self._clock = clock
        self._turns = turns
        self._metrics = metrics

    async def decide(self, own: ZonePods, pods: Sequence[Pod], *, max_unavailable: int) -> Mapping[str, Decision]:
        """Which of these pods of one zone may be deleted now, by their names. Each counts for those after it."""
        with self._metrics.deciding():
            decisions = await self._decisions(own, pods, max_unavailable)
        for decision in decisions.values():
            self._metrics.decided(decision)
        return decisions

    def stays(self, pod: ObjectMeta) -> None:
        """A pod that was allowed to go was not deleted after all."""
        self._recent.forget(pod)

    async def _decisions(self, own: ZonePods, pods: Sequence[Pod], max_unavailable: int) -> dict[str, Decision]:
        if not self._budgets.is_known:
            return {pod.metadata.name: NOT_KNOWN for pod in pods}
        found = self._budgets.in_namespace(own.stateful_set.metadata.namespace or "")
        of_pods = {pod.metadata.name: budget_for(pod, found) for pod in pods}
        decisions = {name: one for name, one in of_pods.items() if not isinstance(one, ZoneBudget)}
        for budget in found:
            selected = [pod for pod in pods if of_pods[pod.metadata.name] is budget]
            if selected:
                decisions |= await self._decide_by(budget, own, selected, max_unavailable)
        return {pod.metadata.name: decisions[pod.metadata.name] for pod in pods}

    async def _decide_by(
        self, budget: ZoneBudget, own: ZonePods, pods: Iterable[Pod], max_unavailable: int
    ) -> dict[str, Decision]:
        """The decisions by one budget; nobody else decides by it meanwhile."""
        async with self._turns.of(budget):
            zones = await self._selected.read(budget)
            return {pod.metadata.name: self._decide_one(budget, own, pod, zones, max_unavailable) for pod in pods}

    def _decide_one(
        self, budget: ZoneBudget, own: ZonePods, pod: Pod, zones: tuple[ZonePods, ...] | Denied, max_unavailable: int
    ) -> Decision:
        asked = Disruption(
            pod=pod,
            budgets=(budget,),
            owner=own.stateful_set,
            zones=zones,
            recent=self._recent.uids(),
            now=self._clock.now(),
            override=rollout_override(budget, max_unavailable),
        )
        decision = decide(asked)
        if isinstance(decision, Allowed) and decision.counts:
            self._recent.record(pod.metadata)
        return decision
