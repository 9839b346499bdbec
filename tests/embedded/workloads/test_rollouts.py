"""Deployments from one end to the other on the embedded server, with its scheduler and kubelet, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from kedge.api.apps import Deployment, ReplicaSet
from kedge.api.pods import Node, Pod
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.workloads.everything import EVERYTHING, Workloads, add_workloads
from kedge.embedded.workloads.nodes import Nodes, make_nodes
from kedge.kube.client import Client
from kedge.kube.errors import KubeError
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.plan.workloads.pods import is_active, is_ready
from support.stage import ACCOUNTS, EVENTS, NAMESPACES, START, LoopClock
from support.virtual import run

NS = "shop"


class Shop:
    """One namespace of one cluster, `web` in it."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def deploy(self, image: str = "web:1", *, steer: dict[str, str] | None = None, **spec: Any) -> None:
        annotations = {f"kedge.dev/{word.replace('_', '-')}": value for word, value in (steer or {}).items()}
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": annotations},
            "spec": {"containers": [{"name": "web", "image": image}]},
        }
        body = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
        await self.client.create(Deployment, {"metadata": {"name": "web", "namespace": NS}, "spec": body})

    async def change(self, **spec: Any) -> None:
        await self.client.patch(Deployment, "web", MergePatch({"spec": spec}), NS)

    async def image(self, image: str) -> None:
        await self.change(template={"spec": {"containers": [{"name": "web", "image": image}]}})

    async def deployment(self) -> Deployment:
        return await self.client.get(Deployment, "web", NS)

    async def pods(self) -> tuple[Pod, ...]:
        return (await self.client.list(Pod, NS)).items

    async def sets(self) -> tuple[ReplicaSet, ...]:
        return (await self.client.list(ReplicaSet, NS)).items

    async def reason(self) -> str:
        conditions = (await self.deployment()).status.conditions
        return next((one.reason for one in conditions if one.type == "Progressing"), "")

    async def until(self, holds: Callable[[], Awaitable[bool]], within: float = 600.0) -> float:
        """Wait until it holds; gives how many seconds that took."""
        begun = asyncio.get_running_loop().time()
        async with asyncio.timeout(within):
            while not await holds():
                await asyncio.sleep(0.05)
        return asyncio.get_running_loop().time() - begun

    async def is_complete(self) -> bool:
        found = await self.deployment()
        counts = (found.status.updated_replicas, found.status.replicas, found.status.available_replicas)
        return counts == (found.replicas,) * 3 and found.status.observed_generation == found.metadata.generation

    async def rolled_out(self) -> float:
        return await self.until(self.is_complete)


@asynccontextmanager
async def shop(*, nodes: int = 2, seed: int = 1, delay: tuple[float, float] = (0.0, 0.01)) -> AsyncIterator[Shop]:
    cluster = embedded(seed)
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    await furnish(client, nodes)
    async with Manager(clock=LoopClock(), rng=Random(seed)) as manager:
        transport = InProcessTransport(cluster.server, rng=Random(seed + 1), delay=delay)
        add_workloads(manager, await manager.connect("here", transport, limiter=Limiter(rate=0)))
        running = asyncio.create_task(manager.run(signals=False))
        yield Shop(client)
        manager.stop()
        await running
    await client.close()
    cluster.stop()


def embedded(seed: int) -> EmbeddedCluster:
    cluster = EmbeddedCluster("here", clock=LoopClock(), rng=Random(seed))
    cluster.start()
    return cluster


async def furnish(client: Client, nodes: int) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": NS}})
    await make_nodes(client, nodes, LoopClock())
    await asyncio.sleep(1)  # for the namespace to get its account: before, pods are refused


def test_a_deployment_becomes_available_spread_over_the_nodes() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy()
            await web.rolled_out()
            found = await web.pods()
            assert sorted(pod.spec.node_name for pod in found) == ["node-1", "node-1", "node-2", "node-2"]
            assert len({pod.status.pod_ip for pod in found}) == 4
            assert await web.reason() == "NewReplicaSetAvailable"

    run(main())


def test_a_pod_takes_as_long_as_it_is_told_and_a_rollout_as_long_as_its_pods() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(
                steer={"ready_after": "30s"}, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
            )
            assert 30 <= await web.rolled_out() < 32
            await web.image("web:2")
            assert 120 <= await web.rolled_out() < 125  # four pods, one after the other

    run(main())


