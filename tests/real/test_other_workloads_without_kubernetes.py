"""StatefulSets, DaemonSets, Jobs, services and budgets of ours on a real API server that has no controllers.

The server checks every write: what is written here is what it takes, and what kubectl waits for comes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from controlplane.cluster import Cluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager

PATIENCE = "--timeout=300s"


class Kubectl:
    """kubectl, in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace

    async def __call__(self, *words: str, given: object = None) -> str:
        text = None if given is None else json.dumps(given)
        return await self._cluster.kubectl("-n", self.namespace, *words, input=text)

    async def make(self, api_version: str, kind: str, name: str, spec: dict[str, Any]) -> None:
        meta = {"name": name, "labels": {"app": name}}
        await self("apply", "-f", "-", given={"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})

    async def show(self, what: str, path: str) -> str:
        return await self("get", what, "-o", f"jsonpath={path}")


@asynccontextmanager
async def workloads(cluster: Cluster) -> AsyncIterator[Kubectl]:
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
        kubectl = Kubectl(cluster, namespace)
        try:
            yield kubectl
        finally:
            kinds = "statefulsets,daemonsets,jobs,services,poddisruptionbudgets,pods"
            await kubectl("delete", kinds, "--all", "--wait=false")
            await cluster.kubectl("delete", "nodes", "--all")
            manager.stop()
            await running


def pods(name: str, image: str = "a:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def selecting(name: str, **spec: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": name}}, "template": pods(name), **spec}


async def test_kubectl_rolls_a_stateful_set_and_a_daemon_set_out_and_back(bare_cluster: Cluster) -> None:
    async with workloads(bare_cluster) as kubectl:
        await kubectl.make("apps/v1", "StatefulSet", "db", selecting("db", replicas=3, serviceName="db"))
        await kubectl.make("apps/v1", "DaemonSet", "logs", selecting("logs"))
        for what in ("statefulset/db", "daemonset/logs"):
            await kubectl("rollout", "status", what, PATIENCE)
            await kubectl("set", "image", what, "main=a:2")
            await kubectl("rollout", "status", what, PATIENCE)
            await kubectl("rollout", "undo", what)
            await kubectl("rollout", "status", what, PATIENCE)
        images = await kubectl.show("pods", "{.items[*].spec.containers[0].image}")
        assert images.split() == ["a:1"] * 5
        history = await kubectl("rollout", "history", "statefulset/db")
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]


async def test_a_job_completes_and_its_pods_lose_their_finalizer(bare_cluster: Cluster) -> None:
    async with workloads(bare_cluster) as kubectl:
        template = pods("sum", restartPolicy="Never")
        await kubectl.make("batch/v1", "Job", "sum", {"completions": 3, "parallelism": 2, "template": template})
        await kubectl("wait", "--for=condition=Complete", "job/sum", PATIENCE)
        assert await kubectl.show("job/sum", "{.status.succeeded}") == "3"
        assert await kubectl.show("pods", "{.items[*].metadata.finalizers}") == ""
        await kubectl.make("batch/v1", "Job", "late", {"activeDeadlineSeconds": 2, "template": never_ready(template)})
        await kubectl("wait", "--for=condition=Failed", "job/late", PATIENCE)
        assert await kubectl.show("job/late", "{.status.conditions[*].reason}") == "DeadlineExceeded DeadlineExceeded"


def never_ready(template: dict[str, Any]) -> dict[str, Any]:
    return {**template, "metadata": {**template["metadata"], "annotations": {"kedge.dev/never-ready": "true"}}}


async def test_a_service_finds_its_pods_and_a_budget_counts_them(bare_cluster: Cluster) -> None:
    async with workloads(bare_cluster) as kubectl:
        await kubectl.make("apps/v1", "StatefulSet", "db", selecting("db", replicas=2, serviceName="db"))
        ports = [{"port": 80, "name": "http"}]
        await kubectl.make("v1", "Service", "db", {"selector": {"app": "db"}, "ports": ports, "type": "LoadBalancer"})
        budget = {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1}
        await kubectl.make("policy/v1", "PodDisruptionBudget", "db", budget)
        await kubectl("rollout", "status", "statefulset/db", PATIENCE)
        await kubectl("wait", "--for=condition=DisruptionAllowed", "pdb/db", PATIENCE)
        await kubectl("wait", "--for=jsonpath={.status.loadBalancer.ingress}", "service/db", PATIENCE)
        both = "{.items[0].endpoints[*].conditions.ready}"
        async with asyncio.timeout(60):
            while await kubectl.show("endpointslices", both) != "true true":
                await asyncio.sleep(0.2)
        addresses = await kubectl.show("endpoints/db", "{.subsets[0].addresses[*].targetRef.name}")
        assert sorted(addresses.split()) == ["db-0", "db-1"]


