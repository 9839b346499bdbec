"""Server: one Kubernetes API in memory.

    server = Server(clock=SystemClock(), rng=Random(seed))
    response = server.handle(Request("GET", "/api/v1/namespaces"))

`handle` answers every request but watches, at once; `watch` opens those. Both only compute: no I/O, no threads, no time
but the clock's, nothing random but from `rng`. So the same requests give the same answers, byte for byte.

Serves every verb on the kinds in its registry, built-in ones and those that CRDs define, and tells what it serves. What
happens to objects afterwards (garbage collection, deletion of namespaces) is done by `background`. There is no
authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TypeAlias

import msgspec

from kedge.embedded import forms, listing, namespaces, options, paths, pod_verbs, reviews, scaling, statuses
from kedge.embedded.asking import Order
from kedge.embedded.builtin.initial_objects import initial_objects
from kedge.embedded.callers import WITHIN, Caller
from kedge.embedded.custom.crd_controller import CrdController
from kedge.embedded.discovery import Discovery
from kedge.embedded.forms import View
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.paths import Place
from kedge.embedded.registry import Registry
from kedge.embedded.schema.openapi_documents import OpenApiDocuments
from kedge.embedded.stamps import Stamps
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Untyped, Version, encode
from kedge.embedded.watching import Watch
from kedge.embedded.writing import Writing, Written
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
_Write: TypeAlias = Callable[[Order], Written]
_JSON: Mapping[str, str] = {"content-type": JSON}
_TEXT: Mapping[str, str] = {"content-type": "text/plain; charset=utf-8"}
_OK = Response(200, b"ok", _TEXT)
_PLAIN: Mapping[str, Response] = {
    "/version": Response(200, msgspec.json.encode(VERSION), _JSON),
    "/healthz": _OK,
    "/livez": _OK,
    "/readyz": _OK,
}
_CREATED = Response(201, statuses.succeeded(201), _JSON)
_ITSELF = Caller("system:apiserver", agent="kube-apiserver")
_NO_PAGE = Response(404, b"404 page not found\n", _TEXT)


class Server:
    """One API server. `history` is how many changes of each kind it remembers."""

    def __init__(self, *, clock: Clock, rng: Random, registry: Registry | None = None, history: int = 1000) -> None:
        self.registry = registry or Registry()
        self.store = Store(history=history)
        self.running = True
        self.starts = 1
        self._clock = clock
        self.stamps = Stamps(clock, rng)
        self._writing = Writing(self.store, self.stamps)
        self._watches: dict[Watch, None] = {}
        self.definitions = CrdController(self)
        kinds = self.registry.kinds()
        self._told = (self.registry.revision, (Discovery(kinds), OpenApiDocuments(kinds)))
        for name in namespaces.FROM_THE_START:
            self._make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in initial_objects():
            self._make(obj)

    def handle(self, request: Request, caller: Caller = WITHIN) -> Response:
        """The answer to a request."""
        try:
            return self._answer(request, caller)
        except Refused as refused:
            return refused.response()

    def watch(self, request: Request, caller: Caller = WITHIN) -> Watch | Response:
        """A watch, to be opened; or the answer, if it is refused or no watch."""
        if not options.is_watch(request):
            return self.handle(request, caller)
        try:
            found = self._find(request.path)
            if found is None or found[1].name:
                return self.handle(request, caller)
            return self._watch(Order(*found, request, caller))
        except Refused as refused:
            return refused.response()

    def stop(self) -> None:
        """Go away, as a crashed server does: every watch is cut off, no request reaches it. What is stored stays."""
        self.running = False
        for watch in tuple(self._watches):
            watch.cut("the server stopped")

    def start(self) -> None:
        """Come back, with everything that was stored."""
        self.starts += not self.running
        self.running = True

    def _answer(self, request: Request, caller: Caller) -> Response:
        if request.path.rstrip("/") in _PLAIN:
            return _plain(request)
        found = self._find(request.path)
        if found is None:
            return self._told_of_itself(request)
        kind, place = found
        if kind.custom and kind.custom.warning:
            return _with_warning(self._answer_about(Order(kind, place, request, caller)), kind.custom.warning)
        return self._answer_about(Order(kind, place, request, caller))

    def _answer_about(self, order: Order) -> Response:
        kind, place = order.kind, order.place
        if kind.is_question:
            return self._answer_question(order)
        if place.subresource:
            return self._answer_part(order)
        if place.name:
            return self._answer_object(order)
        return self._answer_collection(order)

    def _told_of_itself(self, request: Request) -> Response:
        """What the server says of itself: which kinds it serves, and what they look like."""
        discovery, documents = self._about()
        found = discovery.response(request) or documents.response(request.path, dict(request.query), request.accept)
        if found is not None and request.method != "GET":
            raise statuses.not_allowed()
        return found or _NO_PAGE

    def _about(self) -> tuple[Discovery, OpenApiDocuments]:
        if self._told[0] != self.registry.revision:
            kinds = self.registry.kinds()
            self._told = (self.registry.revision, (Discovery(kinds), OpenApiDocuments(kinds)))
        return self._told[1]

    def _answer_question(self, order: Order) -> Response:
        if order.request.method != "POST" or order.place.name:
            raise statuses.not_allowed()
        found = reviews.answered(order.kind, order.request, order.caller, self.stamps.now())
        return Response(201, encode(found), _JSON)

    def _answer_object(self, order: Order) -> Response:
        match order.request.method:
            case "GET":
                return self._get(order)
            case "PUT":
                return self._write(self._writing.put, order)
            case "PATCH":
                return self._write(self._writing.patch, order)
            case "DELETE":
                return self._delete(order)
        raise statuses.not_allowed()

    def _answer_part(self, order: Order) -> Response:
        """The answer to a request about a subresource."""
        match order.request.method, order.place.subresource:
            case "GET", "status":
                return self._get(order)
            case "PUT", "status" | "finalize":
                return self._write(self._writing.put, order)
            case "PATCH", "status":
                return self._write(self._writing.patch, order)
            case "GET", "scale":
                view = self._view(order.about(scaling.KIND))
                return Response(200, view.one(scaling.shown(order.kind, self._found(order))), _JSON)
            case "PUT", "scale":
                return self._write(partial(scaling.put, self._writing), order)
            case "PATCH", "scale":
                return self._write(partial(scaling.patch, self._writing), order)
            case "POST", "binding":
                pod_verbs.bind(self._writing, self.store, order, self.stamps.now)
                return _CREATED
            case "POST", "eviction":
                pod_verbs.evict(self._writing, self.store, order)
                return _CREATED
        raise statuses.not_allowed()

    def _answer_collection(self, order: Order) -> Response:
        kind = order.kind
        whole = bool(order.place.namespace) == kind.resource.namespaced  # not a namespaced kind across namespaces
        match order.request.method:
            case "GET" if options.is_watch(order.request):
                raise statuses.bad_request("a watch is a stream: open it as one")
            case "GET":
                return self._list(order)
            case "POST" if whole:
                return self._write(self._writing.create, order)
            case "DELETE" if whole and kind.resource != NAMESPACES:
                return self._delete_all(order)
        raise statuses.not_allowed()

    def _find(self, path: str) -> tuple[Kind, Place] | None:
        """The kind and place a path names; None if it names no API at all."""
        place = paths.parse(path)
        if place is None:
            return None
        kind = self.registry.find(place.group, place.version, place.plural)
        if kind is None and not self.registry.has_group(place.group):
            return None
        if kind is None or not _is_place_of(kind, place):
            raise statuses.no_such_resource()
        return kind, place

    def _get(self, order: Order) -> Response:
        view = self._view(order)
        if asked := dict(order.request.query).get("resourceVersion"):
            self._refuse_future(options.number(asked))
        return Response(200, view.one(self._found(order)), _JSON)

    def _found(self, order: Order) -> Version:
        return self._writing.seen(order.kind, order.place)

    def _list(self, order: Order) -> Response:
        view = forms.asked_for(order, self._clock.now, listing=True)
        wanted = options.for_list(order.request, order.kind, order.place.namespace)
        page = listing.page(self.store, order.kind, wanted)
        return Response(200, view.many(page.metadata, page.items), _JSON)

    def _delete(self, order: Order) -> Response:
        view = self._view(order)
        asked = options.for_delete(order.request)
        found = self._found(order)
        left = self._writing.delete(order.kind, order.place, asked)
        if left is not None:
            return Response(200, view.one(left), _JSON)
        uid = found.decode()["metadata"]["uid"]
        return Response(200, statuses.deleted(order.kind.resource, order.place.name, uid), _JSON)

    def _delete_all(self, order: Order) -> Response:
        kind = order.kind
        wanted = options.for_list(order.request, kind, order.place.namespace).wanted
        asked = options.for_delete(order.request)
        metadata = {"resourceVersion": str(self.store.number)}
        gone = self._writing.delete_all(kind, wanted, asked)
        view = View(kind, "whole", self._clock.now, order.caller.sees_owners_of(kind.resource))
        return Response(200, view.many(metadata, gone), _JSON)

    def _watch(self, order: Order) -> Watch:
        asked = options.for_watch(order.request, order.kind, order.place.namespace)
        seconds = float(asked.seconds) if asked.seconds > 0 else self.stamps.watch_seconds()
        return Watch(self.store, self._view(order), asked, seconds=seconds, opened=self._watches)

    def _write(self, write: _Write, order: Order) -> Response:
        # First what form to answer in: what cannot be answered must not be done.
        view = self._view(order.about(scaling.KIND) if order.place.subresource == "scale" else order)
        written = write(order)
        return Response(written.code, view.one(written.version), statuses.headers(written.warnings))

    def _view(self, order: Order) -> View:
        return forms.asked_for(order, self._clock.now)

    def _refuse_future(self, asked: int) -> None:
        if asked > self.store.number:
            raise statuses.not_there_yet(asked, self.store.number)

    def _make(self, obj: Untyped) -> None:
        """Make what is there from the start."""
        group, _, version = obj["apiVersion"].rpartition("/")
        found = (one.resource for one in self.registry.kinds() if one.resource.kind == obj["kind"])
        resource = next((one for one in found if (one.group, one.version) == (group, version)), None)
        if resource is not None:  # a registry may leave kinds out
            path = resource.path(obj["metadata"].get("namespace"))
            self.handle(Request("POST", path, body=msgspec.json.encode(obj)), _ITSELF)


def _with_warning(response: Response, text: str) -> Response:
    told = ", ".join(filter(None, (statuses.headers((text,))["warning"], response.headers.get("warning"))))
    return Response(response.status, response.body, {**response.headers, "warning": told})


def _plain(request: Request) -> Response:
    if request.method != "GET":
        raise statuses.not_allowed()
    return _PLAIN[request.path.rstrip("/")]


def _is_place_of(kind: Kind, place: Place) -> bool:
    """Whether objects of this kind can be there."""
    if place.subresource and place.subresource not in kind.subresources:
        return False
    if place.namespace and not kind.resource.namespaced:
        return False
    return bool(place.namespace) or not (kind.resource.namespaced and place.name)
