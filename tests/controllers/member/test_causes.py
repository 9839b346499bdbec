"""What does not become available names a pod, and what is wrong with it; on a member with simulated workloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from controllers.member.applying_bed import DEPLOYMENTS, Bed, bed, deployment, namespace
from kedge.api.resource import Resource
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.stage import LoopClock
from support.virtual import run

PODS = untyped(Resource("", "v1", "Pod", "pods"))
ACCOUNTS = untyped(Resource("", "v1", "ServiceAccount", "serviceaccounts"))
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))


@asynccontextmanager
async def workloads(here: Bed) -> AsyncIterator[None]:
    """The member's own controllers, scheduler and kubelets."""
    async with Manager(clock=LoopClock(), rng=Random(2)) as manager:
        member = await manager.connect("member", here.member_cluster.transport(), limiter=Limiter(rate=0))
        add_workloads(manager, member)
        await make_nodes(here.member, 1, manager.clock)
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


def play(scene: Callable[[Bed], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with bed() as here, workloads(here), here.agent():
            await scene(here)

    run(whole())


async def said(here: Bed) -> str:
    """What is said of the last manifest's being available."""
    conditions = (await here.work()).status.manifest_conditions[-1].conditions
    return next(one.message for one in conditions if one.type == "Available")


async def pods(here: Bed) -> list[str]:
    found = (await here.member.list(PODS, "shop")).items
    return sorted(one["metadata"]["name"] for one in found)


def told(body: Untyped, **words: str) -> Untyped:
    annotations = {f"kedge.dev/{word.replace('_', '-')}": value for word, value in words.items()}
    template = body["spec"]["template"]
    meta = {**template["metadata"], "annotations": annotations}
    return {**body, "spec": {**body["spec"], "template": {**template, "metadata": meta}}}


def stateful(**options: Any) -> Untyped:
    body = deployment(**options)
    return {**body, "kind": "StatefulSet", "spec": {**body["spec"], "serviceName": "web"}}


def daemons(**options: Any) -> Untyped:
    body = deployment(**options)
    return {**body, "kind": "DaemonSet", "spec": {k: v for k, v in body["spec"].items() if k != "replicas"}}


def job(image: str) -> Untyped:
    containers = [{"name": "app", "image": image}]
    spec = {"template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (deployment(image="app:bad"), "ImagePullBackOff: Back-off pulling image app:bad"),
        (told(deployment(), crash_loop="true"), "CrashLoopBackOff: exit code 1 (Error)"),
        (stateful(image="app:bad"), "ImagePullBackOff: Back-off pulling image app:bad"),
        (daemons(image="app:bad"), "ImagePullBackOff: Back-off pulling image app:bad"),
        (job(image="app:bad"), "ImagePullBackOff: Back-off pulling image app:bad"),
    ],
    ids=["Deployment", "crash loop", "StatefulSet", "DaemonSet", "Job"],
)
def test_what_does_not_come_up_names_a_pod_and_what_is_wrong_with_it(body: Untyped, words: str) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), body)
        await here.rest(5)
        first = (await pods(here))[0]
        assert (await said(here)).endswith(f": pod {first}: {words}")

    play(scene)


def test_a_pod_that_no_node_takes_is_named() -> None:
    async def scene(here: Bed) -> None:
        await here.member.patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": True}}))
        await here.place(namespace(), deployment())
        await here.rest(5)
        assert f": pod {(await pods(here))[0]}: Unschedulable: 0/1 nodes are available" in await said(here)
        await here.member.patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": None}}))
        await here.rest(5)
        assert await said(here) == "Deployment shop/web has 2 of 2 replicas updated and available"

    play(scene)


def test_a_bad_release_names_a_pod_of_it_and_a_fix_has_nothing_to_say() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment())
        await here.rest(5)
        before = await pods(here)
        await here.place(namespace(), deployment(image="app:bad"))
        await here.rest(5)
        new = [one for one in await pods(here) if one not in before]
        assert f"has 1 of 2 updated replicas: pod {new[0]}: ImagePullBackOff" in await said(here)
        await here.place(namespace(), deployment(image="app:2"))
        await here.rest(5)
        assert await said(here) == "Deployment shop/web has 2 of 2 replicas updated and available"

    play(scene)


def test_a_rollout_that_passed_its_deadline_says_so_and_why() -> None:
    async def scene(here: Bed) -> None:
        body = deployment(image="app:bad")
        await here.place(namespace(), {**body, "spec": {**body["spec"], "progressDeadlineSeconds": 20}})
        await here.rest(40)
        assert "has timed out progressing: pod web-" in await said(here)
        assert "ImagePullBackOff" in await said(here)

    play(scene)