def test_a_bad_image_stops_at_the_budget_is_late_after_the_deadline_and_can_be_undone() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy()
            await web.rolled_out()
            await web.image("web:bad")
            await asyncio.sleep(590)
            assert (await web.deployment()).status.available_replicas == 3
            assert await web.reason() == "ReplicaSetUpdated"
            await asyncio.sleep(15)
            assert await web.reason() == "ProgressDeadlineExceeded"
            await web.image("web:1")
            await web.rolled_out()
            assert (await web.deployment()).metadata.annotations["deployment.kubernetes.io/revision"] == "3"

    run(main())


def test_recreate_makes_no_new_pod_before_the_last_old_one_is_gone() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(strategy={"type": "Recreate"}, steer={"delete_after": "20s"})
            await web.rolled_out()
            await web.image("web:2")
            await asyncio.sleep(19)
            assert [is_active(pod) for pod in await web.pods()] == [False] * 4
            assert (await web.deployment()).status.terminating_replicas == 4
            await web.rolled_out()
            assert len(await web.sets()) == 2

    run(main())


def test_pods_are_available_when_they_have_been_ready_for_long_enough() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(minReadySeconds=60)
            assert 59 <= await web.rolled_out() < 63

    run(main())


@pytest.mark.parametrize(
    ("steer", "reason"), [({"crash_loop": "true"}, "CrashLoopBackOff"), ({"never_ready": "true"}, None)]
)
def test_pods_that_do_not_become_ready_are_not_available(steer: dict[str, str], reason: str | None) -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(steer=steer)
            await asyncio.sleep(60)
            states = [pod.status.container_statuses[0].state.waiting for pod in await web.pods()]
            assert [one and one.reason for one in states] == [reason] * 4
            assert (await web.deployment()).status.available_replicas == 0

    run(main())


def test_a_pod_that_flaps_is_ready_by_turns() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(replicas=1, steer={"flap_every": "10s", "ready_after": "5s"})
            seen = []
            for _ in range(60):
                await asyncio.sleep(1)
                seen += [is_ready(pod) for pod in await web.pods()]
            assert 35 <= sum(seen) <= 45

    run(main())


def test_a_pod_that_nobody_can_take_waits_for_a_node_that_can() -> None:
    async def main() -> None:
        async with shop(nodes=1) as web:
            await web.client.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": True}}))
            await asyncio.sleep(1)
            await web.deploy(replicas=1)
            await asyncio.sleep(1)
            told = [one for one in (await web.client.list(EVENTS, NS)).items if one["reason"] == "FailedScheduling"]
            assert [one["message"].partition(". ")[0] for one in told] == [
                "0/1 nodes are available: 1 node(s) were unschedulable"
            ]
            await web.client.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": None}}))
            assert await web.rolled_out() < 2
            assert (await web.client.get(Node, "node-1")).spec.taints == ()

    run(main())


def test_a_pod_is_adopted_if_it_fits_and_released_if_it_no_longer_does() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(replicas=2)
            await web.rolled_out()
            stray, _ = await web.pods()
            relabelled = {"metadata": {"labels": {"app": "debug"}}}
            await web.client.patch(Pod, stray.metadata.name, MergePatch(relabelled), NS)
            await web.until(lambda: _has(web, 3))
            assert (await web.client.get(Pod, stray.metadata.name, NS)).metadata.owner_references == ()
            await web.client.patch(Pod, stray.metadata.name, MergePatch({"metadata": {"labels": {"app": "web"}}}), NS)
            await web.until(lambda: _has(web, 2))

    run(main())


async def _has(web: Shop, pods: int) -> bool:
    return len(await web.pods()) == pods


def test_old_revisions_beyond_the_limit_are_cleared_away() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(replicas=1, revisionHistoryLimit=2)
            for release in range(2, 7):
                await web.rolled_out()
                await web.image(f"web:{release}")
            await web.rolled_out()
            await asyncio.sleep(5)
            revisions = [one.metadata.annotations["deployment.kubernetes.io/revision"] for one in await web.sets()]
            assert sorted(revisions) == ["4", "5", "6"]

    run(main())


def test_clusters_that_join_one_set_of_controllers_do_not_know_of_each_other() -> None:
    async def main() -> None:
        async with Manager(clock=LoopClock(), rng=Random(1)) as manager:
            everything = Workloads(manager, EVERYTHING)
            clusters = [embedded(number) for number in range(3)]
            shops = []
            for number, cluster in enumerate(clusters):
                connected = await manager.connect(f"cluster-{number}", cluster.transport(), limiter=Limiter(rate=0))
                everything.join(connected)
                shops.append(Shop(connected.client))
            running = asyncio.create_task(manager.run(signals=False))
            for number, web in enumerate(shops):
                await furnish(web.client, 1)
                await web.deploy(replicas=number)
            for number, web in enumerate(shops):
                await web.rolled_out()
                assert len(await web.pods()) == number
            manager.stop()
            await running
        for cluster in clusters:
            cluster.stop()

    run(main())


