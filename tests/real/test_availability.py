"""Availability is judged the same of objects that Kubernetes keeps and of those that ours keep: seed 000, row by row.

A row is an object and what happens to it; after each step the verdict comes to rest at the sentence beside it, or at
`available`. The test plays kubelet, and the load balancer that no one has here. Kinds of data need nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import run_apart
from kedge.api.resource import Resource
from kedge.embedded.kind import Kind
from kedge.embedded.workloads.budgets import Budgets
from kedge.embedded.workloads.daemonsets import DaemonSets
from kedge.embedded.workloads.deployments import Deployments
from kedge.embedded.workloads.everything import FLEET_NETWORK, Parts
from kedge.embedded.workloads.jobs import Jobs
from kedge.embedded.workloads.replicas import ReplicaSets
from kedge.embedded.workloads.statefulsets import StatefulSets
from kedge.kube.codec import Bookmark, Codec, Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.availability import Verdict, judge
from support.stage import PODS, Stage, each, embedded_stage, is_ready, real_stage
from support.virtual import run

DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
STATEFUL_SETS = untyped(Resource("apps", "v1", "StatefulSet", "statefulsets"))
DAEMON_SETS = untyped(Resource("apps", "v1", "DaemonSet", "daemonsets"))
JOBS = untyped(Resource("batch", "v1", "Job", "jobs"))
SERVICES = untyped(Resource("", "v1", "Service", "services"))
BUDGETS = untyped(Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"))
EXPORTS = untyped(Resource("networking.fleet.azure.com", "v1alpha1", "ServiceExport", "serviceexports"))
NODES = untyped(Resource("", "v1", "Node", "nodes", namespaced=False))
CRDS = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)

PARTS: Parts = (
    ("deployment", Deployments),
    ("replicaset", ReplicaSets),
    ("statefulset", StatefulSets),
    ("daemonset", DaemonSets),
    ("job", Jobs),
    ("disruption", Budgets),
)
AVAILABLE, UNTRACKABLE = "available", "untrackable"
WEIGHT = "networking.fleet.azure.com/weight"

Body = dict[str, Any]
Step = tuple[str | Body, str]  # what is done (a patch, or something to pods), and the verdict it comes to


class Row(NamedTuple):
    kind: Codec[Untyped]
    spec: Body
    steps: Sequence[Step]  # the first is the creation
    beside: str = ""
    metadata: Mapping[str, Any] = {}


def pods(image: str, **spec: Any) -> Body:
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, **spec}}


def workload(image: str = "a", **spec: Any) -> Body:
    return {"selector": {"matchLabels": {"app": "web"}}, "template": pods(image), **spec}


def daemons(strategy: str) -> Body:
    template = pods(
        "a", nodeSelector={"row": "<namespace>"}, schedulerName="nobody", tolerations=[{"operator": "Exists"}]
    )
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template, "updateStrategy": {"type": strategy}}


def image(name: str) -> Body:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}


def replicas(number: int) -> Body:
    return {"spec": {"replicas": number}}


def partition(number: int) -> Body:
    return {"spec": {"updateStrategy": {"rollingUpdate": {"partition": number}}}}


def address(**entry: str) -> Body:
    return {"status": {"loadBalancer": {"ingress": [entry]}}}


def definition(group: str, plural: str, kind: str) -> Body:
    version = {
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
        **dict.fromkeys(("served", "storage"), True),
        "name": "v1",
    }
    names = {"plural": plural, "kind": kind}
    return {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}


RBAC, STORAGE = "rbac.authorization.k8s.io", "storage.k8s.io"
ROLE = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
WEB = [{"port": 80}]
JOB = {"template": pods("a", restartPolicy="Never"), "backoffLimit": 0}
RULE = {"annotations": {"kedge.dev/available-when": "self.status.phase == 'Ready'"}}

ROWS: Mapping[str, Row] = {
    "Deployment": Row(
        DEPLOYMENTS,
        workload(replicas=3),
        [
            ("", "Deployment shop/web has 0 of 3 available replicas"),
            ("ready", "Deployment shop/web has 1 of 3 available replicas"),
            ("all", AVAILABLE),
            (image("bad"), "Deployment shop/web has 1 of 3 updated replicas"),
            ("all", AVAILABLE),
            (replicas(4), "Deployment shop/web has 3 of 4 available replicas"),
            ("all", AVAILABLE),
            ("unready", "Deployment shop/web has 3 of 4 available replicas"),
            (replicas(0), AVAILABLE),
        ],
    ),
    "Deployment of one": Row(
        DEPLOYMENTS,
        workload(),
        [
            ("", "Deployment shop/web has 0 of 1 available replicas"),
            ("all", AVAILABLE),
            (image("bad"), "Deployment shop/web has 1 unavailable replica beside 1 available"),
            (image("a"), AVAILABLE),
        ],
    ),
    "Deployment that is paused": Row(
        DEPLOYMENTS,
        workload(replicas=2),
        [
            ("all", AVAILABLE),
            ({"spec": {"paused": True}}, AVAILABLE),
            (image("b"), "Deployment shop/web has 0 of 2 updated replicas: it is paused"),
            ({"spec": {"paused": False}}, "Deployment shop/web has 1 of 2 updated replicas"),
        ],
    ),
    "StatefulSet": Row(
        STATEFUL_SETS,
        workload(replicas=3, serviceName=""),
        [
            ("", "StatefulSet shop/web has 1 of 3 updated replicas"),
            ("all", AVAILABLE),
            (image("bad"), "StatefulSet shop/web has 1 of 3 updated replicas"),
            ("all", AVAILABLE),
            ("unready", "StatefulSet shop/web has 2 of 3 available replicas"),
            (replicas(0), AVAILABLE),
        ],
    ),
    "StatefulSet with a partition": Row(
        STATEFUL_SETS,
        workload(replicas=3, serviceName="", updateStrategy={"rollingUpdate": {"partition": 2}}),
        [
            ("all", AVAILABLE),
            (image("b"), "StatefulSet shop/web has 2 of 3 available replicas"),
            ("all", AVAILABLE),
            (partition(1), "StatefulSet shop/web has 2 of 3 available replicas"),
            ("all", AVAILABLE),
            (partition(0), "StatefulSet shop/web has 2 of 3 available replicas"),
            ("all", AVAILABLE),
        ],
    ),
    "StatefulSet with OnDelete": Row(
        STATEFUL_SETS,
        workload(replicas=2, serviceName="", updateStrategy={"type": "OnDelete"}),
        [
            ("all", AVAILABLE),
            (image("b"), AVAILABLE),
            ("delete", "StatefulSet shop/web has 1 of 2 available replicas"),
            ("all", AVAILABLE),
        ],
    ),
    "DaemonSet": Row(
        DAEMON_SETS,
        daemons("RollingUpdate"),
        [
            ("", "DaemonSet shop/web has available pods on 0 of 2 nodes"),
            ("all", AVAILABLE),
            (image("bad"), "DaemonSet shop/web has updated pods on 1 of 2 nodes"),
            ("all", AVAILABLE),
        ],
        beside="nodes",
    ),
    "DaemonSet with OnDelete": Row(
        DAEMON_SETS,
        daemons("OnDelete"),
        [
            ("all", AVAILABLE),
            (image("b"), AVAILABLE),
            ("delete", "DaemonSet shop/web has available pods on 1 of 2 nodes"),
            ("all", AVAILABLE),
        ],
        beside="nodes",
    ),
    "DaemonSet without nodes": Row(DAEMON_SETS, daemons("RollingUpdate"), [("", AVAILABLE)]),
    "Service": Row(SERVICES, {"ports": WEB}, [("", AVAILABLE)]),
    "Service, headless": Row(SERVICES, {"ports": WEB, "clusterIP": "None"}, [("", AVAILABLE)]),
    "Service on the nodes": Row(SERVICES, {"ports": WEB, "type": "NodePort"}, [("", AVAILABLE)]),
    "Service that is a name": Row(SERVICES, {"type": "ExternalName", "externalName": "a.b"}, [("", UNTRACKABLE)]),
    "Service behind a load balancer": Row(
        SERVICES,
        {"ports": WEB, "type": "LoadBalancer"},
        [
            ("", "Service shop/web has no address of a load balancer yet"),
            (address(ip="203.0.113.7"), AVAILABLE),
            ({"status": {"loadBalancer": {"ingress": None}}}, "Service shop/web has no address of a load balancer yet"),
            (address(hostname="lb.example.com"), AVAILABLE),
        ],
    ),
    "PodDisruptionBudget": Row(
        BUDGETS,
        {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
        [("", AVAILABLE), ("ready", AVAILABLE), ("all", AVAILABLE), ({"spec": {"minAvailable": 2}}, AVAILABLE)],
        beside="pods",
    ),
    "PodDisruptionBudget of pods that nothing scales": Row(
        BUDGETS,
        {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        [
            (
                "",
                "PodDisruptionBudget shop/web cannot be worked out: jobs.batch does not implement the scale",
            )
        ],
        beside="job",
    ),
    "CustomResourceDefinition": Row(
        CRDS, definition("<namespace>.example.com", "widgets", "Widget"), [("", AVAILABLE)]
    ),
    "CustomResourceDefinition whose name is taken": Row(
        CRDS,
        definition("<namespace>.example.com", "gadgets", "Widget"),
        [("", "does not have its names accepted: ")],
        beside="definition",
    ),
    "Job": Row(
        JOBS,
        {**JOB, "completions": 2, "parallelism": 2},
        [
            ("", "Job shop/web is not complete: 0 of 2 pods succeeded"),
            ("succeed", "Job shop/web is not complete: 1 of 2 pods succeeded"),
            ("succeed", AVAILABLE),
        ],
    ),
    "Job that fails": Row(
        JOBS,
        JOB,
        [("", "Job shop/web is not complete"), ("fail", "Job shop/web failed: BackoffLimitExceeded: Job has reached")],
    ),
    "Job that is suspended": Row(
        JOBS,
        {**JOB, "suspend": True},
        [
            ("", "Job shop/web is suspended"),
            ({"spec": {"suspend": False}}, "Job shop/web is not complete: 0 of 1 pods succeeded"),
            ("succeed", AVAILABLE),
        ],
    ),
    "a kind of one's own, with a rule": Row(
        untyped(Resource("<namespace>.example.com", "v1", "Widget", "widgets")),
        {},
        [
            ("", "Widget shop/web does not meet its rule, kedge.dev/available-when: self.status.phase == 'Ready'"),
            ({"status": {"phase": "Pending"}}, "Widget shop/web does not meet its rule"),
            ({"status": {"phase": "Ready"}}, AVAILABLE),
            ({"status": {"observedGeneration": 1}}, AVAILABLE),
            ({"spec": {"wish": 2}}, "Widget shop/web has a status that is behind"),
            ({"status": {"observedGeneration": 2}}, AVAILABLE),
        ],
        beside="definition",
        metadata=RULE,
    ),
    "a kind of one's own, without a rule": Row(
        untyped(Resource("<namespace>.example.com", "v1", "Widget", "widgets")),
        {},
        [("", UNTRACKABLE)],
        beside="definition",
    ),
}


DATA: Mapping[str, tuple[Resource, Body]] = {
    "Namespace": (Resource("", "v1", "Namespace", "namespaces", namespaced=False), {}),
    "Secret": (Resource("", "v1", "Secret", "secrets"), {}),
    "ConfigMap": (Resource("", "v1", "ConfigMap", "configmaps"), {}),
    "ServiceAccount": (Resource("", "v1", "ServiceAccount", "serviceaccounts"), {}),
    "LimitRange": (Resource("", "v1", "LimitRange", "limitranges"), {"spec": {"limits": []}}),
    "ResourceQuota": (Resource("", "v1", "ResourceQuota", "resourcequotas"), {"spec": {"hard": {"pods": "5"}}}),
    "Role": (Resource(RBAC, "v1", "Role", "roles"), {}),
    "ClusterRole": (Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False), {}),
    "RoleBinding": (Resource(RBAC, "v1", "RoleBinding", "rolebindings"), {"roleRef": ROLE}),
    "ClusterRoleBinding": (
        Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        {"roleRef": ROLE},
    ),
    "NetworkPolicy": (
        Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
        {"spec": {"podSelector": {}}},
    ),
    "IngressClass": (
        Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False),
        {"spec": {"controller": "example.com/web"}},
    ),
    "CSIDriver": (Resource(STORAGE, "v1", "CSIDriver", "csidrivers", namespaced=False), {"spec": {}}),
    "CSINode": (Resource(STORAGE, "v1", "CSINode", "csinodes", namespaced=False), {"spec": {"drivers": []}}),
    "StorageClass": (
        Resource(STORAGE, "v1", "StorageClass", "storageclasses", namespaced=False),
        {"provisioner": "example.com/disk"},
    ),
    "CSIStorageCapacity": (
        Resource(STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities"),
        {"storageClassName": "disk"},
    ),
    "ControllerRevision": (
        Resource("apps", "v1", "ControllerRevision", "controllerrevisions"),
        {"revision": 1, "data": {}},
    ),
    "PriorityClass": (
        Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
        {"value": 5},
    ),
}


@pytest.fixture(scope="module")
def real_verdicts(without_nodes: Cluster) -> Mapping[str, object]:
    """What comes of every row with Kubernetes' own controllers."""
    return run_apart(each(ROWS, lambda row: played(real_stage(without_nodes), row)))


