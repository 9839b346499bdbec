"""Groups: the StatefulSets of a rollout group, and a release of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from kedge.api.apps import StatefulSet
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedgebench.zones.sizes import ZONES

READY_AFTER = "500ms"
PATIENCE = 120.0


def zones_of(group: str) -> tuple[str, ...]:
    """The StatefulSets of a group."""
    return tuple(f"{group}-zone-{letter}" for letter in "abcdefgh"[:ZONES])


def stateful_set(group: str, name: str, namespace: str, pods: int, at_once: int) -> dict[str, Any]:
    """One zone of a group, with its first image."""
    labels = {"name": name}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": READY_AFTER}},
        "spec": {"containers": [{"name": "app", "image": image(1)}], "terminationGracePeriodSeconds": 0},
    }
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": {ROLLOUT_GROUP: group},
        "annotations": {MAX_UNAVAILABLE: str(at_once)},
    }
    spec = {
        "replicas": pods,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return {"metadata": meta, "spec": spec}


async def create(client: Client, group: str, namespace: str, pods: int, at_once: int) -> None:
    """All zones of a group."""
    for name in zones_of(group):
        await client.create(StatefulSet, stateful_set(group, name, namespace, pods, at_once))


async def release(client: Client, names: Iterable[str], namespace: str, number: int) -> None:
    """A new image in all these StatefulSets."""
    body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image(number)}]}}}}
    for name in names:
        await client.patch(StatefulSet, name, MergePatch(body), namespace)


async def until_current(client: Client, namespace: str, names: Sequence[str]) -> None:
    """Until every status names the new revision as the current one: what an operator does last."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await _are_current(client, namespace, names):
                return
            await asyncio.sleep(0.1)


async def _are_current(client: Client, namespace: str, names: Sequence[str]) -> bool:
    found = [one for one in (await client.list(StatefulSet, namespace)).items if one.metadata.name in names]
    return all(one.status.current_revision == one.status.update_revision for one in found)


def image(number: int) -> str:
    return f"app:{number}"