def test_what_stands_still_costs_nothing() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment(image="app:bad", replicas=9))
        await here.rest(30)
        for transport in (here.to_hub, here.to_member):
            transport.writes.clear()
            transport.reads.clear()
        await here.rest(300)
        assert (here.to_hub.writes, here.to_member.writes) == ([], [])
        reads = (*here.to_hub.reads, *here.to_member.reads)
        assert [path for path in reads if path != "/version"] == []  # whether the server is there

    play(scene)


def test_a_pod_that_pulls_and_waits_by_turns_is_told_once() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), deployment(image="app:bad", replicas=1))
        await here.rest(5)
        [name] = await pods(here)
        here.to_hub.writes.clear()
        for reason in ("ErrImagePull", "ImagePullBackOff") * 3:
            state = {"waiting": {"reason": reason, "message": f"now {reason}"}}
            app = {"name": "app", "image": "app:bad", "imageID": "", "ready": False, "restartCount": 0, "state": state}
            body = {"status": {"containerStatuses": [app]}}
            await here.member.patch(PODS, name, MergePatch(body), "shop", subresource="status")
            await here.rest(10)
        assert here.to_hub.writes == []

    play(scene)


def test_a_good_release_is_reported_as_often_as_without_pods_to_look_at() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), told(deployment(replicas=9), ready_after="1s"))
        await here.rest(10)
        here.to_hub.writes.clear()
        here.to_member.reads.clear()
        await here.place(namespace(), told(deployment(image="app:2", replicas=9), ready_after="1s"))
        await here.rest(30)
        assert await said(here) == "Deployment shop/web has 9 of 9 replicas updated and available"
        assert [one for one in here.to_member.reads if "pods" in one or "replicasets" in one] == []

    play(scene)


def test_a_pod_that_does_not_become_ready_is_named_when_that_has_taken_long() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), told(deployment(), never_ready="true"))
        await here.rest(20)
        assert await said(here) == "Deployment shop/web has 0 of 2 available replicas"
        await here.rest(20)
        first = (await pods(here))[0]
        assert await said(here) == f"Deployment shop/web has 0 of 2 available replicas: pod {first}: NotReady"
        here.to_hub.writes.clear()
        await here.rest(300)
        assert here.to_hub.writes == []

    play(scene)


def test_pods_of_others_are_no_cause() -> None:
    async def scene(here: Bed) -> None:
        stranger = deployment("web-of-others", image="app:bad")
        await here.place(namespace(), told(deployment(), never_ready="true"))
        await here.rest()
        await here.member.create(DEPLOYMENTS, stranger)
        await here.rest(5)
        assert await said(here) == "Deployment shop/web has 0 of 2 available replicas"

    play(scene)


# Pods that may not be created


def account(body: Untyped, name: str = "missing") -> Untyped:
    """With pods of a ServiceAccount; they are refused while there is none of that name."""
    template = body["spec"]["template"]
    return {
        **body,
        "spec": {**body["spec"], "template": {**template, "spec": {**template["spec"], "serviceAccountName": name}}},
    }


async def watched(here: Bed) -> list[str]:
    """The namespaces of which the agent watches events."""
    return sorted(here.applier._pods._creations._events)


@pytest.mark.parametrize("body", [stateful(), daemons(), job("app:1")], ids=["StatefulSet", "DaemonSet", "Job"])
def test_a_pod_that_may_not_be_created_is_said_to_be_refused_until_it_is_created(body: Untyped) -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), account(body))
        await here.rest(5)
        assert ": FailedCreate: " in await said(here)
        assert "is forbidden: error looking up service account shop/missing" in await said(here)
        assert await watched(here) == ["shop"]
        await here.member.create(ACCOUNTS, {"metadata": {"name": "missing"}}, "shop")
        await here.rest(120)
        assert "FailedCreate" not in await said(here)
        assert await watched(here) == []

    play(scene)


def test_pods_that_are_refused_again_and_again_cost_nothing_on_the_hub() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), account(daemons()))
        await here.rest(10)
        here.to_hub.writes.clear()
        here.to_member.reads.clear()
        await here.rest(300)
        assert [one for one in here.to_hub.writes if "/works/" in one] == []
        assert [one for one in here.to_member.reads if "events" in one] == []

    play(scene)


def test_an_old_refusal_is_not_the_cause_of_what_is_wrong_now() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), account(stateful()))
        await here.rest(5)
        await here.member.create(ACCOUNTS, {"metadata": {"name": "missing"}}, "shop")
        await here.rest(1100)
        await here.place(namespace(), told(stateful(), ready_after="20s"))
        await here.rest(10)
        assert "updated replicas" in await said(here)
        assert "FailedCreate" not in await said(here)

    play(scene)


def test_events_are_no_longer_watched_once_the_workload_is_no_longer_placed() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), account(stateful()))
        await here.rest(5)
        assert await watched(here) == ["shop"]
        await here.place(namespace())
        await here.rest(5)
        assert await watched(here) == []

    play(scene)