@pytest.mark.timeout(400)  # the first row waits for all of them to be played
@pytest.mark.parametrize("row", ROWS)
def test_objects_that_kubernetes_keeps_are_judged_right(real_verdicts: Mapping[str, object], row: str) -> None:
    if isinstance(found := real_verdicts[row], BaseException):
        raise found


@pytest.mark.parametrize("row", ROWS)
def test_objects_that_ours_keep_are_judged_right(row: str) -> None:
    run(played(embedded_stage(PARTS), ROWS[row]))


async def played(opening: AbstractAsyncContextManager[Stage], row: Row) -> None:
    """Take a row's steps; fails at the first that does not come to its verdict."""
    async with opening as stage:
        row = here(row, stage)
        left_behind = await prepared(stage, row.beside)
        try:
            await create(stage, row)
            for step, wanted in row.steps:
                await take(stage, row, step)
                await comes_to(stage, row, wanted, ready=step == "all")
        finally:
            for kind, name in left_behind:
                await stage.client.delete(kind, name)
            if row.kind is CRDS:
                await stage.client.delete(CRDS, name_of(row))


def here(row: Row, stage: Stage) -> Row:
    """The row, with the name of the namespace where it stands for one: what is outside of any has it in its name."""
    resource = row.kind.resource
    if "<namespace>" in resource.group:
        own = Resource(f"{stage.namespace}.example.com", resource.version, resource.kind, resource.plural)
        row = row._replace(kind=untyped(own))
    return row._replace(spec=named(row.spec, stage.namespace))


