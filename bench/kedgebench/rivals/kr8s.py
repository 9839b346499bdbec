"""kr8s, asynchronous, with its object classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kr8s.asyncio
from kr8s.asyncio.objects import Deployment

from kedgebench.rivals import Held, Saw


class Kr8s:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._made: Any = None

    async def get(self, name: str) -> Deployment:
        return await Deployment.get(name, namespace=self._namespace, api=await self._api())

    async def list(self, namespace: str | None = None) -> Sequence[Deployment]:
        api = await self._api()
        return [item async for item in api.get(Deployment, namespace=namespace or self._namespace)]

    async def watch(self, saw: Saw) -> None:
        api = await self._api()
        async with api.call_api(
            "GET", version="apps/v1", namespace=self._namespace, url="deployments", params={"limit": 1}
        ) as answer:
            since = answer.json()["metadata"]["resourceVersion"]
        async for _, found in api.watch("deployments", namespace=self._namespace, since=since):
            if saw(found.name):
                return

    async def hold(self, namespace: str, copies: int) -> Held:
        held = {}
        for copy in range(copies):
            held.update({(copy, item.name): item for item in await self.list(namespace)})
        return Held(held, len(held))

    async def _api(self) -> Any:
        if self._made is None:
            self._made = await kr8s.asyncio.api(kubeconfig=self._kubeconfig, namespace=self._namespace)
        return self._made