@pytest.mark.parametrize("seed", range(8))
def test_whatever_users_do_meanwhile_and_however_late_watches_are_it_ends_well(seed: int) -> None:
    """Pods of all revisions together never exceed the largest number that was ever allowed."""

    async def main() -> None:
        rng = Random(seed)
        async with shop(seed=seed, delay=(0.0, 3.0)) as web:
            await web.deploy(replicas=5, strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}})
            for _ in range(12):
                await _meddle(web, rng)
                for _ in range(rng.randrange(8)):
                    await asyncio.sleep(rng.uniform(0, 2))
                    assert sum(is_active(pod) for pod in await web.pods()) <= 8 + 2
            await web.change(paused=False)
            await web.image("web:9")
            await web.rolled_out()
            images = {(pod.spec.containers or ())[0].image for pod in await web.pods()}
            assert images in ({"web:9"}, set())

    run(main())


async def _meddle(web: Shop, rng: Random) -> None:
    match rng.choice(["scale", "image", "pause", "delete", "evict"]):
        case "scale":
            await web.change(replicas=rng.randrange(9))
        case "image":
            await web.image(rng.choice(["web:1", "web:2", "web:bad"]))
        case "pause":
            await web.change(paused=rng.random() < 0.5)
        case "delete" | "evict" as how:
            for pod in (await web.pods())[: rng.randrange(3)]:
                await _remove(web, pod, hard=how == "evict")


async def _remove(web: Shop, pod: Pod, *, hard: bool) -> None:
    try:
        await web.client.delete(Pod, pod.metadata.name, NS, grace_seconds=0 if hard else None)
    except KubeError:
        return  # gone by itself


def test_nothing_is_written_while_nothing_happens() -> None:
    async def main() -> None:
        async with shop(delay=(0.0, 0.0)) as web:
            await web.deploy(replicas=10)
            await web.rolled_out()
            await asyncio.sleep(5)
            before = int((await web.client.list(Pod, NS)).resource_version)
            await asyncio.sleep(3400)  # within the hour, after which events are forgotten
            assert int((await web.client.list(Pod, NS)).resource_version) == before

    run(main())


def test_a_node_that_is_to_report_does_so_now_and_then_and_no_more_often() -> None:
    async def main() -> None:
        cluster = embedded(1)
        client = Client(cluster.transport())
        await make_nodes(client, 1, LoopClock())
        async with Manager(clock=LoopClock(), rng=Random(1)) as manager:
            connected = await manager.connect("here", cluster.transport())
            add_workloads(manager, connected, [("node", lambda view: Nodes(view, report_every=60.0))])
            running = asyncio.create_task(manager.run(signals=False))
            versions: list[Node] = []
            connected.cache(Node).on_change(lambda change: versions.append(change.object))
            await asyncio.sleep(605)
            node = await client.get(Node, "node-1")
            assert len(versions) == 12  # as it was made, without the taint new nodes have, and ten reports
            assert {one.last_heartbeat_time for one in node.status.conditions} == {START + timedelta(seconds=600)}
            manager.stop()
            await running
        await client.close()
        cluster.stop()

    run(main())


def test_pods_that_are_refused_are_told_of_by_set_and_deployment_until_they_are_taken() -> None:
    async def main() -> None:
        async with shop() as web:
            await web.deploy(replicas=0)
            await web.rolled_out()
            await web.change(replicas=2, template={"spec": {"serviceAccountName": "missing"}})
            await asyncio.sleep(5)
            told = [
                one["message"] for one in (await web.client.list(EVENTS, NS)).items if one["reason"] == "FailedCreate"
            ]
            assert told
            assert all("Error creating: pods " in one for one in told)
            failures = [one for one in (await web.deployment()).status.conditions if one.type == "ReplicaFailure"]
            assert [(one.status, one.reason) for one in failures] == [("True", "FailedCreate")]
            await web.client.create(ACCOUNTS, {"metadata": {"name": "missing"}}, NS)
            await web.rolled_out()
            assert [one.type for one in (await web.deployment()).status.conditions] == ["Available", "Progressing"]

    run(main())