def named(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: named(one, namespace) for key, one in value.items()}
    if isinstance(value, list):
        return [named(one, namespace) for one in value]
    return value.replace("<namespace>", namespace) if isinstance(value, str) else value


def name_of(row: Row) -> str:
    return f"{row.spec['names']['plural']}.{row.spec['group']}" if row.kind is CRDS else "web"


async def create(stage: Stage, row: Row) -> None:
    body = {"metadata": {"name": name_of(row), **row.metadata}, "spec": row.spec}
    await stage.client.create(row.kind, body, None if row.kind is CRDS else stage.namespace)


async def prepared(stage: Stage, beside: str) -> list[tuple[Codec[Untyped], str]]:
    """What a row needs beside its object; gives what is to be taken away again."""
    match beside:
        case "nodes":
            names = [f"{stage.namespace}-n1", f"{stage.namespace}-n2"]
            for name in names:
                taints = [{"key": "own", "effect": "NoSchedule"}]
                meta = {"name": name, "labels": {"row": stage.namespace}}
                await stage.client.create(NODES, {"metadata": meta, "spec": {"taints": taints}})
            return [(NODES, name) for name in names]
        case "pods":
            spec = workload(replicas=2, serviceName="", podManagementPolicy="Parallel")
            await stage.client.create(STATEFUL_SETS, {"metadata": {"name": "web"}, "spec": spec}, stage.namespace)
        case "job":
            await stage.client.create(JOBS, {"metadata": {"name": "web"}, "spec": JOB}, stage.namespace)
        case "definition":
            spec = definition(f"{stage.namespace}.example.com", "widgets", "Widget")
            name = f"widgets.{spec['group']}"
            await stage.client.create(CRDS, {"metadata": {"name": name}, "spec": spec})
            await stage.at_rest(lambda: is_served(stage, name))
            return [(CRDS, name)]
    return []


