"""lightkube: its asynchronous and its synchronous client, with its generated types."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube import AsyncClient, Client, KubeConfig
from lightkube.resources.apps_v1 import Deployment

from kedgebench.rivals import Held, Saw


class LightkubeAsync:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._client = AsyncClient(config=KubeConfig.from_file(kubeconfig), namespace=namespace)
        self._namespace = namespace

    async def get(self, name: str) -> Deployment:
        return await self._client.get(Deployment, name)

    async def list(self, namespace: str | None = None) -> Sequence[Deployment]:
        return [item async for item in self._client.list(Deployment, namespace=namespace)]

    async def watch(self, saw: Saw) -> None:
        listed = self._client.list(Deployment)
        async for _ in listed:
            pass
        async for _, found in self._client.watch(Deployment, resource_version=listed.resourceVersion):
            if saw(found.metadata.name):
                return

    async def hold(self, namespace: str, copies: int) -> Held:
        held = {}
        for copy in range(copies):
            held.update({(copy, item.metadata.name): item for item in await self.list(namespace)})
        return Held(held, len(held))


class LightkubeSync:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._client = Client(config=KubeConfig.from_file(kubeconfig), namespace=namespace)

    async def get(self, name: str) -> Deployment:
        return self._client.get(Deployment, name)

    async def list(self) -> Sequence[Deployment]:
        return list(self._client.list(Deployment))

    async def watch(self, saw: Saw) -> None:
        listed = self._client.list(Deployment)
        for _ in listed:
            pass
        for _, found in self._client.watch(Deployment, resource_version=listed.resourceVersion):
            if saw(found.metadata.name):
                return

    async def hold(self, namespace: str, copies: int) -> Held:
        raise NotImplementedError
