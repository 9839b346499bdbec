"""Workloads of a kind that another distribution brings a handler for: they are watched, or else looked at again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from controllers.batch.batch_bed import DEFINITIONS, SHOP, Bed, bed
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.resource import Resource
from kedge.controllers import followed_kinds
from kedge.controllers.batch.rollouts import UNWATCHED
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from kedge.plan.workloads import registry
from kedge.plan.workloads.deployments import Deployments
from support.virtual import run

GAMES = untyped(Resource("example.com", "v1", "Game", "games"))
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Mapping[str, Any] = {
    "metadata": {"name": "games.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Game", "plural": "games"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": ANYTHING},
            }
        ],
    },
}


@pytest.fixture(autouse=True)
def _handler(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {("example.com", "Game"): Deployments("example.com", "Game")}
    monkeypatch.setattr(registry, "installed_handlers", lambda: found)


async def game(here: Bed, name: str, replicas: int) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {"spec": {}}, "name": name}
    await here.client.create(GAMES, {"metadata": {"name": name, "namespace": SHOP}, "spec": spec})
    await reports(here, name)


async def reports(here: Bed, name: str) -> None:
    """What its controller would say: all pods that it asks for are there."""
    live = await here.client.get(GAMES, name, SHOP)
    number = live["spec"]["replicas"]
    status = {
        "observedGeneration": live["metadata"]["generation"],
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), number),
    }
    await here.client.patch(GAMES, name, MergePatch({"status": status}), SHOP, subresource="status")


async def asks_for(here: Bed, name: str, number: int) -> bool:
    return bool((await here.client.get(GAMES, name, SHOP))["spec"]["replicas"] == number)


async def begins(here: Bed) -> None:
    """A rollout that has asked for its first pod, and waits for it."""
    for name, replicas in (("v1", 2), ("v2", 0)):
        await game(here, name, replicas)
    refs = [{"apiVersion": "example.com/v1", "kind": "Game", "name": name} for name in ("v2", "v1")]
    spec = {"targetRef": refs[0], "sourceRef": refs[1:], "rolloutPlan": {"numBatches": 2}}
    await here.client.create(RolloutTrait, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})
    await here.until(lambda: asks_for(here, "v2", 1))
    await asyncio.sleep(UNWATCHED + 5)
    assert await asks_for(here, "v1", 2)


def test_a_change_of_its_workload_is_told() -> None:
    async def body() -> None:
        async with bed(definitions=(*DEFINITIONS, DEFINITION)) as here:
            await begins(here)
            await reports(here, "v2")
            await asyncio.sleep(0.5)
            assert await asks_for(here, "v1", 1)

    run(body())


def test_a_workload_that_cannot_be_watched_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_kinds.FollowedKinds, "look", lambda *_: None)

    async def body() -> None:
        async with bed(definitions=(*DEFINITIONS, DEFINITION)) as here:
            await begins(here)
            await reports(here, "v2")
            await here.until(lambda: asks_for(here, "v1", 1))

    run(body())