async def is_served(stage: Stage, name: str) -> bool | None:
    found: Untyped = await stage.client.get(CRDS, name)
    return judge(found).available or None


async def take(stage: Stage, row: Row, step: str | Body) -> None:
    match step:
        case "" | "all":
            pass
        case "ready":
            await stage.say_of_pod(await first(stage, lambda pod: not is_ready(pod)), "Running", ready=True)
        case "unready":
            await stage.say_of_pod(await first(stage, is_ready), "Running", ready=False)
        case "succeed" | "fail":
            phase = "Succeeded" if step == "succeed" else "Failed"
            await stage.say_of_pod(await first(stage, is_pending), phase, ready=False)
        case "delete":
            await stage.client.delete(PODS, await first(stage, is_ready), stage.namespace)
        case dict():
            part = "status" if "status" in step else None
            await stage.client.patch(row.kind, "web", MergePatch(step), stage.namespace, subresource=part)


def is_pending(pod: Untyped) -> bool:
    return pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]


async def first(stage: Stage, fits: Callable[[Untyped], bool]) -> str:
    """The name of the first pod that is so, once there is one."""

    async def look() -> str | None:
        return next((str(pod["metadata"]["name"]) for pod in await stage.all(PODS) if fits(pod)), None)

    return await stage.at_rest(look)


