"""Workloads: the objects that are released, of Kedge and of the peer: the same pods, by the same steps."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from kedge.api.apps import Deployment
from kedge.api.meta import ObjectMeta, Value
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch

READY_AFTER = "500ms"


class ArgoStatus(Value, frozen=True, gc=False):
    """What is read of it."""

    phase: str = ""
    stable_rs: str = field(default="", name="stableRS")
    current_pod_hash: str = ""


class ArgoRollout(Value, frozen=True, gc=False):
    """A Rollout of Argo Rollouts."""

    resource: ClassVar[Resource] = Resource("argoproj.io", "v1alpha1", "Rollout", "rollouts")
    metadata: ObjectMeta
    status: ArgoStatus = ArgoStatus()

    @property
    def has_succeeded(self) -> bool:
        status = self.status
        return status.phase == "Healthy" and status.stable_rs == status.current_pod_hash


def image(number: int) -> str:
    return f"app:{number}"


def _pods(name: str, number: int, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": READY_AFTER}},
        "spec": {"containers": [{"name": "app", "image": image(number)}], "terminationGracePeriodSeconds": 0},
    }
    return {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}


# Kedge


async def deployment(client: Client, namespace: str, name: str, number: int, replicas: int) -> None:
    """A revision, as a Deployment of its own."""
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": _pods(name, number, replicas)}
    await client.create(Deployment, body)


async def scale(client: Client, namespace: str, name: str, replicas: int) -> None:
    await client.patch(Deployment, name, MergePatch({"spec": {"replicas": replicas}}), namespace)


async def rollout(client: Client, namespace: str, name: str, source: str, target: str, batches: int) -> None:
    """From one Deployment to another."""
    spec = {"targetRef": _ref(target), "sourceRef": [_ref(source)], "rolloutPlan": {"numBatches": batches}}
    await client.create(RolloutTrait, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def _ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


# Argo Rollouts


async def argo_rollout(client: Client, namespace: str, name: str, replicas: int, batches: int) -> None:
    """A canary whose steps are the same batches, with as many pods more as a batch has, and none less."""
    steps = [{"setWeight": 100 * (index + 1) // batches} for index in range(batches)]
    canary = {"maxSurge": replicas // batches, "maxUnavailable": 0, "steps": steps}
    spec = {**_pods(name, 1, replicas), "strategy": {"canary": canary}}
    await client.create(ArgoRollout, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


async def argo_release(client: Client, namespace: str, name: str, number: int) -> None:
    """A new image."""
    body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image(number)}]}}}}
    await client.patch(ArgoRollout, name, MergePatch(body), namespace)
