"""ServedKind: the objects of a custom kind, on a cluster that may or may not have it.

Only the definition of the kind is watched until it is established, and the objects from then on until it is gone. So a
cluster without the kind costs one watch, and nothing complains there or polls.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.condition import is_true
from kedge.api.meta import Object
from kedge.embedded.workloads.view import View
from kedge.kube.cache import Cache
from kedge.kube.queue import NORMAL, Key
from kedge.kube.source import Wake
from kedge.kube.store import Change

O = TypeVar("O", bound=Object)  # noqa: E741  # an object


class ServedKind(Generic[O]):
    """A source that each object of the kind wakes; `cache` has them, and is None while the kind is not served."""

    def __init__(self, view: View, kind: type[O]) -> None:
        self.cluster = view.cluster.name
        self.cache: Cache[O] | None = None
        self._view = view
        self._kind = kind
        self._wakes: list[Wake] = []
        name = {"metadata.name": str(kind.resource)}
        self._definitions = view.cluster.cache(CustomResourceDefinition, fields=name)

    def get(self, name: str, namespace: str | None) -> O | None:
        return self.cache.get(name, namespace) if self.cache is not None else None

    def by(self, index: str, value: str) -> tuple[O, ...]:
        """The objects of which the index says this value."""
        return self.cache.by(index, value) if self.cache is not None else ()

    async def ready(self) -> None:
        """Wait until it is known whether the kind is there."""
        await self._definitions.synced()

    def subscribe(self, wake: Wake) -> None:
        """Wake the keys of all objects there are, and from now on of every one that changes."""
        self._wakes.append(wake)
        if len(self._wakes) == 1:
            self._definitions.on_change(self._defined)

    def _defined(self, change: Change[CustomResourceDefinition]) -> None:
        if change.new is not None and is_true(change.new.status.conditions or (), "Established"):
            self._follow()
        elif self.cache is not None:
            self._view.cluster.drop(self.cache)
            self.cache = None

    def _follow(self) -> None:
        if self.cache is None:
            self.cache = self._view.of(self._kind)
            self.cache.on_change(self._changed)

    def _changed(self, change: Change[Any]) -> None:
        meta = change.object.metadata
        for wake in self._wakes:
            wake(Key(self.cluster, meta.namespace, meta.name), NORMAL)
