"""Wait events: what is wrong with bindings, and what their clusters wait for, as events: once each."""

from __future__ import annotations

from kedge.api.karmada.bindings import ResourceBinding
from kedge.kube.events import Recorder
from kedge.kube.queue import Key
from kedge.plan.aligning.binding_conditions import AlignedPlan, ToldWait, news, waits_of


class WaitEvents:
    """Events of what was not so at the last look. After a restart they are recorded once more."""

    def __init__(self, events: Recorder) -> None:
        self._events = events
        self._told: dict[Key, tuple[tuple[str, ...], tuple[ToldWait, ...]]] = {}
        self._differing: dict[Key, str] = {}

    def record(self, key: Key, binding: ResourceBinding, plan: AlignedPlan) -> None:
        """Record what is new."""
        problems, waits = self._told.get(key, ((), ()))
        for problem in plan.problems:
            if problem not in problems:
                self._events.warning(binding, "NotAligned", problem)
        found = waits_of(plan)
        for one in news(waits, found):
            self._events.normal(binding, "RolloutWaits", f"{one.cluster}: {one.sentence}")
        self._told[key] = plan.problems, found

    def record_replicas(self, key: Key, binding: ResourceBinding, differing: str) -> None:
        """Record that the template asks for other replicas than the binding, when that is new."""
        if differing and differing != self._differing.get(key):
            self._events.normal(binding, "ReplicasDiffer", differing)
        self._differing[key] = differing

    def forget(self, key: Key) -> None:
        """A binding is gone."""
        self._told.pop(key, None)
        self._differing.pop(key, None)
