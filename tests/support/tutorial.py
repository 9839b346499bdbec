"""The controller of the tutorial: stamps ConfigMaps with a checksum of their data."""

import hashlib

import msgspec

from kedge.api.core import ConfigMap
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key

CHECKSUM = "tutorial.kedge.dev/checksum"


class Stamper:
    """Keeps the annotation of every ConfigMap labelled `stamp=yes` true to its data."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.maps = cluster.cache(ConfigMap, labels={"stamp": "yes"})
        self.controller = Controller("stamper", self.reconcile, [cluster.watch(self.maps)])

    async def reconcile(self, key: Key) -> Outcome:
        seen = self.maps.get(key.name, key.namespace)
        if seen is not None and seen.metadata.annotations.get(CHECKSUM) != checksum(seen):
            await self.stamp(seen)
        return Outcome.done

    async def stamp(self, seen: ConfigMap) -> None:
        meta = seen.metadata
        stamped = {"name": meta.name, "namespace": meta.namespace, "annotations": {CHECKSUM: checksum(seen)}}
        await self.cluster.client.apply(
            ConfigMap,
            {"metadata": stamped},
            manager="stamper",
            uid=meta.uid,  # of this object, should it be gone or another by now
            resource_version=meta.resource_version,  # and as we saw it
        )


def checksum(found: ConfigMap) -> str:
    return hashlib.sha256(msgspec.json.encode(found.data, order="sorted")).hexdigest()[:16]
