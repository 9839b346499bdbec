"""An operator of rollouts in batches as a process on a real cluster, with the rights that are printed for it.

Who answers webhooks and metric queries listens on loopback. What divides traffic and what scales is there as
definitions only: nobody runs a gateway or KEDA here.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from controlplane.cluster import Cluster
from kedge.api.apps import Deployment
from kedge.api.crd import crd
from kedge.api.crds import oam_crds
from kedge.api.kruise import CloneSet
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from real.role_fleet import as_account, asked_by, refused, running
from real.zone_operator import installed, only
from support.routes import http_route_definition
from support.waiting import until_so

ACCOUNT = "rollout-operator"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
Manifest = dict[str, Any]


def definition(group: str, version: str, kind: str, plural: str) -> Manifest:
    """The definition of a kind that may hold anything."""
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}]
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


DEFINITIONS: Sequence[Manifest] = (
    *(dict(one) for one in oam_crds()),
    *(dict(crd(kind)) for kind in (MetricTemplate, CloneSet)),
    http_route_definition("v1", "v1beta1"),
    definition("networking.istio.io", "v1", "VirtualService", "virtualservices"),
    definition("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
)


class Outside:
    """Answers webhooks and metric queries, and remembers which paths were asked with which authorization."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        result = [{"metric": {}, "value": [0, "1"]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


class BatchBed:
    """A namespace with Deployments, and an operator that has the rights of its service account there."""

    def __init__(self, cluster: Cluster, client: Client, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.client = client
        self.namespace = namespace
        self.folder = folder
        self.outside = Outside()

    async def install(self, *options: str) -> list[Manifest]:
        """Install the roles that are printed; gives those. Webhooks are left out: nobody would answer them."""
        printed = await installed(self.namespace, "--batches", *options)
        rights = only(printed, "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
        await self.apply(*rights)
        return only(rights, "Role", "ClusterRole")

    async def apply(self, *manifests: Manifest) -> None:
        text = yaml.safe_dump_all(manifests)
        await self.cluster.kubectl("apply", "--server-side", "--namespace", self.namespace, "-f", "-", input=text)

    @asynccontextmanager
    async def operator(self, name: str = "operator", *arguments: str) -> AsyncIterator[Process]:
        """One process of the operator, with the rights of its service account."""
        file = await as_account(self.cluster, ACCOUNT, self.folder, self.namespace)
        flags = ["--kubeconfig", str(file), "--namespace", self.namespace, "--batches", *arguments]
        async with running(self.folder / f"{name}.log", "operator", *flags) as process:
            yield process

    # What a user does

    async def deployment(self, name: str, replicas: int, image: str, app: str = "web") -> None:
        labels = {"app": app, "version": name}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels, image)}
        await self.client.create(Deployment, {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec})

    async def trait(
        self, name: str, target: Manifest, *sources: Manifest, annotations: dict[str, str] | None = None, **plan: Any
    ) -> None:
        meta = {"name": name, "namespace": self.namespace, "annotations": annotations or {}}
        spec = {"targetRef": target, "sourceRef": list(sources), "rolloutPlan": plan}
        await self.client.create(RolloutTrait, {"metadata": meta, "spec": spec})

    async def edit(self, name: str, plan: Manifest) -> None:
        await self.client.patch(RolloutTrait, name, MergePatch({"spec": {"rolloutPlan": plan}}), self.namespace)

    async def status(self, name: str) -> str:
        found = (await self.client.get(RolloutTrait, name, self.namespace)).status
        return f"{found.rolling_state} {found.batch_rolling_state}: {found.message}"

    async def until_state(self, name: str, state: str, within: float = 90) -> None:
        async def reached() -> bool:
            return (await self.status(name)).startswith(state)

        try:
            await until_so(reached, within)
        except TimeoutError as error:
            raise AssertionError(f"{name} is not {state}, but {await self.status(name)}") from error

    async def until_gone(self, name: str) -> None:
        await until_so(partial(self._is_gone, name), 90)

    async def _is_gone(self, name: str) -> bool:
        try:
            await self.client.get(RolloutTrait, name, self.namespace)
        except NotFound:
            return True
        return False

    # What the operator did

    def asked(self) -> list[dict[str, Any]]:
        """What the operator has asked the API server for."""
        return asked_by(self.cluster, ACCOUNT, self.namespace)

    def refusals(self) -> list[str]:
        """What was refused to the operator for want of a right."""
        return refused(self.asked())


def ref(name: str, kind: str = "Deployment", version: str = "apps/v1") -> Manifest:
    return {"apiVersion": version, "kind": kind, "name": name}


def template(labels: dict[str, str], image: str) -> Manifest:
    return {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "100ms"}},
        "spec": {"containers": [{"name": "app", "image": image}], "terminationGracePeriodSeconds": 0},
    }


@asynccontextmanager
async def batch_bed(cluster: Cluster, folder: Path, prefix: str = "batches") -> AsyncIterator[BatchBed]:
    """A bed with all definitions, in a namespace of its own."""
    text = yaml.safe_dump_all(DEFINITIONS)
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=text)
    names = [f"crd/{one['metadata']['name']}" for one in DEFINITIONS]
    await cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    bed = BatchBed(cluster, client, await cluster.fresh_namespace(prefix), folder)
    async with bed.outside.serve():
        yield bed
    await client.close()
