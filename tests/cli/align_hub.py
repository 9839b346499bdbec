"""A hub behind HTTPS with two members, whose bindings are aligned, and a user who types commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from cli.typing_user import User, served
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ResourceBinding
from kedge.cli.demo_aligned import aligned_hub, aligned_member
from kedge.cli.demo_stage import DemoStage
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.patches import MergePatch

SHOP = "shop"
LABELS = {"app": "demo"}
STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}}


class AlignHub(User):
    """The hub, and a Deployment that is divided over its members."""

    def __init__(self, client: Client, server: EmbeddedCluster, file: Path) -> None:
        super().__init__(file)
        self.client = client
        self.server = server

    async def deploy(self, image: str = "app:1") -> None:
        await self.client.create(Deployment, deployment(image))
        await self.client.create(ResourceBinding, binding())

    async def edit(self, image: str) -> None:
        patch = MergePatch({"spec": {"template": deployment(image)["spec"]["template"]}})
        await self.client.patch(Deployment, "demo", patch, SHOP)


def deployment(image: str, replicas: int = 10) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": replicas, "strategy": STRATEGY, "selector": {"matchLabels": LABELS}, "template": template}
    meta = {"name": "demo", "namespace": SHOP}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def binding(**replicas: int) -> dict[str, Any]:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo", "namespace": SHOP}
    wanted = {"cluster-1": 4, "cluster-2": 6} | {name.replace("_", "-"): number for name, number in replicas.items()}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "demo-deployment", "namespace": SHOP},
        "spec": {"resource": resource, "clusters": [{"name": name, "replicas": n} for name, n in wanted.items()]},
    }


@asynccontextmanager
async def align_hub(folder: Path) -> AsyncIterator[AlignHub]:
    async with DemoStage(clock=SystemClock(), rng=Random(7)) as stage:
        hub = await aligned_hub(stage, [SHOP])
        for name in ("cluster-1", "cluster-2"):
            await aligned_member(stage, hub, name, [SHOP])
        async with served(stage.servers["hub"], folder, SHOP) as file:
            stage.start()
            yield AlignHub(hub, stage.servers["hub"], file)
