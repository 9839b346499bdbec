"""Scaling: keeps the replicas of rollout groups as their labels, annotations and references ask for.

    result = await scaling.adjust(ScalingGroup(namespace, name, sets, pods))
    if result.changed:
        return Outcome...   # everything is looked at anew with the new replicas

Called at the start of each reconcile of a group. Promises that it never raises for what the server, a webhook, a
reference or a pod does: that is a wait, told as an event on the StatefulSet and in the log when it begins or its text
changes. It takes bounded time, and different groups do not wait for each other.
"""

from __future__ import annotations

import logging
import random
from typing import Final

from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.controllers.zone.adjustment import Adjusted, Adjustment, GroupUnread, ScalingGroup, ScalingTools
from kedge.controllers.zone.attempts import Attempts
from kedge.controllers.zone.cancellations import Cancellations
from kedge.controllers.zone.pod_calls import PodCalls
from kedge.controllers.zone.reference import References
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import ApiError, KubeError
from kedge.kube.events import Recorder
from kedge.plan.moving.wait import Wait
from kedge.plan.zoning import mirror
from kedge.plan.zoning.replicas import is_scaled
from kedge.plan.zoning.scaling import PASSES_BY_ITSELF, Reference, ScaleCode, ScaleStep, wait_for
from kedge.plan.zoning.scaling_text import step_text, wait_text

POLL: Final = 15.0
"""Seconds between two looks at a reference. Its kind may be any, and may not be allowed to be watched."""
READ_AGAIN: Final = 5.0
"""Seconds, if the group could not be read."""
SCALED_UP, SCALED_DOWN = "ScaledUp", "ScaledDown"
log = logging.getLogger(__name__)


class ScalingResult(Struct, frozen=True):
    """What came of it: if `changed`, a StatefulSet has, or may have, other replicas now."""

    changed: bool = False
    step: ScaleStep | None = None
    waits: tuple[Wait, ...] = ()
    look_again: float | None = None
    """Seconds until something may change by itself; None if nothing will."""


class _Memory(Struct):
    """What is remembered of one group: only a cache."""

    attempts: Attempts
    told: dict[tuple[str, str], str]
    uids: frozenset[str] = frozenset()


class GroupScaling:
    """Scales the StatefulSets of rollout groups."""

    def __init__(self, client: Client, calls: PodCalls, events: Recorder, *, clock: Clock, rng: random.Random) -> None:
        self._tools = ScalingTools(
            client, References(client.without_retry()), calls, Cancellations(calls, rng=rng), clock, rng
        )
        self._events = events
        self._groups: dict[tuple[str, str], _Memory] = {}

    async def adjust(self, group: ScalingGroup) -> ScalingResult:
        """Look at the replicas of a group, and change those of at most one StatefulSet."""
        if not any(map(is_scaled, group.sets)):
            self.forget(group.namespace, group.name)
            return ScalingResult()
        memory = self._memory(group)
        try:
            end = await Adjustment(group, self._tools, memory.attempts).run()
        except (KubeError, GroupUnread) as error:
            end = _unread(group, error)
        self._tell(group, memory, end)
        return ScalingResult(end.step is not None or end.in_doubt, end.step, end.waits, _sooner(group, end.look_again))

    def forget(self, namespace: str, name: str) -> None:
        """The group is gone."""
        memory = self._groups.pop((namespace, name), None)
        self._tools.cancellations.forget(memory.uids if memory is not None else ())

    def _memory(self, group: ScalingGroup) -> _Memory:
        """What is remembered of the group, without what is gone from it."""
        memory = self._groups.setdefault((group.namespace, group.name), _Memory(Attempts(), {}))
        uids = frozenset(one.metadata.uid for one in group.sets)
        references = {each for one in group.sets if isinstance(each := mirror.reference_of(one), Reference)}
        memory.attempts.keep(frozenset({*uids, *references}))
        memory.told = {key: text for key, text in memory.told.items() if key[0] in uids}
        self._tools.cancellations.forget(memory.uids - uids)
        memory.uids = uids
        return memory

    def _tell(self, group: ScalingGroup, memory: _Memory, end: Adjusted) -> None:
        """Record a step, and what is waited for now and was not before, as events and in the log."""
        sets = {one.metadata.name: one for one in group.sets}
        if end.step is not None and end.step.name in sets:
            reason = SCALED_DOWN if end.step.is_down else SCALED_UP
            self._record(sets[end.step.name], reason, step_text(end.step))
        waiting = {
            (sets[wait.unit].metadata.uid, wait.code): (sets[wait.unit], wait)
            for wait in end.waits
            if wait.unit in sets
        }
        texts = {key: wait_text(wait) for key, (_, wait) in waiting.items()}
        for key, (about, wait) in waiting.items():
            if memory.told.get(key) != texts[key]:
                self._record(about, wait.code, texts[key], is_wrong=wait.code not in PASSES_BY_ITSELF)
        memory.told = texts

    def _record(self, about: StatefulSet, reason: str, text: str, *, is_wrong: bool = False) -> None:
        record = self._events.warning if is_wrong else self._events.normal
        record(about, reason, text)
        log.log(logging.WARNING if is_wrong else logging.INFO, "%s: %s", about.metadata.name, text)


def _unread(group: ScalingGroup, error: KubeError | GroupUnread) -> Adjusted:
    text = error.message if isinstance(error, ApiError) else str(error)
    scaled = [one.metadata.name for one in group.sets if is_scaled(one)]
    waits = tuple(wait_for(name, ScaleCode.group_unread, reported=text) for name in scaled)
    return Adjusted(waits=waits, look_again=READ_AGAIN)


def _sooner(group: ScalingGroup, seconds: float | None) -> float | None:
    """When to look again, given that references are looked at regularly."""
    if not any(mirror.reference_of(one) is not None for one in group.sets):
        return seconds
    return POLL if seconds is None else min(POLL, seconds)
