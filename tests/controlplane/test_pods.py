"""Simulated pods, steered by annotations."""

import json
from datetime import datetime
from typing import Any

import pytest

from controlplane import Cluster

PATIENCE = "--timeout=300s"


class Namespace:
    """A namespace of a cluster, with kubectl at hand."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    async def kubectl(self, *arguments: str, given: object = None) -> str:
        return await self.cluster.kubectl("-n", self.name, *arguments, input=json.dumps(given))

    async def deploy(self, image: str, *, replicas: int = 1, **annotations: str) -> None:
        """A Deployment `web`; annotations without their prefix, underscores for dashes."""
        await self.kubectl("apply", "-f", "-", given=deployment(image, replicas, annotations))

    async def pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(await self.kubectl("get", "pods", "-o", "json"))["items"]
        return items

    async def wait_for_pods(self, condition: str) -> None:
        # `kubectl wait` does not wait for objects that are not there yet.
        await self.kubectl("wait", "--for=create", "replicaset", "--selector=app=web", PATIENCE)
        await self.kubectl("wait", "--for=create", "pods", "--selector=app=web", PATIENCE)
        await self.kubectl("wait", "pods", "--all", f"--for={condition}", PATIENCE)

    async def available(self) -> int:
        told = await self.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
        return int(told or 0)


@pytest.fixture
async def namespace(full_cluster: Cluster) -> Namespace:
    return Namespace(full_cluster, await full_cluster.fresh_namespace("pods"))


def template(image: str, annotations: dict[str, str], **spec: object) -> dict[str, Any]:
    keys = {f"kedge.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    metadata = {"labels": {"app": "web"}, "annotations": keys}
    return {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": image}], **spec}}


def deployment(image: str, replicas: int, annotations: dict[str, str]) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template(image, annotations)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def waiting(reason: str) -> str:
    return f"jsonpath={{.status.containerStatuses[0].state.waiting.reason}}={reason}"


def seconds_to_ready(pod: dict[str, Any]) -> float:
    """From running to ready, as the pod's own status tells it, in whole seconds rounded down."""
    [ready] = [c for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    start, end = (datetime.fromisoformat(t) for t in (pod["status"]["startTime"], ready["lastTransitionTime"]))
    return (end - start).total_seconds()


async def test_a_deployment_becomes_available(namespace: Namespace) -> None:
    await namespace.deploy("web:1", replicas=3)
    await namespace.kubectl("rollout", "status", "deployment/web", PATIENCE)
    assert await namespace.available() == 3
    assert {pod["status"]["phase"] for pod in await namespace.pods()} == {"Running"}
    assert len({pod["status"]["podIP"] for pod in await namespace.pods()}) == 3


async def test_a_bad_image_never_becomes_available(namespace: Namespace) -> None:
    await namespace.deploy("web:bad", replicas=2)
    await namespace.wait_for_pods(waiting("ImagePullBackOff"))
    assert await namespace.available() == 0
    assert {pod["status"]["phase"] for pod in await namespace.pods()} == {"Pending"}


async def test_a_rollout_to_a_bad_image_keeps_the_good_pods(namespace: Namespace) -> None:
    await namespace.deploy("web:1", replicas=3)
    await namespace.kubectl("rollout", "status", "deployment/web", PATIENCE)
    await namespace.kubectl("set", "image", "deployment/web", "web=web:bad-2")
    await namespace.kubectl("wait", "deployment/web", "--for=jsonpath={.status.unavailableReplicas}=1", PATIENCE)
    assert await namespace.available() == 3


async def test_a_pod_becomes_ready_when_told(namespace: Namespace) -> None:
    await namespace.deploy("web:1", ready_after="2s")
    await namespace.kubectl("rollout", "status", "deployment/web", PATIENCE)
    [pod] = await namespace.pods()
    assert seconds_to_ready(pod) >= 2


async def test_a_pod_that_is_never_ready_runs_all_the_same(namespace: Namespace) -> None:
    await namespace.deploy("web:1", never_ready="true")
    await namespace.wait_for_pods("jsonpath={.status.phase}=Running")
    assert await namespace.available() == 0


async def test_readiness_can_be_taken_from_a_pod_and_given_back(namespace: Namespace) -> None:
    await namespace.deploy("web:1")
    await namespace.wait_for_pods("condition=Ready")
    await namespace.kubectl("annotate", "pods", "--all", "kedge.dev/never-ready=true")
    await namespace.wait_for_pods("condition=Ready=false")
    await namespace.kubectl("annotate", "pods", "--all", "kedge.dev/never-ready-")
    await namespace.wait_for_pods("condition=Ready")


async def test_a_pod_crashes_and_recovers(namespace: Namespace) -> None:
    await namespace.deploy("web:1", crash_loop="true")
    await namespace.wait_for_pods(waiting("CrashLoopBackOff"))
    await namespace.kubectl("annotate", "pods", "--all", "kedge.dev/crash-loop-")
    await namespace.wait_for_pods("condition=Ready")
    [pod] = await namespace.pods()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_a_job_completes(namespace: Namespace) -> None:
    pod = template("job:1", {"complete_after": "100ms"}, restartPolicy="Never")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": pod}}
    await namespace.kubectl("apply", "-f", "-", given=job)
    await namespace.kubectl("wait", "job/job", "--for=condition=Complete", PATIENCE)
    assert [pod["status"]["phase"] for pod in await namespace.pods()] == ["Succeeded"]


async def test_a_stateful_set_starts_its_pods_in_order(namespace: Namespace) -> None:
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 2, "serviceName": "web", "selector": selector, "template": template("web:1", {})}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    await namespace.kubectl("apply", "-f", "-", given=stateful_set)
    await namespace.kubectl("rollout", "status", "statefulset/web", PATIENCE)
    assert [pod["metadata"]["name"] for pod in await namespace.pods()] == ["web-0", "web-1"]


async def test_deleted_pods_go(namespace: Namespace) -> None:
    await namespace.deploy("web:1", replicas=2)
    await namespace.wait_for_pods("condition=Ready")
    await namespace.kubectl("scale", "deployment/web", "--replicas=0")
    await namespace.kubectl("wait", "pods", "--all", "--for=delete", PATIENCE)
    assert await namespace.pods() == []
