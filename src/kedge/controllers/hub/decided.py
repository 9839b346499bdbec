"""Decided: which bindings were pointed from this process, before they say so themselves.

A rollout points a binding, and then says on it that this generation has started. Works are made of what a rollout has
spoken of, and of nothing that somebody else wrote there; they need not wait for the word to be written if they run
beside whoever says it. What is remembered here may be lost at any time: then they wait.
"""

from __future__ import annotations

from kedge.api.fleet import WORK_CLEANUP
from kedge.api.twins import Binding
from kedge.kube.queue import Key
from kedge.kube.source import Signal


class Decided:
    """Of the bindings of one kind. `changes` wakes those that were just pointed."""

    def __init__(self, cluster: str) -> None:
        self.changes = Signal(cluster)
        self._generations: dict[str, int] = {}  # by uid

    def point(self, binding: Binding) -> None:
        """This binding, as it is now, is as a rollout wants it."""
        meta = binding.metadata
        self._generations[meta.uid] = meta.generation
        self.changes.wake(Key(self.changes.cluster, meta.namespace, meta.name))

    def knows(self, binding: Binding) -> bool:
        return self._generations.get(binding.metadata.uid) == binding.metadata.generation

    def suffices(self, binding: Binding) -> bool:
        """Whether Works are made of it as it is, before it says so itself.

        One that no Works hold yet is written to first: that has to wait for the word, or it would come in its way.
        """
        return WORK_CLEANUP in binding.metadata.finalizers and self.knows(binding)

    def forget(self, binding: Binding) -> None:
        """It says so itself by now, or is gone."""
        self._generations.pop(binding.metadata.uid, None)
