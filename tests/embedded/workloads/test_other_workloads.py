"""StatefulSets, DaemonSets, Jobs, services and budgets on the embedded server, with its kubelet, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.workloads.everything import EVERYTHING, FLEET_NETWORK
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import Untyped, untyped
from kedge.kube.patches import MergePatch
from support.stage import PODS, Stage, embedded_stage, is_ready
from support.virtual import run

APPS = {kind: untyped(Resource("apps", "v1", kind, f"{kind.lower()}s")) for kind in ("StatefulSet", "DaemonSet")}
JOBS = untyped(Resource("batch", "v1", "Job", "jobs"))
SERVICES = untyped(Resource("", "v1", "Service", "services"))
BUDGETS = untyped(Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"))
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))
EXPORTS = untyped(Resource("networking.fleet.azure.com", "v1alpha1", "ServiceExport", "serviceexports"))
SLICES = untyped(Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"))


@asynccontextmanager
async def town(nodes: int = 2, **options: Any) -> AsyncIterator[Stage]:
    """A namespace with everything that is simulated, and some nodes."""
    async with embedded_stage(EVERYTHING, **options) as stage:
        await make_nodes(stage.client, nodes, stage.clock)
        await asyncio.sleep(2)
        yield stage


async def until(holds: Callable[[], Awaitable[object]], within: float = 600.0) -> float:
    """Wait until it holds; gives how many seconds that took."""
    begun = asyncio.get_running_loop().time()
    async with asyncio.timeout(within):
        while not await holds():
            await asyncio.sleep(0.1)
    return asyncio.get_running_loop().time() - begun


def template(image: str = "web:1", **steer: str) -> dict[str, Any]:
    annotations = {f"kedge.dev/{word.replace('_', '-')}": value for word, value in steer.items()}
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": image}]},
    }


async def make(stage: Stage, kind: str, pods: dict[str, Any], **spec: Any) -> None:
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": pods, **spec}
    await stage.client.create(APPS[kind], {"metadata": {"name": "web"}, "spec": body}, stage.namespace)


async def status(stage: Stage, kind: Any, name: str = "web") -> dict[str, Any]:
    found = await stage.client.get(kind, name, stage.namespace)
    return dict(found.get("status", {}))


def done(stage: Stage, replicas: int) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        found: Untyped = await stage.client.get(APPS["StatefulSet"], "web", stage.namespace)
        said = found.get("status", {})
        same = said.get("currentRevision") == said.get("updateRevision")
        counts = [said.get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")]
        return same and counts == [replicas] * 3 and said["observedGeneration"] == found["metadata"]["generation"]

    return holds


@pytest.mark.parametrize(("policy", "seconds"), [("OrderedReady", 30), ("Parallel", 10)])
def test_a_stateful_set_takes_as_long_as_its_pods_one_after_another_or_together(policy: str, seconds: int) -> None:
    async def main() -> None:
        async with town() as stage:
            pods = template(ready_after="10s")
            await make(stage, "StatefulSet", pods, replicas=3, podManagementPolicy=policy, serviceName="")
            assert seconds <= await until(done(stage, 3)) < seconds + 2
            patch = MergePatch({"spec": {"template": {"spec": template("web:2")["spec"]}}})
            await stage.client.patch(APPS["StatefulSet"], "web", patch, stage.namespace)
            assert 30 <= await until(done(stage, 3)) < 33  # an update goes one by one, whatever the policy

    run(main())


def test_a_bad_image_stops_at_the_last_pod_and_stays_until_somebody_deletes_it() -> None:
    async def main() -> None:
        async with town() as stage:
            await make(stage, "StatefulSet", template(), replicas=3, serviceName="")
            await until(done(stage, 3))
            for image in ("web:bad", "web:1"):
                patch = MergePatch({"spec": {"template": {"spec": template(image)["spec"]}}})
                await stage.client.patch(APPS["StatefulSet"], "web", patch, stage.namespace)
                await asyncio.sleep(60)
                assert [is_ready(pod) for pod in await stage.all(PODS)] == [True, True, False]
            await stage.client.delete(PODS, "web-2", stage.namespace)
            await until(done(stage, 3))

    run(main())


@pytest.mark.parametrize("seed", range(6))
def test_whatever_users_do_meanwhile_a_stateful_set_ends_well(seed: int) -> None:
    async def main() -> None:
        rng = Random(seed)
        async with town(seed=seed, delay=(0.0, 3.0)) as stage:
            await make(stage, "StatefulSet", template(), replicas=3, serviceName="", podManagementPolicy="Parallel")
            for _ in range(12):
                await meddle(stage, rng)
                await asyncio.sleep(rng.uniform(0, 6))
            spec = {"replicas": 4, "updateStrategy": {"rollingUpdate": {"partition": 0}}}
            last = MergePatch({"spec": {**spec, "template": {"spec": template("web:9")["spec"]}}})
            await stage.client.patch(APPS["StatefulSet"], "web", last, stage.namespace)
            await until(done(stage, 4))
            names = [pod["metadata"]["name"] for pod in await stage.all(PODS)]
            assert names == ["web-0", "web-1", "web-2", "web-3"]

    run(main())


async def meddle(stage: Stage, rng: Random) -> None:
    match rng.choice(["scale", "image", "partition", "delete"]):
        case "scale":
            change: dict[str, Any] = {"replicas": rng.randrange(6)}
        case "image":
            change = {"template": {"spec": template(rng.choice(["web:1", "web:2", "web:bad"]))["spec"]}}
        case "partition":
            change = {"updateStrategy": {"rollingUpdate": {"partition": rng.randrange(4)}}}
        case _:
            for pod in (await stage.all(PODS))[: rng.randrange(3)]:
                await stage.client.delete(PODS, pod["metadata"]["name"], stage.namespace)
            return
    await stage.client.patch(APPS["StatefulSet"], "web", MergePatch({"spec": change}), stage.namespace)


def test_a_daemon_set_has_a_pod_on_every_node_cordoned_or_new() -> None:
    async def main() -> None:
        async with town(nodes=2) as stage:
            await stage.client.patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": True}}))
            await make(stage, "DaemonSet", template())

            async def covers(*names: str) -> bool:
                pods = await stage.all(PODS)
                return sorted(pod["spec"].get("nodeName", "") for pod in pods if is_ready(pod)) == sorted(names)

            await until(lambda: covers("node-1", "node-2"), within=10)
            await make_nodes(stage.client, 3, stage.clock)
            await until(lambda: covers("node-1", "node-2", "node-3"), within=10)
            await asyncio.sleep(1)
            said = await status(stage, APPS["DaemonSet"])
            assert (said["desiredNumberScheduled"], said["numberAvailable"], said["numberMisscheduled"]) == (3, 3, 0)

    run(main())


def test_a_job_runs_to_its_end_and_is_gone_with_its_pods_when_its_time_is_over() -> None:
    async def main() -> None:
        async with town() as stage:
            pods = template(complete_after="5s")
            pods["spec"]["restartPolicy"] = "Never"
            spec = {"template": pods, "completions": 4, "parallelism": 2, "ttlSecondsAfterFinished": 60}
            await stage.client.create(JOBS, {"metadata": {"name": "sum"}, "spec": spec}, stage.namespace)

            async def is_complete() -> bool:
                said = await status(stage, JOBS, "sum")
                return any(one["type"] == "Complete" for one in said.get("conditions", ()))

            assert 10 <= await until(is_complete) < 13
            assert (await status(stage, JOBS, "sum"))["succeeded"] == 4
            assert len(await stage.all(PODS)) == 4

            async def is_gone() -> bool:
                return not await stage.all(JOBS) and not await stage.all(PODS)

            assert 58 <= await until(is_gone) < 65

    run(main())


def test_a_load_balancer_answers_after_a_while_or_never() -> None:
    async def main() -> None:
        async with town() as stage:
            for name, annotations in (
                ("soon", {}),
                ("later", {"kedge.dev/ready-after": "30s"}),
                ("never", {"kedge.dev/never-ready": "true"}),
            ):
                meta = {"name": name, "annotations": annotations}
                body = {"metadata": meta, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
                await stage.client.create(SERVICES, body, stage.namespace)

            async def answering() -> list[str]:
                found = await stage.all(SERVICES)
                return [one["metadata"]["name"] for one in found if one["status"]["loadBalancer"].get("ingress")]

            await asyncio.sleep(5)
            assert await answering() == ["soon"]
            await asyncio.sleep(60)
            assert await answering() == ["later", "soon"]
            await stage.client.patch(SERVICES, "soon", MergePatch({"spec": {"type": "ClusterIP"}}), stage.namespace)
            await asyncio.sleep(5)
            assert await answering() == ["later"]

    run(main())


def test_a_service_export_is_valid_once_there_is_a_service() -> None:
    async def main() -> None:
        async with embedded_stage(FLEET_NETWORK, kinds=[Kind(EXPORTS.resource)]) as stage:
            await stage.client.create(EXPORTS, {"metadata": {"name": "web"}}, stage.namespace)

            async def says() -> list[tuple[str, str]]:
                said = await status(stage, EXPORTS)
                return [(one["type"], one["status"]) for one in said.get("conditions", ())]

            await asyncio.sleep(1)
            assert await says() == [("Valid", "False")]
            body = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
            await stage.client.create(SERVICES, body, stage.namespace)
            await asyncio.sleep(1)
            assert await says() == [("Valid", "True"), ("Conflict", "False")]

    run(main())


def test_nothing_is_written_while_nothing_happens() -> None:
    async def main() -> None:
        async with town() as stage:
            await make(stage, "StatefulSet", template(), replicas=2, serviceName="web", minReadySeconds=5)
            ports = {"ports": [{"port": 80}], "selector": {"app": "web"}}
            await stage.client.create(SERVICES, {"metadata": {"name": "web"}, "spec": ports}, stage.namespace)
            budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "50%"}
            await stage.client.create(BUDGETS, {"metadata": {"name": "web"}, "spec": budget}, stage.namespace)
            pods = {"spec": {**template()["spec"], "restartPolicy": "Never"}}
            await stage.client.create(JOBS, {"metadata": {"name": "sum"}, "spec": {"template": pods}}, stage.namespace)
            daemons = {"metadata": {"labels": {"app": "logs"}}, "spec": template()["spec"]}
            spec = {"selector": {"matchLabels": {"app": "logs"}}, "template": daemons}
            await stage.client.create(APPS["DaemonSet"], {"metadata": {"name": "logs"}, "spec": spec}, stage.namespace)
            await asyncio.sleep(120)
            before = (await stage.client.list(PODS, stage.namespace)).resource_version
            await asyncio.sleep(3400)  # within the hour, after which events are forgotten
            assert (await stage.client.list(PODS, stage.namespace)).resource_version == before
            assert (await status(stage, BUDGETS))["disruptionsAllowed"] == 1
            [found] = await stage.all(SLICES)
            assert [one["conditions"]["ready"] for one in found["endpoints"]] == [True, True]

    run(main())
