"""A rollout group of three zones on a real cluster, and whoever watches its pods and judges by nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from controlplane.cluster import Cluster
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from support.waiting import until

ZONES = ("ingester-zone-a", "ingester-zone-b", "ingester-zone-c")
PODS, AT_ONCE = 10, 2


def stateful_set(name: str, namespace: str, image: str = "app:1") -> dict[str, Any]:
    labels = {"name": name}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "500ms"}},
        "spec": {"containers": [{"name": "app", "image": image}], "terminationGracePeriodSeconds": 0},
    }
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": {ROLLOUT_GROUP: "ingester"},
        "annotations": {MAX_UNAVAILABLE: str(AT_ONCE)},
    }
    spec = {
        "replicas": PODS,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return {"metadata": meta, "spec": spec}


class Recorder:
    """Sees every event of every pod, and says when too many were not ready at once, or in two zones."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.wrong: list[str] = []
        self.worst = 0
        self.seen = 0
        self.judges = False

    async def follow(self, client: Client, namespace: str) -> None:
        while True:
            async with client.watch(Pod, namespace, initial_events=True) as events:
                async for event in events:
                    self.take(event)

    def take(self, event: Any) -> None:
        """See one event of the watch."""
        pod = getattr(event, "object", None)  # a bookmark has none
        if not isinstance(pod, Pod):
            return
        self.seen += 1
        if event.type == "DELETED":
            self.pods.pop(pod.metadata.name, None)
        else:
            self.pods[pod.metadata.name] = pod
        if self.judges:
            self._judge()

    def _judge(self) -> None:
        lacking = {zone: count for zone in ZONES if (count := PODS - self.ready(zone))}
        self.worst = max(self.worst, *lacking.values(), 0)
        if len(lacking) > 1 or any(count > AT_ONCE for count in lacking.values()):
            self.wrong.append(str(lacking))

    def ready(self, zone: str, image: str = "") -> int:
        found = [pod for name, pod in self.pods.items() if name.startswith(f"{zone}-") and _is_ready(pod)]
        return sum(not image or (pod.spec.containers or ())[0].image == image for pod in found)

    def all_run(self, image: str) -> bool:
        return all(self.ready(zone, image) == PODS for zone in ZONES)


def _is_ready(pod: Pod) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None


class Group:
    """A group that is ready, and who watches it."""

    def __init__(self, client: Client, namespace: str, recorder: Recorder) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder

    async def release(self, image: str) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        for name in ZONES:
            await self.client.patch(StatefulSet, name, MergePatch(body), self.namespace)

    async def statuses(self) -> list[StatefulSet]:
        return list((await self.client.list(StatefulSet, self.namespace)).items)

    async def are_current(self) -> bool:
        """Whether every status names the new revision as the current one: what an operator does last."""
        return all(one.status.current_revision == one.status.update_revision for one in await self.statuses())


@asynccontextmanager
async def ready_group(cluster: Cluster) -> AsyncIterator[Group]:
    """A new group in a namespace of its own, once all its pods are ready, and judged from then on."""
    namespace = await cluster.fresh_namespace("zones")
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    client, recorder = Client(HttpsTransport(connection), limiter=Limiter(rate=0)), Recorder()
    following = asyncio.create_task(recorder.follow(client, namespace))
    try:
        for name in ZONES:
            await client.create(StatefulSet, stateful_set(name, namespace))
        await until(lambda: recorder.all_run("app:1"), within=90)
        recorder.judges = True
        yield Group(client, namespace, recorder)
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await client.close()
