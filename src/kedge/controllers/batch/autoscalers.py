"""Autoscaler access: the HorizontalPodAutoscalers of a namespace, and KEDA's ScaledObjects if there are any.

Read from the server each time, as workloads are. Watches of metadata alone say when to look again. A namespace that had
none is not listed again for a few seconds, unless a watch tells of one: a consistent LIST of a kind that nobody writes
takes up to a tenth of a second, and a rollout looks many times. Without KEDA there are no ScaledObjects; without the
right to read them neither, which is logged once: what KEDA made is seen among the HorizontalPodAutoscalers anyhow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.resource import Resource
from kedge.controllers.gather import gather
from kedge.controllers.throttle import Throttle
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, Untyped, metadata_of, untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan.batching.autoscalers import HPA, SCALED_OBJECT, Autoscaler
from kedge.plan.batching.moves import WorkloadRef

KINDS: Final = (HPA, SCALED_OBJECT)
NONE_FOR: Final = 5.0
"""Seconds. An autoscaler itself looks at its target every 15, so that a new one has not done anything by then."""
log = logging.getLogger(__name__)


class AutoscalerAccess:
    """The autoscalers of one cluster."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = cluster.client.without_retry()
        self._is_forbidden = False
        self._had_none = Throttle(NONE_FOR)
        self._changes = 0
        places: Sequence[str | None] = namespaces or (None,)
        self._caches: list[Cache[PartialObject]] = [
            cluster.cache(metadata_of(resource), place, optional=True) for resource in KINDS for place in places
        ]
        for cache in self._caches:
            cache.on_change(self._changed)

    def sources(self, to: Callable[[str], Iterable[Key]]) -> Iterable[Source]:
        """What wakes rollouts: `to` says whom an autoscaler of a namespace does."""
        return [self._cluster.watch(cache, to=partial(_keys, to)) for cache in self._caches]

    async def read(self, namespace: str) -> tuple[Autoscaler, ...]:
        """All autoscalers of a namespace, as they are now; none, if there were none a moment ago."""
        if self._had_none.remaining(namespace):
            return ()
        before = self._changes
        plain, keda = await gather([partial(self._list, HPA, namespace), partial(self._scaled_objects, namespace)])
        if not plain and not keda and self._changes == before:
            self._had_none.restart(namespace)
        return (*plain, *keda)

    def _changed(self, change: Change[PartialObject]) -> None:
        self._changes += 1
        self._had_none.reset(change.object.metadata.namespace or "")

    async def _scaled_objects(self, namespace: str) -> tuple[Autoscaler, ...]:
        try:
            return await self._list(SCALED_OBJECT, namespace)
        except NotFound:
            return ()
        except Forbidden as error:
            if not self._is_forbidden:
                log.warning("going on without KEDA's ScaledObjects, which may not be read: %s", error)
            self._is_forbidden = True
            return ()

    async def _list(self, resource: Resource, namespace: str) -> tuple[Autoscaler, ...]:
        found = await self._client.list(untyped(resource), namespace)
        return tuple(_autoscaler(resource, one) for one in found.items)


def _autoscaler(resource: Resource, obj: Untyped) -> Autoscaler:
    meta = obj["metadata"]
    return Autoscaler(WorkloadRef(resource.api_version, resource.kind, meta["namespace"], meta["name"]), obj)


def _keys(to: Callable[[str], Iterable[Key]], seen: WatchedObject[PartialObject]) -> Iterable[Key]:
    return to(seen.meta.namespace or "")
