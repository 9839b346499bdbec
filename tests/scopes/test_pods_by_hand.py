"""The toy scope of docs/add-a-scope.md: its plan, and pods that it replaces on the embedded server and a real one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controlplane.cluster import Cluster
from kedge.api.apps import ReplicaSet
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod
from kedge.embedded.server import Server
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.faults import NONE, ROUGH, Faults
from kedge.simulate.process import Process
from kedge.simulate.run import run
from kedge.simulate.simulation import Simulation
from scopes.pods_by_hand import MAX_UNAVAILABLE, WAITS, PodsByHand, plan, wait_text
from support.waiting import until_so

HERE = "scopes.test_pods_by_hand"
CODE = Path(__file__).with_name("pods_by_hand.py")
PAGE = Path(__file__).parents[2] / "docs" / "add-a-scope.md"
REPLICAS, UNAVAILABLE = 5, 2


def replica_set(image: str, namespace: str = "default") -> dict[str, Any]:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}}
    meta = {"name": "web", "namespace": namespace, "annotations": {MAX_UNAVAILABLE: str(UNAVAILABLE)}}
    return {"metadata": meta, "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": pod}}


def is_ready(pod: Pod) -> bool:
    told = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return told and pod.metadata.deletion_timestamp is None


def are_replaced(pods: Iterable[Pod]) -> bool:
    found = [pod for pod in pods if is_ready(pod)]
    return len(found) == REPLICAS and all((pod.spec.containers or ())[0].image == "web:2" for pod in found)


# On the embedded server, in virtual time


def pods_of(server: Server) -> list[Pod]:
    kind = next(kind for kind in server.registry.kinds() if kind.resource == Pod.resource)
    versions = server.store.all(kind).at(server.store.number).within("default/")
    return [msgspec.json.decode(version.body, type=Pod) for version in versions]


async def replacing(simulation: Simulation) -> None:
    """A ReplicaSet whose template is changed once all of its pods are ready."""
    server, user = simulation.cluster("member").server, simulation.client("member")

    async def controllers(process: Process) -> None:
        async with Manager(component="kcm", clock=process.clock, rng=process.rng("manager")) as manager:
            cluster = await manager.connect("member", process.link("member"))
            add_workloads(manager, cluster)
            await manager.run(signals=False)

    async def by_hand(process: Process) -> None:
        async with Manager(component="by hand", clock=process.clock, rng=process.rng("manager")) as manager:
            manager.add_controller(PodsByHand(await manager.connect("member", process.link("member"))).controller)
            await manager.run(signals=False)

    await make_nodes(user, 2, simulation.clock)
    simulation.start("controllers", controllers)
    simulation.start("by hand", by_hand)
    await user.create(ReplicaSet, replica_set("web:1"))
    await simulation.until("all pods are ready", lambda: sum(map(is_ready, pods_of(server))) == REPLICAS, within=600)

    def enough_are_ready(*_: object) -> str:
        ready = sum(map(is_ready, pods_of(server)))
        return "" if ready >= REPLICAS - UNAVAILABLE else f"{ready} of {REPLICAS} pods are ready"

    simulation.always("enough pods are ready", enough_are_ready)
    await user.patch(ReplicaSet, "web", MergePatch(replica_set("web:2")), "default")
    await simulation.until("all pods are new and ready", lambda: are_replaced(pods_of(server)), within=600)
    await simulation.rest()
    assert WAITS not in (await user.get(ReplicaSet, "web", "default")).metadata.annotations


@pytest.mark.parametrize("faults", [NONE, ROUGH], ids=["none", "rough"])
def test_pods_are_replaced_on_the_embedded_server_and_enough_stay_ready(faults: Faults) -> None:
    for seed in range(3):
        run(f"{HERE}:replacing", seed=seed, faults=faults)


# On a real one


async def test_pods_are_replaced_on_a_real_server_and_enough_stay_ready(full_cluster: Cluster) -> None:
    namespace = await full_cluster.fresh_namespace()
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    lowest = [REPLICAS]

    async def ready(client: Client) -> list[Pod]:
        return [pod for pod in (await client.list(Pod, namespace)).items if is_ready(pod)]

    async def all_ready(client: Client) -> bool:
        return len(await ready(client)) == REPLICAS

    async def all_new(client: Client) -> bool:
        found = await ready(client)
        lowest.append(len(found))
        return are_replaced(found)

    async with Manager(component="by hand") as manager:
        cluster = await manager.connect("member", HttpsTransport(connection))
        manager.add_controller(PodsByHand(cluster).controller)
        running = asyncio.create_task(manager.run(signals=False))
        await cluster.client.create(ReplicaSet, replica_set("web:1", namespace))
        await until_so(lambda: all_ready(cluster.client), within=240)
        await cluster.client.patch(ReplicaSet, "web", MergePatch(replica_set("web:2", namespace)), namespace)
        await until_so(lambda: all_new(cluster.client), within=240)
        running.cancel()
    assert min(lowest) >= REPLICAS - UNAVAILABLE


# The page


def test_the_page_shows_the_scope_that_is_tested_and_it_is_short() -> None:
    code = CODE.read_text()
    assert len(code.splitlines()) < 150
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown
    for block in shown:
        assert block.strip("\n") in code


def test_what_a_pod_waits_for_is_said_in_a_sentence() -> None:
    def pod(name: str, image: str, ready: str) -> Pod:
        spec = {"containers": [{"name": "web", "image": image}]}
        body = {"spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}}
        return msgspec.structs.replace(msgspec.convert(body, Pod), metadata=ObjectMeta(name=name))

    wanted = msgspec.convert(replica_set("web:2"), ReplicaSet)
    pods = [("a", "web:2", "False"), ("b", "web:1", "False"), ("c", "web:1", "True"), ("d", "web:1", "True")]
    found = plan(wanted, [pod(*one) for one in pods])
    assert found.moved == ()
    assert wait_text(found.waiting["c"]) == (
        "c waits: at most 2 of 5 pods may be unavailable: a is pending, b is pending; 1 missing"
    )
