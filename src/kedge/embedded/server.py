"""Server: one Kubernetes API in memory.

    server = Server(clock=SystemClock(), rng=Random(seed))
    response = server.handle(Request("GET", "/api/v1/namespaces"))

`handle` answers every request but watches, at once; `watch` opens those. Both only compute: no I/O, no threads, no time
but the clock's, nothing random but from `rng`. So the same requests give the same answers, byte for byte.

Serves create, get, list, watch, update, patch, delete and deletecollection of the kinds in its registry. Not yet:
discovery, schemas, defaults, field ownership, tables, garbage collection, scale, eviction, admission, who is asking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import msgspec

from kedge.embedded import forms, listing, namespaces, options, paths, statuses
from kedge.embedded.paths import Place
from kedge.embedded.registry import NAMESPACES, Kind, Registry
from kedge.embedded.stamps import Stamps
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Version, key_of
from kedge.embedded.watching import Watch
from kedge.embedded.writing import Writing
from kedge.kube.clock import Clock
from kedge.kube.transport import JSON, Request, Response

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+kedge",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "embedded",
}
_Write: TypeAlias = Callable[[Kind, Place, Request], tuple[int, bytes]]
_JSON: Mapping[str, str] = {"content-type": JSON}
_TEXT: Mapping[str, str] = {"content-type": "text/plain; charset=utf-8"}
_OK = Response(200, b"ok", _TEXT)
_PLAIN: Mapping[str, Response] = {
    "/version": Response(200, msgspec.json.encode(VERSION), _JSON),
    "/healthz": _OK,
    "/livez": _OK,
    "/readyz": _OK,
}
_NO_PAGE = Response(404, b"404 page not found\n", _TEXT)


class Server:
    """One API server. `history` is how many changes of each kind it remembers."""

    def __init__(self, *, clock: Clock, rng: Random, registry: Registry | None = None, history: int = 1000) -> None:
        self.registry = registry or Registry()
        self.store = Store(history=history)
        self.running = True
        self.starts = 1
        self._stamps = Stamps(clock, rng)
        self._writing = Writing(self.store, self._stamps)
        self._watches: dict[Watch, None] = {}
        for name in namespaces.FROM_THE_START:
            self._make_namespace(name)

    def handle(self, request: Request) -> Response:
        """The answer to a request."""
        try:
            return self._answer(request)
        except Refused as refused:
            return Response(refused.code, refused.body(), _JSON)

    def watch(self, request: Request) -> Watch | Response:
        """A watch, to be opened; or the answer, if it is refused or no watch."""
        try:
            found = self._find(request.path)
            if found is None or found[1].name or not options.is_watch(request):
                return self.handle(request)
            return self._watch(*found, request)
        except Refused as refused:
            return Response(refused.code, refused.body(), _JSON)

    def stop(self) -> None:
        """Go away, as a crashed server does: every watch is cut off, no request reaches it. What is stored stays."""
        self.running = False
        for watch in tuple(self._watches):
            watch.cut("the server stopped")

    def start(self) -> None:
        """Come back, with everything that was stored."""
        self.starts += not self.running
        self.running = True

    def _answer(self, request: Request) -> Response:
        if request.path in _PLAIN:
            return _plain(request)
        found = self._find(request.path)
        if found is None:
            return _NO_PAGE
        kind, place = found
        if place.name:
            return self._answer_object(kind, place, request)
        return self._answer_collection(kind, place, request)

    def _answer_object(self, kind: Kind, place: Place, request: Request) -> Response:
        match request.method:
            case "GET" if place.subresource != "finalize":
                return self._get(kind, place, request)
            case "PUT":
                return self._write(self._writing.put, kind, place, request)
            case "PATCH" if place.subresource != "finalize":
                return self._write(self._writing.patch, kind, place, request)
            case "DELETE" if not place.subresource:
                return Response(*self._writing.delete(kind, place, request), _JSON)
        raise statuses.not_allowed()

    def _answer_collection(self, kind: Kind, place: Place, request: Request) -> Response:
        whole = bool(place.namespace) == kind.resource.namespaced  # not a namespaced kind across namespaces
        match request.method:
            case "GET" if options.is_watch(request):
                raise statuses.bad_request("a watch is a stream: open it as one")
            case "GET":
                return self._list(kind, place, request)
            case "POST" if whole:
                return self._write(self._writing.create, kind, place, request)
            case "DELETE" if whole and kind.resource != NAMESPACES:
                return self._delete_all(kind, place, request)
        raise statuses.not_allowed()

    def _find(self, path: str) -> tuple[Kind, Place] | None:
        """The kind and place a path names; None if it names no API at all."""
        place = paths.parse(path)
        if place is None or not self.registry.has_group(place.group):
            return None
        kind = self.registry.find(place.group, place.version, place.plural)
        if kind is None or not _is_place_of(kind, place):
            raise statuses.no_such_resource()
        return kind, place

    def _get(self, kind: Kind, place: Place, request: Request) -> Response:
        form = forms.chosen(request.accept)
        if asked := dict(request.query).get("resourceVersion"):
            self._refuse_future(options.number(asked))
        found = self.store.all(kind).get(key_of(place.namespace, place.name))
        if found is None:
            raise statuses.not_found(kind.resource, place.name)
        return Response(200, forms.one(found.body, form), _JSON)

    def _list(self, kind: Kind, place: Place, request: Request) -> Response:
        form = forms.chosen(request.accept, listing=True)
        page = listing.page(self.store, kind, options.for_list(request, kind, place.namespace))
        bodies = (version.body for version in page.items)
        return Response(200, forms.many(kind.resource, form, page.metadata, bodies), _JSON)

    def _delete_all(self, kind: Kind, place: Place, request: Request) -> Response:
        wanted = options.for_list(request, kind, place.namespace).wanted
        metadata = {"resourceVersion": str(self.store.number)}
        gone: list[Version] = self._writing.delete_all(kind, wanted, request)
        return Response(200, forms.many(kind.resource, "whole", metadata, (one.body for one in gone)), _JSON)

    def _watch(self, kind: Kind, place: Place, request: Request) -> Watch:
        asked = options.for_watch(request, kind, place.namespace)
        seconds = float(asked.seconds) if asked.seconds > 0 else self._stamps.watch_seconds()
        form = forms.chosen(request.accept)
        return Watch(self.store, kind, form, asked, seconds=seconds, opened=self._watches)

    def _write(self, write: _Write, kind: Kind, place: Place, request: Request) -> Response:
        form = forms.chosen(request.accept)  # first: what cannot be answered must not be done
        code, body = write(kind, place, request)
        return Response(code, forms.one(body, form), _JSON)

    def _refuse_future(self, asked: int) -> None:
        if asked > self.store.number:
            raise statuses.not_there_yet(asked, self.store.number)

    def _make_namespace(self, name: str) -> None:
        body = msgspec.json.encode({"metadata": {"name": name}})
        self.handle(Request("POST", NAMESPACES.path(), body=body))


def _plain(request: Request) -> Response:
    if request.method != "GET":
        raise statuses.not_allowed()
    return _PLAIN[request.path]


def _is_place_of(kind: Kind, place: Place) -> bool:
    """Whether objects of this kind can be there."""
    if place.subresource and place.subresource not in kind.subresources:
        return False
    if place.namespace and not kind.resource.namespaced:
        return False
    return bool(place.namespace) or not (kind.resource.namespaced and place.name)
