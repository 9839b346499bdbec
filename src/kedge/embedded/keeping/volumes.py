"""Volumes: a PersistentVolume that is deleted goes. Here no claim is ever bound to one, so nothing holds it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kedge.api.resource import Resource
from kedge.embedded.callers import Caller
from kedge.embedded.keeping.errands import Errands
from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.codec import DELETED
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PROTECTION = "kubernetes.io/pv-protection"
_CALLER = Caller("system:serviceaccount:kube-system:pv-protection-controller", agent="kube-controller-manager")


class Volumes:
    """Lets deleted volumes go, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._errands = Errands(self._let_go, running=lambda: server.running, delay=delay)
        server.store.follow(self._follow)

    def start(self) -> None:
        self._errands.start()

    def stop(self) -> None:
        self._errands.stop()

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource == VOLUMES and change.type != DELETED:
            self._errands.add(change.version.name)

    def _let_go(self, name: str) -> None:
        found = self._server.store.all(Kind(VOLUMES)).get(name)
        metadata = found.decode()["metadata"] if found else {}
        finalizers = metadata.get("finalizers", [])
        if not metadata.get("deletionTimestamp") or PROTECTION not in finalizers:
            return
        left = [one for one in finalizers if one != PROTECTION]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": left or None}}
        body, media = msgspec.json.encode(patch), MergePatch.content_type
        self._server.handle(Request("PATCH", VOLUMES.path(None, name), body=body, content_type=media), _CALLER)
