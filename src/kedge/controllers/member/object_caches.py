"""Object caches: what a member shows of the objects that Works placed on it, as it changes.

One cache for each kind that some Work placed. Of the objects that an AppliedWork owns it keeps who they are, what they
look like (a digest), and whether they work; the others are not kept at all, however many there are. A change wakes the
Works that own the object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Codec, Untyped
from kedge.kube.store import Change
from kedge.plan.applying.observed import ObservedObject, is_placed, metadata_of, observe
from kedge.plan.applying.ownership import is_applied_work
from kedge.plan.workloads.pods import PodWorkload

PATIENCE: Final = 5.0  # how long to wait for a kind to be shown before asking for each object of it


Shown: TypeAlias = Any
"""`Untyped` as the server sends it, `ObservedObject` as it is kept."""


class ObjectCaches:
    """The kinds that are followed on one member."""

    def __init__(self, member: Cluster, wake: Callable[[str], None]) -> None:
        """`wake` is told the name of each AppliedWork of which an object changed."""
        self._member = member
        self._wake = wake
        self._caches: dict[Resource, Cache[Shown]] = {}
        self._since: dict[Resource, float] = {}

    def follow(self, resources: Iterable[Resource]) -> None:
        """Follow these kinds too, from now on."""
        for resource in sorted(resources, key=str):  # in the same order each time, whatever a set makes of it
            if resource not in self._caches:
                kept = self._member.cache(_codec(resource), only=is_placed, transform=observe, optional=True)
                kept.on_change(self._changed)
                self._caches[resource] = kept
                self._since[resource] = asyncio.get_running_loop().time()

    def keep_only(self, resources: set[Resource]) -> None:
        """Follow no others any more."""
        for resource in [one for one in self._caches if one not in resources]:
            self._member.drop(self._caches.pop(resource))
            del self._since[resource]

    async def shows(self, resource: Resource) -> bool:
        """Whether it shows what there is of a kind; waits a little for a kind that is new."""
        found = self._caches[resource]
        if found.is_synced:
            return True
        try:
            async with asyncio.timeout_at(self._since[resource] + PATIENCE):
                await found.synced()
        except TimeoutError:
            return False
        return True

    def get(self, resource: Resource, name: str, namespace: str | None) -> ObservedObject | None:
        """An object that a Work placed; None if there is none, or none that a Work placed."""
        found: ObservedObject | None = self._caches[resource].get(name, namespace)
        return found

    def wake_unavailable(self, workload: PodWorkload) -> None:
        """Wake the Works that placed this workload, unless it is available: then nobody asks what its pods do."""
        for resource, kept in self._caches.items():
            if (resource.group, resource.kind) == (workload.group, workload.kind):
                found: ObservedObject | None = kept.get(workload.name, workload.namespace or None)
                if found is not None and not found.verdict.available:
                    self._wake_all(_placed_by(found))

    def follows(self) -> tuple[Resource, ...]:
        """The kinds that are followed."""
        return tuple(self._caches)

    def _changed(self, change: Change[Shown]) -> None:
        old, new = change.old, change.new
        if isinstance(old, ObservedObject) and isinstance(new, ObservedObject) and not new.differs_from(old):
            return
        self._wake_all((*_placed_by(old), *_placed_by(new)))

    def _wake_all(self, applied_works: Iterable[str]) -> None:
        for name in dict.fromkeys(applied_works):
            self._wake(name)


def _placed_by(shown: Shown | None) -> list[str]:
    """The AppliedWorks that own an object."""
    if shown is None:
        return []
    if isinstance(shown, ObservedObject):
        return [owner.name for owner in shown.metadata.owner_references]
    owners: Iterable[Mapping[str, Any]] = (shown.get("metadata") or {}).get("ownerReferences") or ()
    return [str(owner.get("name")) for owner in owners if is_applied_work(owner)]


@cache
def _codec(resource: Resource) -> Codec[Shown]:
    return Codec(resource, Untyped, _shown_meta)


def _shown_meta(shown: Shown) -> ObjectMeta:
    return shown.metadata if isinstance(shown, ObservedObject) else metadata_of(shown)
