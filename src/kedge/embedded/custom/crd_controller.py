"""CRD controller: a server's kinds follow its CRDs.

    CrdController(server)       # one for each server, made with it

A CRD is established and its kind served within the write that creates it. When a CRD is deleted, its objects are
deleted, then the kind and the CRD. All of it goes through the server's own API, as the user that does it in Kubernetes.
Whoever deletes a CRD must mark it (`crd_status.mark_terminating`), not remove it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from kedge.embedded.custom import crd_status
from kedge.embedded.custom.crd import CRDS
from kedge.embedded.custom.served_versions import served_kinds
from kedge.embedded.generator import Generator
from kedge.embedded.kind import Kind, Registry
from kedge.embedded.request_info import APISERVER, Caller
from kedge.embedded.store import Change, Store
from kedge.kube.codec import DELETED, Untyped
from kedge.kube.transport import Request, Response


class CrdServer(Protocol):
    """What the controller needs of a server."""

    registry: Registry
    store: Store
    generator: Generator

    def handle(self, request: Request, caller: Caller = ...) -> Response: ...


class CrdController:
    """Establishes the CRDs of one server and serves their kinds."""

    def __init__(self, server: CrdServer) -> None:
        self._server = server
        self._served: dict[str, tuple[Kind, ...]] = {}  # by the name of the CRD
        server.store.subscribe(self._on_change)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind.resource == CRDS:
            self._crd_changed(change)
        elif change.type == DELETED:
            name = f"{kind.resource.plural}.{kind.resource.group}"
            if name in self._served and (crd := self._find(name)) and crd["metadata"].get("deletionTimestamp"):
                self._finish_deletion(crd)

    def _crd_changed(self, change: Change) -> None:
        crd = change.version.decode()
        name = crd["metadata"]["name"]
        if change.type == DELETED:
            self._stop_serving(name)
            self._establish_waiting(crd["spec"]["group"])
        elif crd["metadata"].get("deletionTimestamp"):
            self._delete_objects(crd)
        else:
            self._establish(crd)

    def _establish(self, crd: Untyped) -> None:
        found = crd_status.establish(crd, self._crds_of(crd["spec"]["group"]), self._server.generator.now())
        if found is not crd:
            self._write_status(found)  # and comes back here
        elif crd_status.is_served(crd):
            self._serve(crd)

    def _establish_waiting(self, group: str) -> None:
        """Establish CRDs that waited for names that are free now."""
        for crd in tuple(self._crds_of(group)):
            if not crd["metadata"].get("deletionTimestamp") and not crd_status.is_served(crd):
                self._establish(crd)

    def _serve(self, crd: Untyped) -> None:
        name = crd["metadata"]["name"]
        self._stop_serving(name)
        self._served[name] = tuple(served_kinds(crd))
        for one in self._served[name]:
            self._server.registry.add(one)

    def _stop_serving(self, name: str) -> None:
        for one in self._served.pop(name, ()):
            self._server.registry.remove(one)

    def _delete_objects(self, crd: Untyped) -> None:
        if crd_status.FINALIZER not in crd["metadata"].get("finalizers", ()):
            return
        for kind in self._served.get(crd["metadata"]["name"], ())[:1]:
            for namespace in self._namespaces_in_use(kind):
                self._send("DELETE", kind.resource.path(namespace or None))
        if there := self._find(crd["metadata"]["name"]):
            self._finish_deletion(there)

    def _finish_deletion(self, crd: Untyped) -> None:
        """Remove our finalizer from a CRD, if no object of its kind is left."""
        served = self._served.get(crd["metadata"]["name"], ())
        held = crd_status.FINALIZER in crd["metadata"].get("finalizers", ())
        if held and not any(True for one in served[:1] for _ in self._namespaces_in_use(one)):
            self._write_status(crd_status.with_objects_deleted(crd, self._server.generator.now()))

    def _namespaces_in_use(self, kind: Kind) -> list[str]:
        """The namespaces with objects of a kind; the empty one for a cluster-scoped kind."""
        found = self._server.store.all(kind).at(self._server.store.number).within("")
        return list(dict.fromkeys(version.namespace for version in found))

    def _crds_of(self, group: str) -> Iterator[Untyped]:
        for version in self._server.store.all(Kind(CRDS)).at(self._server.store.number).within(""):
            crd = version.decode()
            if crd["spec"]["group"] == group:
                yield crd

    def _find(self, name: str) -> Untyped | None:
        found = self._server.store.all(Kind(CRDS)).get(name)
        return found.decode() if found else None

    def _write_status(self, crd: Untyped) -> None:
        self._send("PUT", CRDS.path(None, crd["metadata"]["name"], "status"), crd)

    def _send(self, method: str, path: str, body: Untyped | None = None) -> None:
        raw = msgspec.json.encode(body) if body is not None else b""
        answer = self._server.handle(Request(method, path, body=raw), APISERVER)
        assert answer.status < 400, answer.body
