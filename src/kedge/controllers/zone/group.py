"""Groups: rolls out and scales the StatefulSets of each rollout group, one zone at a time.

One key per group, so that a group that is slow or broken never delays another. A group's pods are deleted in the very
version that the plan was made on; the StatefulSet controller makes them anew. What happens and what is waited for is
recorded as events of the StatefulSets, which is all that is written beside the rollout itself: the objects are the
user's.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.controllers.gather import gather
from kedge.controllers.throttle import Throttle
from kedge.controllers.zone.observed import GroupCaches
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.plan.moving.wait import Wait
from kedge.plan.text import counted, listed
from kedge.plan.zoning.group import GroupPlan, ZoneCode, plan
from kedge.plan.zoning.wait_text import Sentences
from kedge.plan.zoning.zone import Zone

MANAGER: Final = "kedge-operator"
WORKERS: Final = 64
"""Groups at work at the same time: most of them only wait for an answer."""
SAY_AFTER: Final = 2.0
"""Seconds that a zone waits for the same before an event says so."""
_SETS: Final = untyped(StatefulSet.resource)
log = logging.getLogger(__name__)


class Groups:
    """The controller of all rollout groups."""

    def __init__(self, cluster: Cluster, *, namespaces: Sequence[str] = ()) -> None:
        self._client = cluster.client
        self._events = cluster.events
        self._observed = GroupCaches(cluster, namespaces)
        self._said: dict[Key, dict[str, Hashable]] = {}
        self._waiting = Throttle(SAY_AFTER)
        self.controller = Controller("groups", self.reconcile, self._observed.sources(), workers=WORKERS)

    async def reconcile(self, key: Key) -> Outcome:
        zones = self._observed.zones(key)
        if not zones:
            self._forget(key)
            return Outcome.done
        found = plan(zones)
        if found.delete:
            zones = await self._observed.zones_now(key)
            found = plan(zones)
            if not zones:
                return Outcome.not_yet
        await self._act(zones, found)
        return self._report(key, zones, found)

    def _forget(self, key: Key) -> None:
        for zone in self._said.pop(key, {}):
            self._waiting.reset((key, zone))

    # Acting

    async def _act(self, zones: Iterable[Zone], found: GroupPlan) -> None:
        by_name = {zone.name: zone for zone in zones}
        if found.delete:
            await self._delete(by_name[found.zone], found.delete)
        for name in found.promote:
            await self._promote(by_name[name])

    async def _delete(self, zone: Zone, names: Sequence[str]) -> None:
        """Delete pods in the versions that were seen: one that changed meanwhile is looked at again first."""
        pods = {pod.metadata.name: pod.metadata for pod in zone.pods}
        revision = zone.stateful_set.status.update_revision
        text = f"deleting {counted(len(names), 'pod')}, to update to revision {revision}: {listed(names, 10)}"
        self._events.normal(zone.stateful_set, "DeletingPods", text)
        log.info("%s: %s", zone.name, text)
        await gather([partial(self._client.remove, Pod, pods[name]) for name in names])

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
        text = f"all {counted(len(zone.pods), 'pod')} run revision {status.update_revision}"
        self._events.normal(zone.stateful_set, "RolloutComplete", text)
        log.info("%s: %s", zone.name, text)

    # Saying

    def _report(self, key: Key, zones: Sequence[Zone], found: GroupPlan) -> Outcome:
        """Record what zones wait for, once each has waited for the same for a moment."""
        sentences = Sentences(zones)
        before = self._said.setdefault(key, {})
        again: list[float] = []
        for zone in zones:
            wait = found.waits.get(zone.name)
            self._report_limit(before, zone)
            left = self._waiting.wait((key, zone.name), _identity(wait))
            if left:
                again.append(left)
            elif before.get(zone.name) != _identity(wait):
                before[zone.name] = _identity(wait)
                self._say(zone, wait, sentences)
        return Outcome.again(after=min(again)) if again else Outcome.done

    def _say(self, zone: Zone, wait: Wait | None, sentences: Sentences) -> None:
        if wait is None:
            return
        record = self._events.warning if wait.code == ZoneCode.not_on_delete else self._events.normal
        text = sentences.reason(wait)
        record(zone.stateful_set, "RolloutWaits", text)
        log.info("%s waits: %s", zone.name, text)

    def _report_limit(self, before: dict[str, Hashable], zone: Zone) -> None:
        said = f"{zone.name}/limit"
        if zone.limit.problem and before.get(said) != zone.limit.problem:
            self._events.warning(zone.stateful_set, "InvalidMaxUnavailable", zone.limit.problem)
            log.warning("%s: %s", zone.name, zone.limit.problem)
        before[said] = zone.limit.problem


def _identity(wait: Wait | None) -> Hashable:
    """What makes two waits the same: not their numbers, which change with each pod."""
    return None if wait is None else (wait.code, tuple(blocker.key for blocker in wait.blockers))
