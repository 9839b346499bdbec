"""The patches of the workload handlers are accepted and do what they say, with Kubernetes' controllers and with ours.

Each kind is frozen with a new template, released, held at a partition if it has one, and scaled. The test plays the
kubelet.
The template that the server stored has the hash of the one that was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, NamedTuple

import pytest

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import run_apart
from kedge.api.resource import Resource
from kedge.embedded.workloads.daemonsets import DaemonSets as OurDaemonSets
from kedge.embedded.workloads.deployments import Deployments as OurDeployments
from kedge.embedded.workloads.everything import Parts
from kedge.embedded.workloads.jobs import Jobs as OurJobs
from kedge.embedded.workloads.replicas import ReplicaSets as OurReplicaSets
from kedge.embedded.workloads.statefulsets import StatefulSets as OurStatefulSets
from kedge.kube.codec import Codec, Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.workloads import WorkloadHandler, template_hash
from kedge.plan.workloads.registry import BUILT_IN
from support.stage import PODS, Stage, each, embedded_stage, is_ready, real_stage
from support.virtual import run

PARTS: Parts = (
    ("deployment", OurDeployments),
    ("replicaset", OurReplicaSets),
    ("statefulset", OurStatefulSets),
    ("daemonset", OurDaemonSets),
    ("job", OurJobs),
)
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))
Body = dict[str, Any]


class Row(NamedTuple):
    kind: Codec[Untyped]
    handler: WorkloadHandler
    spec: Body


def template(image: str, **spec: Any) -> Body:
    container = {"name": "main", "image": image, "resources": {"limits": {"cpu": "1000m"}}}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def row(group: str, kind: str, plural: str, **spec: Any) -> Row:
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    whole = {"template": template("a"), **selector, **spec}
    return Row(untyped(Resource(group, "v1", kind, plural)), BUILT_IN[group, kind], whole)


ON_NODES = {"nodeSelector": {"row": "<namespace>"}, "schedulerName": "nobody", "tolerations": [{"operator": "Exists"}]}
ROWS: Mapping[str, Row] = {
    "Deployment": row("apps", "Deployment", "deployments", replicas=3, strategy={"rollingUpdate": {"maxSurge": "34%"}}),
    "StatefulSet": row("apps", "StatefulSet", "statefulsets", replicas=3, serviceName=""),
    "DaemonSet": row("apps", "DaemonSet", "daemonsets", template=template("a", **ON_NODES)),
    "ReplicaSet": row("apps", "ReplicaSet", "replicasets", replicas=3),
    "Job": row("batch", "Job", "jobs", template=template("a", restartPolicy="Never"), completions=5, parallelism=1),
}


@pytest.fixture(scope="module")
def played_on_kubernetes(without_nodes: Cluster) -> Mapping[str, object]:
    """What came of every row: nothing, or what went wrong."""
    return run_apart(each(ROWS, lambda row: played(real_stage(without_nodes), row)))


@pytest.mark.timeout(400)  # the first row waits for all of them to be played
@pytest.mark.parametrize("kind", ROWS)
def test_patches_do_what_they_say_with_the_controllers_of_kubernetes(
    played_on_kubernetes: Mapping[str, object], kind: str
) -> None:
    if isinstance(found := played_on_kubernetes[kind], BaseException):
        raise found


@pytest.mark.parametrize("kind", ROWS)
def test_patches_do_what_they_say_with_our_controllers(kind: str) -> None:
    run(played(embedded_stage(PARTS), ROWS[kind]))


async def played(opening: AbstractAsyncContextManager[Stage], row: Row) -> None:
    async with opening as stage:
        nodes = await make_nodes(stage) if row.handler.kind == "DaemonSet" else []
        try:
            await play(Player(stage, row._replace(spec=in_namespace(row.spec, stage.namespace))))
        finally:
            for name in nodes:
                await stage.client.delete(NODES, name)


async def play(player: Player) -> None:
    handler = player.handler
    await player.create()
    found = await player.get()
    strategy, limits = handler.strategy(found), handler.limits(found)
    assert template_hash(handler.template(found)) == template_hash(player.spec["template"])
    if handler.kind != "Job":
        await release(player, strategy)
        assert (handler.strategy(await player.get()), handler.limits(await player.get())) == (strategy, limits)
    if (partition := handler.with_partition(2)) is not None:
        await player.patch(merged(partition, image("c")))
        await player.has_images(["b", "b", "c"])
    if (scaled := handler.scale(2)) is not None:
        await player.patch(scaled)
        await player.has_pods(2)


async def release(player: Player, strategy: Any) -> None:
    """A new template that waits while the workload is frozen, and replaces pods when it no longer is."""
    handler, before = player.handler, await player.images()
    await player.patch(merged(handler.freeze(await player.get()), image("b")))
    await player.has_images(before)
    released = handler.with_strategy(strategy)
    if released is not None:
        await player.patch(released)
        await player.has_images(["b"] * len(before))


class Player:
    """One workload on a stage."""

    def __init__(self, stage: Stage, row: Row) -> None:
        self._stage, self._kind = stage, row.kind
        self.handler, self.spec = row.handler, row.spec

    async def create(self) -> None:
        body = {"metadata": {"name": "web"}, "spec": self.spec}
        await self._stage.client.create(self._kind, body, self._stage.namespace)
        await self._at_rest()

    async def get(self) -> Untyped:
        return await self._stage.client.get(self._kind, "web", self._stage.namespace)

    async def patch(self, patch: Body) -> None:
        await self._stage.client.patch(self._kind, "web", MergePatch(patch), self._stage.namespace)

    async def images(self) -> list[str]:
        return await self._at_rest()

    async def has_images(self, wanted: list[str]) -> None:
        assert await self._at_rest() == wanted

    async def has_pods(self, number: int) -> None:
        assert len(await self._at_rest()) == number

    async def _at_rest(self) -> list[str]:
        """The images of the pods, by name, once all are ready and the workload has seen its last change."""
        return await self._stage.at_rest(self._look, within=120.0, patience=3)

    async def _look(self) -> list[str] | None:
        pods = [pod for pod in await self._stage.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
        for pod in pods:
            if not is_ready(pod):
                with suppress(NotFound):  # it was replaced meanwhile
                    await self._stage.say_of_pod(pod["metadata"]["name"], "Running", ready=True)
        settled = self.handler.replicas(await self.get()).observed and all(map(is_ready, pods))
        return [pod["spec"]["containers"][0]["image"] for pod in pods] if settled and pods else None


async def make_nodes(stage: Stage) -> list[str]:
    """Two nodes that take no pods but those of the row."""
    names = [f"{stage.namespace}-n1", f"{stage.namespace}-n2"]
    for name in names:
        meta = {"name": name, "labels": {"row": stage.namespace}}
        taints = [{"key": "own", "effect": "NoSchedule"}]
        await stage.client.create(NODES, {"metadata": meta, "spec": {"taints": taints}})
    return names


def image(name: str) -> Body:
    """The patch of the template's image. A merge patch replaces lists whole."""
    return {"spec": {"template": {"spec": {"containers": template(name)["spec"]["containers"]}}}}


def merged(one: Body, other: Body) -> Body:
    """Two patches in one write."""
    both = {name: merged(one[name], other[name]) for name in one if name in other}
    return {**one, **other, **both}


def in_namespace(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: in_namespace(part, namespace) for key, part in value.items()}
    if isinstance(value, list):
        return [in_namespace(part, namespace) for part in value]
    return value.replace("<namespace>", namespace) if isinstance(value, str) else value