# The first word names what to wait for before: at rest, what is shown no longer depends on chance.
SCRIPT = """
rollout status statefulset/db
rollout status daemonset/logs
wait --for=condition=Complete job/sum
describe statefulset/db
describe daemonset/logs
describe job/sum
describe pdb/db
describe endpointslices
get statefulset,daemonset,job,pdb,endpointslices,endpoints,controllerrevisions -o wide --show-labels
get pods --show-labels
set image statefulset/db main=a:2
rollout status statefulset/db
set image daemonset/logs main=a:2
rollout status daemonset/logs
rollout history statefulset/db
rollout history daemonset/logs --revision=2
rollout undo statefulset/db
rollout status statefulset/db
rollout restart daemonset/logs
rollout status daemonset/logs
scale statefulset/db --replicas=3
rollout status statefulset/db
describe statefulset/db --show-events=false
describe daemonset/logs --show-events=false
get controllerrevisions
"""
LAST_EVENT = {"describe job/sum": "Job completed"}  # told after the status that says so: it may come later
SHORT = (
    (re.compile(r"\b(logs|sum|db)-(?=[a-z0-9]*[a-z])[a-z0-9]{5}\b"), r"\1-<name>"),
    (re.compile(r"\b(logs|db)-[a-z0-9]{6,10}\b"), r"\1-<revision>"),
    (re.compile(r"((?:controller-revision-hash|controller.kubernetes.io/hash)[=:] ?)[a-z0-9]+"), r"\1<hash>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d{4} [0-9:]{8} \+0000|\d{4}-\d\d-\d\dT[0-9:]{8}Z"), "<time>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+"), "<address>"),
    (re.compile(r"\bnode-\d\b"), "<node>"),  # the scheduler's choice, which other pods of the shared cluster sway
    (re.compile(r"\b(\d+m)?\d+s( \(x(\d+) over (\d+m)?\d+s\))?"), r"<age> \3"),
    # Whether it is there depends on whether two changes of a pod fell into one second.
    (re.compile(r"endpoints.kubernetes.io/last-change-trigger-time: <time>"), "<none>"),
    (re.compile(r"(<address>(:\d+)?,)+<address>"), "<addresses>"),
    (re.compile(r"[ -]{2,}"), "  "),  # columns are as wide as what was masked
)


async def test_kubectl_shows_the_same_of_the_same_sets_and_jobs_as_with_kubernetes(
    bare_cluster: Cluster, full_cluster: Cluster
) -> None:
    async with workloads(bare_cluster) as kubectl:
        ours = await shown(kubectl)
    real = await shown(Kubectl(full_cluster, await full_cluster.fresh_namespace("workloads")))
    for command, lines in ours.items():
        assert lines == real[command], command


async def shown(kubectl: Kubectl) -> dict[str, list[str]]:
    """What each command of the script prints, in lines; of those that wait the last: the others are by chance."""
    await kubectl("wait", "--for=create", "serviceaccount/default", PATIENCE)
    await kubectl.make("v1", "Service", "db", {"selector": {"app": "db"}, "ports": [{"port": 80}]})
    await kubectl.make("apps/v1", "StatefulSet", "db", selecting("db", replicas=2, serviceName="db"))
    await kubectl.make("apps/v1", "DaemonSet", "logs", selecting("logs"))
    await kubectl.make("batch/v1", "Job", "sum", {"completions": 2, "template": pods("sum", restartPolicy="Never")})
    budget = {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1}
    await kubectl.make("policy/v1", "PodDisruptionBudget", "db", budget)
    found = {}
    for number, command in enumerate(SCRIPT.strip().splitlines()):
        waits = command.startswith(("rollout status", "wait"))
        text = await kubectl(*command.split(), *((PATIENCE,) if waits else ()))
        while LAST_EVENT.get(command, "") not in text:
            await asyncio.sleep(0.2)
            text = await kubectl(*command.split())
        lines = text.splitlines()[-1:] if waits else text.splitlines()
        found[f"{number}: {command}"] = sorted(short(line, kubectl.namespace) for line in lines)
    return found


def short(line: str, namespace: str) -> str:
    line = line.replace(namespace, "<namespace>")
    for pattern, word in SHORT:
        line = pattern.sub(word, line)
    return line.strip()
