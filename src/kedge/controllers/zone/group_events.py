"""Group events: what happens to the zones of rollout groups, and what they wait for, as events of their StatefulSets.

A wait is recorded once a zone has waited for the same for a moment: most waits of a rollout are shorter. What was said
last is remembered, so that a group at rest writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from typing import Final

from kedge.controllers.throttle import Throttle
from kedge.kube.events import Recorder
from kedge.kube.queue import Key
from kedge.plan.moving.wait import Wait
from kedge.plan.text import counted, listed
from kedge.plan.zoning.group import GroupPlan, ZoneCode
from kedge.plan.zoning.wait_text import Sentences
from kedge.plan.zoning.zone import Zone

SAY_AFTER: Final = 2.0
"""Seconds that a zone waits for the same before an event says so."""
_NAMED: Final = 10
log = logging.getLogger(__name__)


class GroupEvents:
    """Records what happens to rollout groups."""

    def __init__(self, events: Recorder) -> None:
        self._events = events
        self._said: dict[Key, dict[str, Hashable]] = {}
        self._waiting = Throttle(SAY_AFTER)

    def deleting(self, zone: Zone, names: Sequence[str]) -> None:
        """Pods are being deleted."""
        revision = zone.stateful_set.status.update_revision
        text = f"deleting {counted(len(names), 'pod')}, to update to revision {revision}: {listed(names, _NAMED)}"
        self._record(zone, "DeletingPods", text)

    def complete(self, zone: Zone) -> None:
        """All pods of a zone are updated."""
        revision = zone.stateful_set.status.update_revision
        self._record(zone, "RolloutComplete", f"all {counted(len(zone.pods), 'pod')} run revision {revision}")

    def forget(self, key: Key) -> None:
        """The group is gone."""
        for zone in self._said.pop(key, {}):
            self._waiting.reset((key, zone))

    def report(self, key: Key, zones: Sequence[Zone], found: GroupPlan) -> float | None:
        """Record what zones wait for. Gives the seconds until there may be more to say."""
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
        return min(again, default=None)

    def _say(self, zone: Zone, wait: Wait | None, sentences: Sentences) -> None:
        if wait is not None:
            wrong = logging.ERROR if wait.code == ZoneCode.not_on_delete else None
            self._record(zone, "RolloutWaits", sentences.reason(wait), wrong=wrong)

    def _report_limit(self, before: dict[str, Hashable], zone: Zone) -> None:
        said = f"{zone.name}/limit"
        if zone.limit.problem and before.get(said) != zone.limit.problem:
            self._record(zone, "InvalidMaxUnavailable", zone.limit.problem, wrong=logging.WARNING)
        before[said] = zone.limit.problem

    def _record(self, zone: Zone, reason: str, text: str, *, wrong: int | None = None) -> None:
        """Record an event, and log it. `wrong` is how severe it is, if somebody has to do something about it."""
        record = self._events.normal if wrong is None else self._events.warning
        record(zone.stateful_set, reason, text)
        log.log(wrong or logging.INFO, "%s: %s", zone.name, text)


def _identity(wait: Wait | None) -> Hashable:
    """What makes two waits the same: not their numbers, which change with each pod."""
    return None if wait is None else (wait.code, tuple(blocker.key for blocker in wait.blockers))