async def comes_to(stage: Stage, row: Row, wanted: str, *, ready: bool) -> Verdict:
    """The verdict, once it is the one that is wanted and stays so; meanwhile pods are made ready, if they are to be."""
    last: Verdict | None = None

    async def look() -> Verdict | None:
        nonlocal last
        if ready:
            await make_ready(stage)
        place = None if row.kind is CRDS else stage.namespace
        found: Untyped = await stage.client.get(row.kind, name_of(row), place)
        last = judge(found)
        return last if is_as(last, wanted, stage.namespace) else None

    try:
        return await stage.at_rest(look, within=120.0)
    except AssertionError:
        raise AssertionError(f"wanted {wanted!r}, and it stayed at {last}") from None


async def make_ready(stage: Stage) -> None:
    for pod in await stage.all(PODS):
        if not is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
            with suppress(NotFound):  # it was replaced meanwhile
                await stage.say_of_pod(pod["metadata"]["name"], "Running", ready=True)


def is_as(verdict: Verdict, wanted: str, namespace: str) -> bool:
    said = verdict.message.replace(f"{namespace}/", "shop/")
    match wanted:
        case "available":
            return verdict.available and verdict.trackable
        case "untrackable":
            return verdict.available and not verdict.trackable
    return not verdict.available and wanted in said


@pytest.fixture(scope="module")
def real_data(without_nodes: Cluster) -> Mapping[str, Verdict | BaseException]:
    return run_apart(each(DATA, lambda row: kept(real_stage(without_nodes), *row)))


@pytest.mark.parametrize("kind", DATA)
def test_data_is_available_once_the_real_server_has_it(
    real_data: Mapping[str, Verdict | BaseException], kind: str
) -> None:
    assert real_data[kind] == Verdict(available=True, trackable=True, message=is_there(kind))


@pytest.mark.parametrize("kind", DATA)
def test_data_is_available_once_ours_has_it(kind: str) -> None:
    found = run(kept(embedded_stage(()), *DATA[kind]))
    assert found == Verdict(available=True, trackable=True, message=is_there(kind))


def is_there(kind: str) -> str:
    return f"{kind} {'shop/' if DATA[kind][0].namespaced else ''}web is there"


