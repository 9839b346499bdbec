"""The official client, synchronous."""

from __future__ import annotations

from collections.abc import Sequence

from kubernetes import client, config, watch

from kedgebench.rivals import Held, Saw


class Official:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        config.load_kube_config(config_file=kubeconfig)
        self._api = client.AppsV1Api()
        self._namespace = namespace

    async def get(self, name: str) -> client.V1Deployment:
        return self._api.read_namespaced_deployment(name, self._namespace)

    async def list(self) -> Sequence[client.V1Deployment]:
        return list(self._api.list_namespaced_deployment(self._namespace).items)

    async def watch(self, saw: Saw) -> None:
        version = self._api.list_namespaced_deployment(self._namespace, limit=1).metadata.resource_version
        watcher = watch.Watch()
        listed = self._api.list_namespaced_deployment
        for event in watcher.stream(listed, self._namespace, resource_version=version):
            if saw(event["object"].metadata.name):
                watcher.stop()
                return

    async def hold(self, namespace: str, copies: int) -> Held:
        held = {}
        for copy in range(copies):
            items = self._api.list_namespaced_deployment(namespace).items
            held.update({(copy, item.metadata.name): item for item in items})
        return Held(held, len(held))
