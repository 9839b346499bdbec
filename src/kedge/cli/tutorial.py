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
        meta = {
            "name": seen.metadata.name,
            "namespace": seen.metadata.namespace,
            "resourceVersion": seen.metadata.resource_version,  # if it changed meanwhile, look again
            "annotations": {CHECKSUM: checksum(seen)},
        }
        await self.cluster.client.apply(ConfigMap, {"metadata": meta}, manager="stamper")


def checksum(found: ConfigMap) -> str:
    return hashlib.sha256(msgspec.json.encode(found.data, order="sorted")).hexdigest()[:16]
