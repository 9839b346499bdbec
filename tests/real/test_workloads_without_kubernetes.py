"""The simulated controllers, scheduler and kubelet on a real API server that has none of its own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from controlplane.cluster import Cluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager

PATIENCE = "--timeout=300s"


@asynccontextmanager
async def workloads(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace of a bare API server, where everything that is simulated acts."""
    namespace = await cluster.fresh_namespace("workloads")
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await cluster.request("POST", account, {"metadata": {"name": "default"}})  # which no controller makes here
    transport = HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))
    async with Manager(rng=Random(1)) as manager:
        connected = await manager.connect("bare", transport, limiter=Limiter(rate=0))
        await make_nodes(connected.client, 2, SystemClock())
        add_workloads(manager, connected)
        running = asyncio.create_task(manager.run(signals=False))
        try:
            yield namespace
        finally:
            await cluster.kubectl("-n", namespace, "delete", "deployments,replicasets,pods", "--all", "--wait=false")
            await cluster.kubectl("delete", "nodes", "--all")
            manager.stop()
            await running


def deployment(image: str, **spec: Any) -> str:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}}
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template, "replicas": 4, **spec}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": body})


async def test_kubectl_rolls_a_deployment_out_undoes_it_and_scales_it_down(bare_cluster: Cluster) -> None:
    async with workloads(bare_cluster) as namespace:

        async def kubectl(*words: str, given: str | None = None) -> str:
            return await bare_cluster.kubectl("-n", namespace, *words, input=given)

        await kubectl("apply", "-f", "-", given=deployment("web:1"))
        await kubectl("rollout", "status", "deployment/web", PATIENCE)
        nodes = (await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}")).split()
        # Which of them takes how many depends on what others have running on this cluster.
        assert len(nodes) == 4
        assert set(nodes) <= {"node-1", "node-2"}

        await kubectl("set", "image", "deployment/web", "web=web:bad")
        await kubectl("wait", "deployment/web", "--for=jsonpath={.status.unavailableReplicas}=2", PATIENCE)
        assert await kubectl("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}") == "3"

        await kubectl("rollout", "undo", "deployment/web")
        await kubectl("rollout", "status", "deployment/web", PATIENCE)
        assert "deployment.kubernetes.io/revision: 3" in await kubectl("describe", "deployment", "web")
        assert "web:bad" not in await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}")

        await kubectl("scale", "deployment/web", "--replicas=0")
        await kubectl("wait", "pods", "--all", "--for=delete", PATIENCE)


