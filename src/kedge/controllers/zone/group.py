"""Groups: rolls out and scales the StatefulSets of each rollout group, one zone at a time.

One key per group, so that a group that is slow or broken never delays another. A group's pods are deleted in the very
version that the plan was made on; the StatefulSet controller makes them anew. What happens and what is waited for is
recorded as events of the StatefulSets, which is all that is written beside the rollout itself: the objects are the
user's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import StatefulSet
from kedge.api.meta import ObjectMeta
from kedge.controllers.gather import gather
from kedge.controllers.throttle import Throttle
from kedge.controllers.zone.adjustment import ScalingGroup
from kedge.controllers.zone.budget_guard import BudgetGuard
from kedge.controllers.zone.deletions import Deletions
from kedge.controllers.zone.disruption_budgets import DisruptionBudgets
from kedge.controllers.zone.group_events import GroupEvents
from kedge.controllers.zone.metrics import GroupMetrics
from kedge.controllers.zone.observed import GroupCaches
from kedge.controllers.zone.scaling import GroupScaling
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.plan.zoning.disruption import Denied
from kedge.plan.zoning.group import GroupPlan, plan, without_denied
from kedge.plan.zoning.zone import Zone

MANAGER: Final = "kedge-operator"
WORKERS: Final = 64
"""Groups at work at the same time: most of them only wait for an answer."""
ASK_AGAIN: Final = 15.0
"""Seconds until a disruption budget is asked again: its delay passes, and zones of other groups change, without a
sign."""
RESYNC: Final = 300.0
"""Seconds after which a group at rest is looked at again, as the peer's informers do. Alerts read the time of the last
success: `RolloutOperatorNotReconciling` fires when it is ten minutes old."""
FAILED_AGAIN: Final = 60.0
"""Seconds until a group that must be left alone counts as failed once more."""
_SETS: Final = untyped(StatefulSet.resource)
log = logging.getLogger(__name__)


class _End(Struct, frozen=True):
    """How a reconcile of a group ended. One that must be left alone counts as failed."""

    outcome: Outcome
    is_refused: bool = False


class Groups:
    """The controller of all rollout groups."""

    def __init__(
        self,
        cluster: Cluster,
        observed: GroupCaches,
        *,
        clock: Clock,
        metrics: GroupMetrics | None = None,
        scaling: GroupScaling | None = None,
        guard: BudgetGuard | None = None,
        budgets: DisruptionBudgets | None = None,
        interval: float = 0.0,
    ) -> None:
        """`interval` is how many seconds are between two reconciles of one group at least."""
        self._client = cluster.client
        self._clock = clock
        self._deletions = Deletions(cluster.client)
        self._observed = observed
        self._events = GroupEvents(cluster.events)
        self._metrics = metrics
        self._scaling = scaling
        self._guard = guard
        self._pace = Throttle(interval)
        sources = [*self._observed.sources()]
        if budgets is not None:
            sources.append(budgets.changes(self._observed.groups_in))
        self.controller = Controller("groups", self.reconcile, sources, workers=WORKERS)

    async def reconcile(self, key: Key) -> Outcome:
        zones = self._doubting(self._observed.zones(key))
        if not zones:
            self._forget(key)
            return Outcome.done
        if left := self._pace.remaining(key):
            return Outcome.again(after=left)
        self._pace.restart(key)
        return (await self._measured(key, zones)).outcome

    async def _reconcile(self, key: Key, zones: tuple[Zone, ...]) -> _End:
        scaled = await self._scaling.adjust(_scaling_group(key, zones)) if self._scaling is not None else None
        if scaled is not None and scaled.changed:
            return _End(Outcome.not_yet)  # with the new replicas everything is looked at again
        found = plan(zones)
        if found.delete:
            zones = self._doubting(await self._observed.zones_now(key))
            if not zones:
                return _End(Outcome.not_yet)
            found = await self._guarded(plan(zones), zones)
        await self._act(zones, found)
        times = [self._events.report(key, zones, found), scaled.look_again if scaled is not None else None]
        times += [FAILED_AGAIN if found.is_refused else RESYNC]
        times += [self._deletions.remaining() for zone in zones if zone.in_doubt]
        times += [ASK_AGAIN for _ in found.denied]
        return _End(_again(times), found.is_refused)

    def _doubting(self, zones: Iterable[Zone]) -> tuple[Zone, ...]:
        return tuple(replace(zone, in_doubt=self._deletions.in_doubt(zone.pods)) for zone in zones)

    def _forget(self, key: Key) -> None:
        """The group has no StatefulSets any more."""
        self._events.forget(key)
        self._pace.reset(key)
        if self._scaling is not None:
            self._scaling.forget(key.namespace or "", key.name)
        if self._metrics is not None and not self._observed.exists_anywhere(key.name):
            self._metrics.forget(key.name)

    async def _measured(self, key: Key, zones: tuple[Zone, ...]) -> _End:
        """Reconcile a group, and count how it ended."""
        if self._metrics is None:
            return await self._reconcile(key, zones)
        now, group = asyncio.get_running_loop().time, key.name
        begun = now()
        self._metrics.start(group)
        try:
            end = await self._reconcile(key, zones)
        except Conflict:  # somebody was faster, which only means to look again
            self._metrics.success(group, now() - begun, self._clock.now())
            raise
        except Exception:
            self._metrics.failed(group, now() - begun)
            raise
        if end.is_refused:
            self._metrics.failed(group, now() - begun)
        else:
            self._metrics.success(group, now() - begun, self._clock.now())
        return end

    # Acting

    async def _guarded(self, found: GroupPlan, zones: Sequence[Zone]) -> GroupPlan:
        """The plan without the pods that a disruption budget keeps."""
        if self._guard is None or not found.delete:
            return found
        own = next(zone for zone in zones if zone.name == found.zone)
        pods = {pod.metadata.name: pod for pod in own.pods}
        asked = [pods[name] for name in found.delete]
        decisions = await self._guard.decide(own, asked, max_unavailable=own.limit.pods)
        return without_denied(found, {name: one.message for name, one in decisions.items() if isinstance(one, Denied)})

    async def _act(self, zones: Iterable[Zone], found: GroupPlan) -> None:
        by_name = {zone.name: zone for zone in zones}
        if found.delete:
            await self._delete(by_name[found.zone], found.delete)
        for name in found.promote:
            await self._promote(by_name[name])

    async def _delete(self, zone: Zone, names: Sequence[str]) -> None:
        """Delete pods in the versions that were seen: one that changed meanwhile is looked at again first."""
        pods = {pod.metadata.name: pod.metadata for pod in zone.pods}
        self._events.deleting(zone, names)
        await gather([partial(self._delete_one, pods[name]) for name in names])

    async def _delete_one(self, pod: ObjectMeta) -> None:
        try:
            await self._deletions.delete(pod)
        except Exception:
            if self._guard is not None and not self._deletions.is_in_doubt(pod):
                self._guard.stays(pod)
            raise

    async def _promote(self, zone: Zone) -> None:
        """Have the status name the new revision as the current one. With OnDelete nobody else does."""
        meta, status = zone.stateful_set.metadata, zone.stateful_set.status
        try:
            whole = await self._client.get(_SETS, meta.name, meta.namespace)
        except NotFound:
            return
        if whole["metadata"]["uid"] != meta.uid or whole["metadata"]["resourceVersion"] != meta.resource_version:
            return  # it changed, which wakes the group again
        changed = {**whole, "status": {**whole.get("status", {}), "currentRevision": status.update_revision}}
        await self._client.replace(_SETS, changed, manager=MANAGER, subresource="status")
        self._events.complete(zone)


def _scaling_group(key: Key, zones: Iterable[Zone]) -> ScalingGroup:
    found = tuple(zones)
    pods = {zone.name: zone.pods for zone in found}
    return ScalingGroup(key.namespace or "", key.name, tuple(zone.stateful_set for zone in found), pods)


def _again(times: Iterable[float | None]) -> Outcome:
    return Outcome.again(after=min(seconds for seconds in times if seconds))
