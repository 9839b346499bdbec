"""Namespace defaults: creates the `default` ServiceAccount and the root CA ConfigMap in every namespace."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.background.delayed_set import DelayedSet
from kedge.embedded.background.requests import BackgroundRequests
from kedge.embedded.builtin.initial_objects import namespace_objects
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.codec import DELETED
from kedge.kube.transport import Request

_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
_RESOURCES = {resource.kind: resource for resource in (_ACCOUNTS, _CONFIG_MAPS)}
_NAMES = tuple(obj["metadata"]["name"] for obj in namespace_objects("", ""))
_CALLER = Caller("system:kube-controller-manager", agent="kube-controller-manager")


class NamespaceDefaults:
    """Creates the default objects of every namespace, from `start` to `stop`. `authority` is PEM."""

    def __init__(self, server: Server, delay: Callable[[], float], authority: str) -> None:
        self._server = server
        self._requests = BackgroundRequests(server)
        self._authority = authority
        self._pending = DelayedSet(self._create_missing, running=lambda: server.running, delay=delay)
        for version in server.store.all(Kind(NAMESPACES)).at(server.store.number).within(""):
            self._pending.add(version.name)
        server.store.subscribe(self._on_change)

    def start(self) -> None:
        self._pending.start()

    def stop(self) -> None:
        self._pending.stop()
        self._requests.stop()

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind.resource == NAMESPACES and change.type != DELETED:
            self._pending.add(change.version.name)
        elif change.type == DELETED and kind.resource in (_ACCOUNTS, _CONFIG_MAPS) and change.version.name in _NAMES:
            self._pending.add(change.version.namespace)

    def _create_missing(self, namespace: str) -> None:
        for obj in namespace_objects(namespace, self._authority):
            resource, name = _RESOURCES[obj["kind"]], obj["metadata"]["name"]
            if self._server.store.all(Kind(resource)).get(f"{namespace}/{name}") is None:
                request = Request("POST", resource.path(namespace), body=msgspec.json.encode(obj))
                # Refused if the namespace is terminating or gone, too.
                self._requests.send(request, _CALLER, lambda: self._pending.add(namespace))
