"""Serving: a server's kinds follow its CRDs.

    definitions = Definitions(server)       # one for each server, made with it

As soon as a CRD is written its names are taken and its kind is served; when it is deleted its objects are, and when
they are gone so are kind and CRD. All of it within the write that causes it, through the server's own door, as the one
who does these things in Kubernetes. Whoever deletes a CRD must have it `marked` (`establishing`), not removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from kedge.embedded.callers import Caller
from kedge.embedded.custom import establishing
from kedge.embedded.custom.definition import DEFINITIONS
from kedge.embedded.custom.kinds import kinds_of
from kedge.embedded.kind import Kind
from kedge.embedded.registry import Registry
from kedge.embedded.rules import Untyped
from kedge.embedded.stamps import Stamps
from kedge.embedded.store import Change, Store
from kedge.kube.codec import DELETED
from kedge.kube.transport import Request, Response

_ITSELF = Caller("system:apiserver", agent="kube-apiserver")


class Host(Protocol):
    """What is needed of a server."""

    registry: Registry
    store: Store
    stamps: Stamps

    def handle(self, request: Request, caller: Caller = ...) -> Response: ...


class Definitions:
    """The CRDs of one server, and what is served because of them."""

    def __init__(self, server: Host) -> None:
        self._server = server
        self._served: dict[str, tuple[Kind, ...]] = {}  # by the name of the CRD
        server.store.follow(self._follow)

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource == DEFINITIONS:
            self._defined(change)
        elif change.type == DELETED:
            name = f"{kind.resource.plural}.{kind.resource.group}"
            if name in self._served and (crd := self._look(name)) and crd["metadata"].get("deletionTimestamp"):
                self._finish(crd)

    def _defined(self, change: Change) -> None:
        crd = change.version.decode()
        name = crd["metadata"]["name"]
        if change.type == DELETED:
            self._withdraw(name)
            self._settle(crd["spec"]["group"])
        elif crd["metadata"].get("deletionTimestamp"):
            self._empty(crd)
        else:
            self._establish(crd)

    def _establish(self, crd: Untyped) -> None:
        found = establishing.established(crd, self._others(crd["spec"]["group"]), self._server.stamps.now())
        if found is not crd:
            self._tell(found)  # and comes back here
        elif establishing.is_served(crd):
            self._serve(crd)

    def _settle(self, group: str) -> None:
        """Names are free again: somebody may have waited for them."""
        for crd in tuple(self._others(group)):
            if not crd["metadata"].get("deletionTimestamp") and not establishing.is_served(crd):
                self._establish(crd)

    def _serve(self, crd: Untyped) -> None:
        name = crd["metadata"]["name"]
        self._withdraw(name)
        self._served[name] = tuple(kinds_of(crd))
        for one in self._served[name]:
            self._server.registry.add(one)

    def _withdraw(self, name: str) -> None:
        for one in self._served.pop(name, ()):
            self._server.registry.remove(one)

    def _empty(self, crd: Untyped) -> None:
        if establishing.FINALIZER not in crd["metadata"].get("finalizers", ()):
            return
        for kind in self._served.get(crd["metadata"]["name"], ())[:1]:
            for place in self._places(kind):
                self._send("DELETE", kind.resource.path(place or None))
        if there := self._look(crd["metadata"]["name"]):
            self._finish(there)

    def _finish(self, crd: Untyped) -> None:
        """Let a CRD go, if nothing of its kind is left."""
        served = self._served.get(crd["metadata"]["name"], ())
        held = establishing.FINALIZER in crd["metadata"].get("finalizers", ())
        if held and not any(True for one in served[:1] for _ in self._places(one)):
            self._tell(establishing.emptied(crd, self._server.stamps.now()))

    def _places(self, kind: Kind) -> list[str]:
        """The namespaces with objects of a kind; of one without namespaces, the nameless one."""
        found = self._server.store.all(kind).at(self._server.store.number).within("")
        return list(dict.fromkeys(version.namespace for version in found))

    def _others(self, group: str) -> Iterator[Untyped]:
        for version in self._server.store.all(Kind(DEFINITIONS)).at(self._server.store.number).within(""):
            crd = version.decode()
            if crd["spec"]["group"] == group:
                yield crd

    def _look(self, name: str) -> Untyped | None:
        found = self._server.store.all(Kind(DEFINITIONS)).get(name)
        return found.decode() if found else None

    def _tell(self, crd: Untyped) -> None:
        self._send("PUT", DEFINITIONS.path(None, crd["metadata"]["name"], "status"), crd)

    def _send(self, method: str, path: str, body: Untyped | None = None) -> None:
        raw = msgspec.json.encode(body) if body is not None else b""
        answer = self._server.handle(Request(method, path, body=raw), _ITSELF)
        assert answer.status < 400, answer.body