async def kept(opening: AbstractAsyncContextManager[Stage], resource: Resource, body: Body) -> Verdict:
    """What is to be said of a piece of data as soon as a server has taken it."""
    async with opening as stage:
        kind = untyped(resource)
        name = "web" if resource.namespaced or stage.namespace == "states" else f"{stage.namespace}-web"
        place = stage.namespace if resource.namespaced else None
        created: Untyped = await stage.client.create(kind, {"metadata": {"name": name}, **body}, place)
        await stage.client.delete(kind, name, place)
        verdict = judge(created)
        said = verdict.message.replace(f"{stage.namespace}/", "shop/").replace(name, "web")
        return replace(verdict, message=said)


BAD_IMAGES = {
    f"{kind.resource.kind} of {number}": Row(kind, workload(replicas=number, **more), [])
    for kind, more in ((DEPLOYMENTS, {}), (STATEFUL_SETS, {"serviceName": ""}))
    for number in (1, 3)
}


@pytest.mark.parametrize("row", BAD_IMAGES)
def test_a_bad_image_never_looks_available_on_kubernetes(without_nodes: Cluster, row: str) -> None:
    assert run_apart(verdicts_of_a_bad_image(real_stage(without_nodes), BAD_IMAGES[row])) == []


@pytest.mark.parametrize("row", BAD_IMAGES)
def test_a_bad_image_never_looks_available_on_ours(row: str) -> None:
    assert run(verdicts_of_a_bad_image(embedded_stage(PARTS), BAD_IMAGES[row])) == []


async def verdicts_of_a_bad_image(opening: AbstractAsyncContextManager[Stage], row: Row) -> list[str]:
    """Everything a watch showed of the object since it had the bad image that was judged available."""
    async with opening as stage:
        await create(stage, row)
        await comes_to(stage, row, AVAILABLE, ready=True)
        seen: list[Verdict] = []
        patched = await stage.client.patch(row.kind, "web", MergePatch(image("bad")), stage.namespace)
        since = str(patched["metadata"]["resourceVersion"])
        async with stage.client.watch(row.kind, stage.namespace, resource_version=since) as events:
            watching = asyncio.create_task(collect(events, seen))
            try:
                await comes_to(stage, row, f"{row.kind.resource.kind} shop/web ", ready=False)
                await stage.at_rest(lambda: stage.all(PODS), patience=3)
            finally:
                watching.cancel()
                await asyncio.wait([watching])
        assert seen
        return [verdict.message for verdict in (judge(patched), *seen) if verdict.available]


async def collect(events: AsyncIterator[Any], seen: list[Verdict]) -> None:
    async for event in events:
        if not isinstance(event, Bookmark):
            seen.append(judge(event.object))  # noqa: PERF401  # read while it is still being filled


EXPORTED: Mapping[str, tuple[Mapping[str, str], str]] = {
    "with a weight": ({WEIGHT: "5"}, AVAILABLE),
    "without a weight": ({}, AVAILABLE),
    "with weight 0": ({WEIGHT: "0"}, AVAILABLE),
    "with weight 0, in conflict": ({WEIGHT: "0", "kedge.dev/conflict": "true"}, AVAILABLE),
    "in conflict": ({WEIGHT: "5", "kedge.dev/conflict": "true"}, "is not free of conflicts"),
    "with a weight that is none": ({WEIGHT: "much"}, "has 'much' as networking.fleet.azure.com/weight"),
}


@pytest.mark.parametrize("row", EXPORTED)
def test_an_export_is_available_by_its_weight(row: str) -> None:
    async def main() -> None:
        annotations, wanted = EXPORTED[row]
        async with embedded_stage(FLEET_NETWORK, kinds=[Kind(EXPORTS.resource)]) as stage:
            export = Row(EXPORTS, {}, [], metadata={"annotations": annotations})
            await create(stage, export)
            lost = wanted if "much" in wanted else "ServiceExport shop/web is not valid: service shop/web is not found"
            await comes_to(stage, export, lost, ready=False)
            await create(stage, Row(SERVICES, {"ports": WEB}, []))
            await comes_to(stage, export, wanted, ready=False)

    run(main())
