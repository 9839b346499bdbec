"""Operations: what is asked of every server, by the same client, of the same objects."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from kedge.api.apps import Deployment
from kedge.api.core import ConfigMap, Namespace
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedgebench import sample

SHOP = "shop"  # holds what is read and changed
MADE = "made"  # what is made while it is measured
AT_ONCE = 8
TITLES = {
    "get": "GET a Deployment",
    "list": "LIST of {objects} Deployments",
    "create": "create a Deployment",
    "patch": "merge patch",
    "apply": "server-side apply",
}


class Operations:
    """The operations, on one server; each call of one is another request."""

    def __init__(self, client: Client, objects: int) -> None:
        self.client = client
        self._objects = objects
        self._turn = itertools.count(1)

    async def prepare(self) -> None:
        """Make what is read and changed, if it is not there."""
        for namespace in (SHOP, MADE):
            await self.client.apply(Namespace, {"metadata": {"name": namespace}}, manager="helm")
        await together(self._applied, range(self._objects), AT_ONCE)
        await self.client.apply(ConfigMap, config_map("watched", SHOP), manager="helm", force=True)

    def by_name(self, name: str) -> Callable[[], Awaitable[object]]:
        work: Callable[[], Awaitable[object]] = getattr(self, name)
        return work

    async def get(self) -> object:
        return await self.client.get(Deployment, sample.name(self._next()), SHOP)

    async def list(self) -> object:
        return await self.client.list(Deployment, SHOP)

    async def create(self) -> object:
        number = next(self._turn)
        return await self.client.create(Deployment, deployment(number, MADE, f"made-{number}"))

    async def patch(self) -> object:
        patch = MergePatch({"metadata": {"annotations": {"kedgebench/turn": str(next(self._turn))}}})
        return await self.client.patch(Deployment, sample.name(self._next()), patch, SHOP)

    async def apply(self) -> object:
        """All of the Deployment, with another number in a label."""
        return await self._applied(self._next(), next(self._turn))

    async def touch(self) -> object:
        """One write that watchers are told of."""
        patch = MergePatch({"data": {"turn": str(next(self._turn))}})
        return await self.client.patch(ConfigMap, "watched", patch, SHOP)

    def _next(self) -> int:
        return next(self._turn) % self._objects

    async def _applied(self, number: int, turn: int = 0) -> object:
        body = deployment(number, SHOP, sample.name(number))
        body["metadata"]["labels"]["turn"] = str(turn)
        return await self.client.apply(Deployment, body, manager="helm", force=True)


def deployment(number: int, namespace: str, name: str) -> dict[str, Any]:
    """One of about 2 KB."""
    body = sample.applied(number)["helm"]
    return {**body, "metadata": {**body["metadata"], "name": name, "namespace": namespace}}


def config_map(name: str, namespace: str) -> dict[str, Any]:
    """One of about 1 KB."""
    data = {f"setting-{number}": f"{name} {number} ".ljust(90, "x") for number in range(7)}
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


def pod(name: str, namespace: str) -> dict[str, Any]:
    """One as a ReplicaSet would make it, but for its owner."""
    spec = deployment(0, namespace, name)["spec"]["template"]
    return {"metadata": {"name": name, "namespace": namespace, "labels": spec["metadata"]["labels"]}, **_only(spec)}


def _only(template: dict[str, Any]) -> dict[str, Any]:
    return {"spec": template["spec"]}


async def together(work: Callable[[int], Awaitable[object]], numbers: range, at_once: int) -> None:
    """Do this for every number, so many at once."""
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))
