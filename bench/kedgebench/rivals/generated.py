"""What the two asynchronous generated clients have in common: the same interface, over other models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from kedgebench.rivals import Held, Saw


class Generated:
    package: ClassVar[Any]

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._made: Any = None

    async def get(self, name: str) -> object:
        return await (await self._api()).read_namespaced_deployment(name, self._namespace)

    async def list(self) -> Sequence[object]:
        return list((await (await self._api()).list_namespaced_deployment(self._namespace)).items)

    async def watch(self, saw: Saw) -> None:
        api = await self._api()
        version = (await api.list_namespaced_deployment(self._namespace, limit=1)).metadata.resource_version
        watcher = self.package.watch.Watch()
        listed = api.list_namespaced_deployment
        async for event in watcher.stream(listed, self._namespace, resource_version=version):
            if saw(event["object"].metadata.name):
                watcher.stop()
                return

    async def hold(self, namespace: str, copies: int) -> Held:
        api = await self._api()
        held = {}
        for copy in range(copies):
            items = (await api.list_namespaced_deployment(namespace)).items
            held.update({(copy, item.metadata.name): item for item in items})
        return Held(held, len(held))

    async def _api(self) -> Any:
        if self._made is None:
            await self.package.config.load_kube_config(config_file=self._kubeconfig)
            self._made = self.package.client.AppsV1Api()
        return self._made
