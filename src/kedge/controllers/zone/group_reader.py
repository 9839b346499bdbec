"""Group reader: tells where a rollout group stands, for whoever looks at it with rights and a clock of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.controllers.zone.reference import References
from kedge.controllers.zone.selected_zones import SelectedZones
from kedge.kube.client import Client
from kedge.kube.errors import Forbidden, NotFound
from kedge.plan.zoning import mirror, replicas
from kedge.plan.zoning.budget_spec import ZoneBudget, read_budget
from kedge.plan.zoning.disruption import BudgetZones
from kedge.plan.zoning.group_story import GroupStory, kept_by_budgets, tell_group
from kedge.plan.zoning.pods import is_running_and_ready
from kedge.plan.zoning.scaling import Scaling
from kedge.plan.zoning.zone import Zone


class GroupReader:
    """Tells stories of groups, with the scales of what their StatefulSets mirror. A scale is read every few seconds."""

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._references = References(client)
        self._selected = SelectedZones(client)

    async def story(self, namespace: str, name: str, zones: Sequence[Zone]) -> GroupStory:
        ready = {zone.name: sum(map(is_running_and_ready, zone.pods)) for zone in zones}
        known = Scaling(tuple(zone.stateful_set for zone in zones), self._now(), ready_pods=ready)
        kept = partial(kept_by_budgets, await self._budgets(namespace, zones), known.now)
        scales = {one: await self._references.read(namespace, one) for one in mirror.references(known)}
        return tell_group(namespace, name, zones, replicas.plan(replace(known, scales=scales)), kept)

    async def _budgets(self, namespace: str, zones: Sequence[Zone]) -> tuple[BudgetZones, ...]:
        """The disruption budgets that select pods of the group, as far as they may be read."""
        try:
            page = await self._client.list(ZoneAwarePodDisruptionBudget, namespace)
        except (NotFound, Forbidden):
            return ()
        found = [budget for one in page.items if isinstance(budget := read_budget(one), ZoneBudget)]
        labels = [pod.metadata.labels for zone in zones for pod in zone.pods]
        meant = [budget for budget in found if any(map(budget.selects, labels))]
        return tuple([BudgetZones(budget, await self._selected.read(budget)) for budget in meant])
