"""Volumes: a PersistentVolume or a claim that is deleted goes once nobody uses it.

The server holds both by a finalizer; taking that off is all that is done here. A claim is used by pods that are on a
node: no kubelet would start another with a claim on its way out. No claim is ever bound to a volume, so nothing uses
that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.api.resource import Resource
from kedge.embedded.builtin.storage import CLAIM_PROTECTION, CLAIMS, VOLUME_PROTECTION, VOLUMES
from kedge.embedded.callers import Caller
from kedge.embedded.keeping.errands import Errands
from kedge.embedded.kind import PODS, Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change, Untyped, key_of
from kedge.kube.codec import DELETED
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

Where: TypeAlias = tuple[Resource, str]  # what, and its key


class _Hold(Struct, frozen=True):
    """What holds objects of a kind, and who takes it off."""

    finalizer: str
    account: str

    @property
    def caller(self) -> Caller:
        return Caller(f"system:serviceaccount:kube-system:{self.account}", agent="kube-controller-manager")


_HOLDS = {
    VOLUMES: _Hold(VOLUME_PROTECTION, "pv-protection-controller"),
    CLAIMS: _Hold(CLAIM_PROTECTION, "pvc-protection-controller"),
}


class _Claim(Struct, rename="camel"):
    claim_name: str


class _Volume(Struct, rename="camel"):
    persistent_volume_claim: _Claim | None = None


class _Spec(Struct, rename="camel"):
    node_name: str = ""
    volumes: tuple[_Volume, ...] | None = None


class _Pod(Struct):
    spec: _Spec


_glance = msgspec.json.Decoder(_Pod).decode  # of every pod that goes, and of all around a claim that is to


class Volumes:
    """Lets deleted volumes and claims go, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._errands = Errands(self._see_to, running=lambda: server.running, delay=delay)
        server.store.follow(self._follow)

    def start(self) -> None:
        self._errands.start()

    def stop(self) -> None:
        self._errands.stop()

    def _follow(self, kind: Kind, change: Change) -> None:
        version = change.version
        if kind.resource in _HOLDS and change.type != DELETED:
            self._errands.add((kind.resource, version.key))
        elif kind.resource == PODS and change.type == DELETED:
            for name in _claims(_glance(version.body).spec):
                self._errands.add((CLAIMS, key_of(version.namespace, name)))

    def _see_to(self, where: Where) -> None:
        resource, key = where
        found = self._server.store.all(Kind(resource)).get(key)
        metadata = found.decode()["metadata"] if found else {}
        is_held = _HOLDS[resource].finalizer in metadata.get("finalizers", ())
        if is_held and metadata.get("deletionTimestamp") and not self._is_used(resource, metadata):
            self._let_go(resource, metadata)

    def _is_used(self, resource: Resource, metadata: Untyped) -> bool:
        if resource == VOLUMES:
            return False
        around = self._server.store.all(Kind(PODS)).at(self._server.store.number)
        pods = (_glance(version.body).spec for version in around.within(f"{metadata['namespace']}/"))
        return any(metadata["name"] in _claims(pod) for pod in pods if pod.node_name)

    def _let_go(self, resource: Resource, metadata: Untyped) -> None:
        hold = _HOLDS[resource]
        left = [one for one in metadata["finalizers"] if one != hold.finalizer]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": left or None}}
        path = resource.path(metadata.get("namespace"), metadata["name"])
        body, media = msgspec.json.encode(patch), MergePatch.content_type
        self._server.handle(Request("PATCH", path, body=body, content_type=media), hold.caller)


def _claims(pod: _Spec) -> list[str]:
    """The names of the claims a pod uses."""
    return [volume.persistent_volume_claim.claim_name for volume in pod.volumes or () if volume.persistent_volume_claim]