# Without events at the end: which of many that repeat are combined is a matter of chance in Kubernetes.
SCRIPT = """
rollout status deployment/web
set image deployment/web web=web:2
rollout status deployment/web
describe deployment/web
annotate deployment/web kubernetes.io/change-cause=second
set image deployment/web web=web:3
rollout status deployment/web
rollout history deployment/web
rollout history deployment/web --revision=2
rollout undo deployment/web --to-revision=1
rollout status deployment/web
rollout restart deployment/web
rollout status deployment/web
scale deployment/web --replicas=3
rollout status deployment/web
rollout pause deployment/web
set image deployment/web web=web:4
get deployment,replicaset -o wide
rollout resume deployment/web
rollout status deployment/web
describe deployment/web --show-events=false
describe replicaset --selector=app=web
get replicaset,pods --show-labels
"""
LAST_EVENT = {"describe deployment/web": "from 1 to 0"}  # told after the change itself: it may come later
SHORT = (
    (re.compile(r"web-[a-z0-9]{6,10}-[a-z0-9]{5}\b"), "<pod>"),
    (re.compile(r"web-[a-z0-9]{6,10}\b"), "<set>"),
    (re.compile(r"(pod-template-hash[=:] ?)[a-z0-9]+"), r"\1<hash>"),
    (re.compile(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d{4} [0-9:]{8} \+0000|\d{4}-\d\d-\d\dT[0-9:]{8}Z"), "<time>"),
    (re.compile(r"\b(\d+m)?\d+s( \(x(\d+) over (\d+m)?\d+s\))?"), r"<age> \3"),
    (re.compile(r"[ -]{2,}"), "  "),  # columns are as wide as what was masked
)


async def test_kubectl_shows_the_same_of_the_same_rollouts_as_with_kubernetes(
    bare_cluster: Cluster, full_cluster: Cluster
) -> None:
    async with workloads(bare_cluster) as namespace:
        ours = await _shown(bare_cluster, namespace)
    real = await _shown(full_cluster, await full_cluster.fresh_namespace("workloads"))
    for command, shown in ours.items():
        assert shown == real[command], command


async def _shown(cluster: Cluster, namespace: str) -> dict[str, list[str]]:
    """What each command of the script prints, in lines; of `rollout status` the last: the others are by chance."""

    async def kubectl(*words: str, given: str | None = None) -> str:
        return await cluster.kubectl("-n", namespace, *words, input=given)

    await kubectl("wait", "--for=create", "serviceaccount/default", PATIENCE)
    one_by_one = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await kubectl("apply", "-f", "-", given=deployment("web:1", replicas=2, strategy=one_by_one))
    shown = {}
    for number, command in enumerate(SCRIPT.strip().splitlines()):
        text = await kubectl(*command.split())
        while LAST_EVENT.get(command, "") not in text:
            await asyncio.sleep(0.2)
            text = await kubectl(*command.split())
        lines = text.splitlines()[-1:] if "rollout status" in command else text.splitlines()
        shown[f"{number}: {command}"] = sorted(_short(line, namespace) for line in lines)
    return shown


def _short(line: str, namespace: str) -> str:
    for pattern, word in SHORT:
        line = pattern.sub(word, line)
    return line.replace(namespace, "<namespace>").rstrip()


READY = "condition=Ready"
LIVES = {
    "ready": ("web:1", {}, READY),
    "ready late": ("web:1", {"ready-after": "1s"}, READY),
    "never ready": ("web:1", {"never-ready": "true"}, "jsonpath={.status.phase}=Running"),
    "a bad image": ("web:bad", {}, "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff"),
    "a crash": (
        "web:1",
        {"crash-loop": "true"},
        "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff",
    ),
    "nowhere to run": ("web:1", {}, "jsonpath={.status.conditions[0].reason}=Unschedulable"),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MASKS = {TIME: "<time>", re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"): "<address>", re.compile("node-[12]"): "<node>"}


@pytest.mark.parametrize("life", LIVES)
async def test_a_pod_looks_the_same_as_with_kubernetes(bare_cluster: Cluster, full_cluster: Cluster, life: str) -> None:
    async with workloads(bare_cluster) as namespace:
        ours = await _lived(bare_cluster, namespace, life)
    real = await _lived(full_cluster, await full_cluster.fresh_namespace("workloads"), life)
    assert ours == real


async def _lived(cluster: Cluster, namespace: str, life: str) -> tuple[str, list[str]]:
    """A pod that has come as far as its life goes, and what was told of it."""
    image, steering, until = LIVES[life]
    meta = {"name": "pod", "annotations": {f"kedge.dev/{word}": value for word, value in steering.items()}}
    selector = {"no": "such"} if "nowhere" in life else {}
    spec: dict[str, Any] = {"containers": [{"name": "web", "image": image}], "nodeSelector": selector}
    spec["automountServiceAccountToken"] = False  # its volume has a name by chance
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    await cluster.kubectl("-n", namespace, "wait", "--for=create", "serviceaccount/default", PATIENCE)
    await cluster.kubectl("-n", namespace, "apply", "-f", "-", input=pod)
    await cluster.kubectl("-n", namespace, "wait", "pod/pod", f"--for={until}", PATIENCE)
    found = json.loads(await cluster.kubectl("-n", namespace, "get", "pod", "pod", "-o", "json"))
    # Nodes that nobody kept for a while are not ready yet when the first pod comes.
    lines = [one for one in await _told(cluster, namespace) if "FailedScheduling" not in one or "nowhere" in life]
    shown = {"spec": found["spec"], "status": found["status"], "generation": found["metadata"].get("generation")}
    return _masked(json.dumps(shown, indent=1, sort_keys=True), namespace), [_masked(one, namespace) for one in lines]


async def _told(cluster: Cluster, namespace: str) -> list[str]:
    """What was told in a namespace, once there is anything."""
    async with asyncio.timeout(60):
        while not (told := (await cluster.request("GET", f"/api/v1/namespaces/{namespace}/events")).json()["items"]):
            await asyncio.sleep(0.05)
    return [f"{one['type']} {one['reason']} {one['reportingComponent']} {one['message']}" for one in told]


def _masked(text: str, namespace: str) -> str:
    for pattern, word in MASKS.items():
        text = pattern.sub(word, text)
    return text.replace(namespace, "<namespace>")


async def test_pods_flap_on_simulated_nodes_of_a_real_control_plane(full_cluster: Cluster) -> None:
    namespace = await full_cluster.fresh_namespace("flap")
    spec = {"containers": [{"name": "web", "image": "web:1"}]}
    meta = {"name": "pod", "annotations": {"kedge.dev/flap-every": "300ms", "kedge.dev/ready-after": "300ms"}}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    await full_cluster.kubectl("-n", namespace, "wait", "--for=create", "serviceaccount/default", PATIENCE)
    await full_cluster.kubectl("-n", namespace, "apply", "-f", "-", input=pod)
    for turn in ("condition=Ready", "condition=Ready=false", "condition=Ready", "condition=Ready=false"):
        said = await full_cluster.kubectl("-n", namespace, "wait", "pod/pod", f"--for={turn}", PATIENCE)
        assert "condition met" in said
