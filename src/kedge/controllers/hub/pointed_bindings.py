"""Pointed bindings: which bindings this process has pointed at resources, before their status says so.

Works are made only of a generation of a binding that a rollout or a run has decided on. The binding says so in its
condition RolloutStarted, and that is enough for everybody, also for the half of another fleet manager. A rollout that
runs in the same process notes here what it has just written. Then Works need not wait for that condition.

This is the only thing that `BindingWrites` and `Works` share beside the API. It may be lost at any time: then Works
wait for the condition.
"""

from __future__ import annotations

from kedge.api.fleet import WORK_CLEANUP
from kedge.api.placement_kinds import Binding
from kedge.controllers.hub.wakes import key_of
from kedge.kube.source import Signal


class PointedBindings:
    """Of the bindings of one kind. `changes` wakes those that were just pointed."""

    def __init__(self, cluster: str) -> None:
        self.changes = Signal(cluster)
        self._generations: dict[str, int] = {}  # by uid

    def add(self, binding: Binding) -> None:
        """This binding, in this generation, is as a rollout or a run wants it."""
        self._generations[binding.metadata.uid] = binding.metadata.generation
        self.changes.wake(key_of(self.changes.cluster, binding.metadata))

    def has(self, binding: Binding) -> bool:
        return self._generations.get(binding.metadata.uid) == binding.metadata.generation

    def may_create_works(self, binding: Binding) -> bool:
        """Whether Works are made of a binding before its RolloutStarted is written.

        One without the finalizer of Works gets that first. Both are writes of the binding, so it waits for the
        condition, and neither write is refused for the other.
        """
        return WORK_CLEANUP in binding.metadata.finalizers and self.has(binding)

    def forget(self, binding: Binding) -> None:
        """Its status says so by now, or it goes."""
        self._generations.pop(binding.metadata.uid, None)
