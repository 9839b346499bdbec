"""Autoscaler access: the HorizontalPodAutoscalers of a namespace, and KEDA's ScaledObjects if there are any.

Read from the server each time, as workloads are: one that was created a moment ago counts. Watches of metadata alone
say when to look again. Without KEDA there are no ScaledObjects; without the right to read them neither, which is logged
once: what KEDA made is seen among the HorizontalPodAutoscalers all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.resource import Resource
from kedge.controllers.gather import gather
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, Untyped, metadata_of, untyped
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.batching.autoscalers import HPA, SCALED_OBJECT, Autoscaler
from kedge.plan.batching.moves import WorkloadRef

KINDS: Final = (HPA, SCALED_OBJECT)
log = logging.getLogger(__name__)


class AutoscalerAccess:
    """The autoscalers of one cluster."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = cluster.client.without_retry()
        self._is_forbidden = False
        places: Sequence[str | None] = namespaces or (None,)
        self._caches: list[Cache[PartialObject]] = [
            cluster.cache(metadata_of(resource), place, optional=True) for resource in KINDS for place in places
        ]

    def sources(self, to: Callable[[str], Iterable[Key]]) -> Iterable[Source]:
        """What wakes rollouts: `to` says whom an autoscaler of a namespace does."""
        return [self._cluster.watch(cache, to=partial(_keys, to)) for cache in self._caches]

    async def read(self, namespace: str) -> tuple[Autoscaler, ...]:
        """All autoscalers of a namespace, as they are now."""
        plain, keda = await gather([partial(self._list, HPA, namespace), partial(self._scaled_objects, namespace)])
        return (*plain, *keda)

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
