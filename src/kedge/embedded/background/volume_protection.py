"""Volume protection: a deleted PersistentVolume or claim stays until nobody uses it.

The server adds a finalizer to both when they are created; this removes it. A claim is in use while a pod on a node
mounts it. No claim is ever bound to a volume here, so a volume is never in use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.api.resource import Resource
from kedge.embedded.background.delayed_set import DelayedSet
from kedge.embedded.background.requests import BackgroundRequests
from kedge.embedded.builtin.storage import CLAIM_PROTECTION, CLAIMS, VOLUME_PROTECTION, VOLUMES
from kedge.embedded.kind import PODS, Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change, key_of
from kedge.kube.codec import DELETED, Untyped
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

ObjectKey: TypeAlias = tuple[Resource, str]  # resource and key


class _Protection(Struct, frozen=True):
    """The finalizer that protects objects of a kind, and the account that removes it."""

    finalizer: str
    account: str

    @property
    def caller(self) -> Caller:
        return Caller(f"system:serviceaccount:kube-system:{self.account}", agent="kube-controller-manager")


_PROTECTIONS = {
    VOLUMES: _Protection(VOLUME_PROTECTION, "pv-protection-controller"),
    CLAIMS: _Protection(CLAIM_PROTECTION, "pvc-protection-controller"),
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


_decode_pod = msgspec.json.Decoder(_Pod).decode  # of every pod that goes, and of all pods_there a claim that is to


class VolumeProtection:
    """Removes the finalizer of deleted volumes and claims, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._requests = BackgroundRequests(server)
        self._pending = DelayedSet(self._reconcile, running=lambda: server.running, delay=delay)
        server.store.subscribe(self._on_change)

    def start(self) -> None:
        self._pending.start()

    def stop(self) -> None:
        self._pending.stop()
        self._requests.stop()

    def _on_change(self, kind: Kind, change: Change) -> None:
        version = change.version
        if kind.resource in _PROTECTIONS and change.type != DELETED:
            self._pending.add((kind.resource, version.key))
        elif kind.resource == PODS and change.type == DELETED:
            for name in _claim_names(_decode_pod(version.body).spec):
                self._pending.add((CLAIMS, key_of(version.namespace, name)))

    def _reconcile(self, item: ObjectKey) -> None:
        resource, key = item
        found = self._server.store.all(Kind(resource)).get(key)
        metadata = found.decode()["metadata"] if found else {}
        is_held = _PROTECTIONS[resource].finalizer in metadata.get("finalizers", ())
        if is_held and metadata.get("deletionTimestamp") and not self._is_used(resource, metadata):
            self._remove_finalizer(resource, metadata)

    def _is_used(self, resource: Resource, metadata: Untyped) -> bool:
        if resource == VOLUMES:
            return False
        pods_there = self._server.store.all(Kind(PODS)).at(self._server.store.number)
        pods = (_decode_pod(version.body).spec for version in pods_there.within(f"{metadata['namespace']}/"))
        return any(metadata["name"] in _claim_names(pod) for pod in pods if pod.node_name)

    def _remove_finalizer(self, resource: Resource, metadata: Untyped) -> None:
        protection = _PROTECTIONS[resource]
        left = [one for one in metadata["finalizers"] if one != protection.finalizer]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": left or None}}
        path = resource.path(metadata.get("namespace"), metadata["name"])
        body, media = msgspec.json.encode(patch), MergePatch.content_type
        item = (resource, key_of(metadata.get("namespace", ""), metadata["name"]))
        request = Request("PATCH", path, body=body, content_type=media)
        self._requests.send(request, protection.caller, lambda: self._pending.add(item))


def _claim_names(pod: _Spec) -> list[str]:
    """The names of the claims that a pod uses."""
    return [volume.persistent_volume_claim.claim_name for volume in pod.volumes or () if volume.persistent_volume_claim]
