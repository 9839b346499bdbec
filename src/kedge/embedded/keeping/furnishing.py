"""Furnishing: what every namespace comes with: an account for its pods, and the authority they trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.callers import Caller
from kedge.embedded.keeping.errands import Errands
from kedge.embedded.registry import NAMESPACES, Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change, Untyped
from kedge.kube.codec import DELETED
from kedge.kube.transport import Request

_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
_CALLER = Caller("system:kube-controller-manager", agent="kube-controller-manager")
_ABOUT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Furnishing:
    """Furnishes the namespaces of one server, from `start` to `stop`. `authority` is PEM."""

    def __init__(self, server: Server, delay: Callable[[], float], authority: str) -> None:
        self._server = server
        self._things: Mapping[str, tuple[Resource, Untyped]] = {
            "default": (_ACCOUNTS, {"metadata": {"name": "default"}}),
            "kube-root-ca.crt": (_MAPS, _root(authority)),
        }
        self._errands = Errands(self._furnish, running=lambda: server.running, delay=delay)
        for version in server.store.all(Kind(NAMESPACES)).at(server.store.number).within(""):
            self._errands.add(version.name)
        server.store.follow(self._follow)

    def start(self) -> None:
        self._errands.start()

    def stop(self) -> None:
        self._errands.stop()

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource == NAMESPACES and change.type != DELETED:
            self._errands.add(change.version.name)
        elif change.version.name in self._things and kind.resource in (_ACCOUNTS, _MAPS) and change.type == DELETED:
            self._errands.add(change.version.namespace)

    def _furnish(self, namespace: str) -> None:
        for name, (resource, body) in self._things.items():
            if self._server.store.all(Kind(resource)).get(f"{namespace}/{name}") is None:
                request = Request("POST", resource.path(namespace), body=msgspec.json.encode(body))
                self._server.handle(request, _CALLER)  # refused where the namespace is going or gone


def _root(authority: str) -> Untyped:
    about = {"kubernetes.io/description": _ABOUT}
    return {"metadata": {"name": "kube-root-ca.crt", "annotations": about}, "data": {"ca.crt": authority}}
