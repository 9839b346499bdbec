"""An operator asks an API server for nothing that `kedge install operator` does not grant."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession

from cli.role_process import KEDGE, serving
from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.zones import MIRROR_API_VERSION, MIRROR_KIND, MIRROR_NAME, ReplicaTemplate, ZoneAwarePodDisruptionBudget
from kedge.cli.operator_manifests import OperatorInstall, manifests
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.waiting import until_so

SETS = untyped(StatefulSet.resource)
INSTALLED = (CustomResourceDefinition.resource, ValidatingWebhookConfiguration.resource,
             MutatingWebhookConfiguration.resource)  # fmt: skip
VERBS = {"PATCH": "patch", "PUT": "update", "POST": "create", "DELETE": "delete"}
FOR_ALL = re.compile(r"/(version|readyz|livez|healthz|api|apis|openapi)(/.*)?")
"""What Kubernetes lets every service account read (system:discovery, system:public-info-viewer)."""
GROUP = "rollout-operator.grafana.com"
MANIFESTS: list[dict[str, Any]] = manifests(OperatorInstall(("default",), "kedge", failure_policy="Ignore"))
# Their Service leads nowhere here: a write must not wait for it.
SCALED = {MIRROR_NAME: "wanted", MIRROR_KIND: "ReplicaTemplate", MIRROR_API_VERSION: f"{GROUP}/v1"}


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a cluster with what an operator needs."""
    file = folder / "kubeconfig"
    up = ["up", "--bare", "--members", "1", "--kubeconfig", str(file), "--detach"]
    await asyncio.to_thread(subprocess.run, [*KEDGE, *up], check=True, timeout=60, stdout=subprocess.DEVNULL)
    try:
        await asyncio.to_thread(choose, file)
        yield file
    finally:
        down = ["down", "--kubeconfig", str(file)]
        await asyncio.to_thread(subprocess.run, [*KEDGE, *down], check=True, timeout=60, stdout=subprocess.DEVNULL)


def choose(file: Path) -> None:
    config = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**config, "current-context": "cluster-1"}))


async def prepare(user: Client) -> None:
    """The operator's kinds and webhooks, a group whose one zone mirrors a template, and a budget for its pods."""
    kinds = {kind.kind: untyped(kind) for kind in INSTALLED}
    for document in MANIFESTS:
        if document["kind"] in kinds:
            await user.create(kinds[document["kind"]], document)
    for kind in (ReplicaTemplate, ZoneAwarePodDisruptionBudget):
        await until_so(partial(is_served, user, kind.resource), 30)
    template = untyped(ReplicaTemplate.resource)
    await user.create(template, {"metadata": {"name": "wanted"}, "spec": {"replicas": 3}}, "default")
    budget = {"selector": {"matchLabels": {"app": "ingester"}}, "maxUnavailable": 1}
    await user.create(
        untyped(ZoneAwarePodDisruptionBudget.resource), {"metadata": {"name": "pods"}, "spec": budget}, "default"
    )
    for zone, mirrored in (("a", SCALED), ("b", {})):
        await user.create(SETS, stateful_set(f"ingester-zone-{zone}", mirrored), "default")


async def is_served(user: Client, resource: Resource) -> bool:
    try:
        await user.list(untyped(resource), "default")
    except NotFound:
        return False
    return True


def stateful_set(name: str, mirrored: dict[str, str]) -> dict[str, Any]:
    spec = {
        "replicas": 2,
        "serviceName": name,
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": {"name": name}},
        "template": {"metadata": {"labels": {"name": name, "app": "ingester"}}, "spec": pod_spec("app:1")},
    }
    labels = {"rollout-group": "ingester", "app": "ingester"}
    return {"metadata": {"name": name, "labels": labels, "annotations": mirrored}, "spec": spec}


def pod_spec(image: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": image}]}


async def all_run(user: Client, image: str) -> bool:
    pods = (await user.list(untyped(Pod.resource), "default")).items
    images = [pod["spec"]["containers"][0]["image"] for pod in pods]
    sets = (await user.list(SETS, "default")).items
    done = all(one["status"].get("currentRevision") == one["status"].get("updateRevision") for one in sets)
    return images == [image] * 5 and done and all(pod["status"].get("phase") == "Running" for pod in pods)


@pytest.mark.timeout(400)
async def test_all_that_is_asked_is_granted(tmp_path: Path) -> None:
    async with cluster(tmp_path) as file, ClientSession() as session:
        connection = await asyncio.to_thread(load, [file])
        user = Client(HttpsTransport(connection))
        await prepare(user)
        arguments = ["-kubernetes.namespace=default", f"-kubernetes.api-url={connection.server}", "-server.port=0",
                     f"-kubernetes.config-file={file}", "-kubernetes.client-qps=0", "-server-tls.enabled",
                     "-server-tls.port=0", "-use-zone-tracker"]  # fmt: skip
        async with serving(tmp_path / "log", "rollout-operator", *arguments) as url:

            async def ready() -> bool:
                async with session.get(f"{url}/ready") as answer:
                    return answer.status == 200

            await until_so(ready, 120)
            await until_so(lambda: all_run(user, "app:1"), 120)
            for zone in ("a", "b"):
                patch = MergePatch({"spec": {"template": {"spec": pod_spec("app:2")}}})
                await user.patch(SETS, f"ingester-zone-{zone}", patch, "default")
            await until_so(lambda: all_run(user, "app:2"), 120)
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()
        await user.close()
    asked, granted = requests_in(text), grants(MANIFESTS)
    assert {one for one in asked if one not in granted} == set()
    for did in (("", "pods", "delete"), ("apps", "statefulsets", "patch"), ("apps", "statefulsets/status", "update"),
                (GROUP, "replicatemplates/scale", "get"), (GROUP, "replicatemplates/status", "patch"),
                ("", "secrets", "create"), ("", "events", "create"),
                ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "patch")):  # fmt: skip
        assert did in asked, "the test shows nothing if it is not done"


def requests_in(text: str) -> set[tuple[str, str, str]]:
    """What was asked for, by group, resource and verb, as the metrics of the process have it."""
    counted = re.findall(r'api_client_request_duration_seconds_count{method="(\w+)",path="([^"]+)",status', text)
    return {found for method, path in counted if (found := request_in(method, path)) is not None}


def request_in(method: str, path: str) -> tuple[str, str, str] | None:
    found = re.fullmatch(r"([\w.-]+)/\w+/(\w+) (collection|object)(?: (\w+) subresource)?", path)
    if found is None:
        assert FOR_ALL.fullmatch(path), path
        return None
    group, plural, form, subresource = found.groups()
    verb = VERBS.get(method) or ("list" if form == "collection" else "get")
    return "" if group == "core" else group, f"{plural}/{subresource}" if subresource else plural, verb


def grants(documents: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for document in documents
        if document["kind"] in ("Role", "ClusterRole")
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
