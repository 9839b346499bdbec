"""Server: one Kubernetes API in memory.

    server = Server(clock=SystemClock(), rng=Random(seed))
    response = server.handle(Request("GET", "/api/v1/namespaces"))

`handle` answers every request but watches, at once; `watch` opens those. Both only compute: no I/O, no threads, no time
but the clock's, nothing random but from `rng`. So the same requests give the same answers, byte for byte. `respond`
does what `handle` does, and asks admission webhooks about writes; these are reached through `outbound`.

Serves every verb on the kinds in its registry, built-in ones and those of CRDs, and discovery and OpenAPI of them. What
happens to objects afterwards (garbage collection, deletion of namespaces) is done by `background`. There is no
authorization.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from kedge.embedded import (
    listing,
    namespaces,
    options,
    plain_pages,
    pod_subresources,
    representation,
    request_info,
    reviews,
    scale_subresource,
    statuses,
)
from kedge.embedded.admission.calls import WebhookCalls
from kedge.embedded.admission.dispatch import Admission
from kedge.embedded.admission.equivalents import Equivalents
from kedge.embedded.admission.service_addresses import Address, ServiceAddresses
from kedge.embedded.builtin.initial_objects import initial_objects
from kedge.embedded.builtin.kinds import BUILT_IN
from kedge.embedded.custom.crd import CRD_RULES, CRDS
from kedge.embedded.custom.crd_controller import CrdController
from kedge.embedded.discovery import Discovery
from kedge.embedded.generator import Generator
from kedge.embedded.kind import NAMESPACES, Kind, Registry
from kedge.embedded.openapi_documents import OpenApiDocuments
from kedge.embedded.representation import Representation
from kedge.embedded.request_info import APISERVER, IN_PROCESS, Caller, RequestInfo, ResourcePath
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store, Version, encode
from kedge.embedded.waiting_writes import at_once, with_newest
from kedge.embedded.watch import Watch
from kedge.embedded.writer import Writer, WriteResult
from kedge.kube.clock import Clock
from kedge.kube.codec import Untyped
from kedge.kube.connect.outbound import Outbound
from kedge.kube.transport import JSON, Request, Response

INITIAL_KINDS = tuple(replace(kind, rules=CRD_RULES) if kind.resource == CRDS else kind for kind in BUILT_IN)
_Write: TypeAlias = Callable[[RequestInfo], Awaitable[WriteResult]]
_JSON: Mapping[str, str] = {"content-type": JSON}
_CREATED = Response(201, statuses.succeeded(201), _JSON)


class Server:
    """One API server. `history` is how many changes of each kind it remembers.

    Webhooks are called through `outbound`; `webhook_addresses` (by namespace and name of a Service: `default/hooks`)
    says where those listen that are configured by a Service.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        registry: Registry | None = None,
        history: int = 1000,
        outbound: Outbound | None = None,
        webhook_addresses: Mapping[str, Address] | None = None,
    ) -> None:
        self.registry = registry or Registry(INITIAL_KINDS)
        self.store = Store(history=history)
        self.running = True
        self.starts = 1
        self._clock = clock
        self.generator = Generator(clock, rng)
        self._admission = Admission(
            self.store,
            self.generator,
            equivalents=Equivalents(self.registry),
            calls=WebhookCalls(outbound, ServiceAddresses(self.store, webhook_addresses)),
            life=lambda: self.starts if self.running else 0,
        )
        self._writer = Writer(self.store, self.generator, self._admission)
        self._watches: dict[Watch, None] = {}
        self._crds = CrdController(self)
        kinds = self.registry.kinds()
        self._documents = (self.registry.revision, (Discovery(kinds), OpenApiDocuments(kinds)))
        for name in namespaces.INITIAL_NAMESPACES:
            self._create_initial({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in initial_objects():
            self._create_initial(obj)

    def handle(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        """The answer to a request, at once: no webhook is asked."""
        return at_once(self._respond(request, caller, asks_webhooks=False))

    async def respond(self, request: Request, caller: Caller = IN_PROCESS) -> Response:
        """The answer to a request, once the webhooks that it concerns have answered."""
        return await self._respond(request, caller, asks_webhooks=True)

    @property
    def has_webhooks(self) -> bool:
        """Whether a write may have to wait for webhooks."""
        return bool(self._admission.webhooks)

    async def _respond(self, request: Request, caller: Caller, *, asks_webhooks: bool) -> Response:
        warnings: list[str] = []
        try:
            response = await self._answer(request, caller, asks_webhooks, warnings)
        except Refused as refused:
            response = refused.response()
        return statuses.with_warning_headers(response, last=warnings) if warnings else response

    def watch(self, request: Request, caller: Caller = IN_PROCESS) -> Watch | Response:
        """A watch, to be opened; or a response, if it is refused or no watch."""
        if not options.is_watch(request):
            return self.handle(request, caller)
        try:
            found = self._find(request.path)
            if found is None or found[1].name:
                return self.handle(request, caller)
            return self._watch(RequestInfo(*found, request, caller))
        except Refused as refused:
            return refused.response()

    def stop(self) -> None:
        """Stop as if crashed: every watch is disconnected, no request is answered. What is stored stays."""
        self.running = False
        for watch in tuple(self._watches):
            watch.cut("the server stopped")

    def start(self) -> None:
        """Run again, with everything that was stored."""
        self.starts += not self.running
        self.running = True

    async def _answer(self, request: Request, caller: Caller, asks_webhooks: bool, warnings: list[str]) -> Response:
        if (page := plain_pages.page(request)) is not None:
            return page
        found = self._find(request.path)
        if found is None:
            return self._answer_discovery(request)
        kind, path = found
        response = await self._answer_resource(RequestInfo(kind, path, request, caller, asks_webhooks, warnings))
        return (
            statuses.with_warning_headers(response, first=[kind.custom.warning])
            if kind.custom and kind.custom.warning
            else response
        )

    async def _answer_resource(self, info: RequestInfo) -> Response:
        kind, path = info.kind, info.path
        if kind.is_review:
            return self._answer_review(info)
        if path.subresource:
            return await self._answer_subresource(info)
        if path.name:
            return await self._answer_object(info)
        return await self._answer_collection(info)

    def _answer_discovery(self, request: Request) -> Response:
        """Discovery and OpenAPI."""
        discovery, documents = self._documents_of_kinds()
        found = discovery.response(request) or documents.response(request.path, dict(request.query), request.accept)
        if found is not None and request.method != "GET":
            raise statuses.not_allowed()
        return found or plain_pages.NOT_FOUND

    def _documents_of_kinds(self) -> tuple[Discovery, OpenApiDocuments]:
        if self._documents[0] != self.registry.revision:
            kinds = self.registry.kinds()
            self._documents = (self.registry.revision, (Discovery(kinds), OpenApiDocuments(kinds)))
        return self._documents[1]

    def _answer_review(self, info: RequestInfo) -> Response:
        if info.request.method != "POST" or info.path.name:
            raise statuses.not_allowed()
        found = reviews.review_response(info.kind, info.request, info.caller, self.generator.now())
        return Response(201, encode(found), _JSON)

    async def _answer_object(self, info: RequestInfo) -> Response:
        match info.request.method:
            case "GET":
                return self._get(info)
            case "PUT":
                return await self._write(self._writer.put, info)
            case "PATCH":
                return await self._write(self._writer.patch, info)
            case "DELETE":
                return await self._delete(info)
        raise statuses.not_allowed()

    async def _answer_subresource(self, info: RequestInfo) -> Response:
        """The answer to a request about a subresource."""
        match info.request.method, info.path.subresource:
            case "GET", "status":
                return self._get(info)
            case "PUT", "status" | "finalize":
                return await self._write(self._writer.put, info)
            case "PATCH", "status":
                return await self._write(self._writer.patch, info)
            case "GET", "scale":
                view = self._view(info.as_kind(scale_subresource.SCALE_KIND))
                return Response(
                    200, view.encode_object(scale_subresource.scale_of(info.kind, self._current(info))), _JSON
                )
            case "PUT", "scale":
                return await self._write(partial(scale_subresource.put_scale, self._writer), info)
            case "PATCH", "scale":
                return await self._write(partial(scale_subresource.patch_scale, self._writer), info)
            case "POST", "binding":
                await pod_subresources.bind(self._writer, self.store, info, self.generator.now)
                return _CREATED
            case "POST", "eviction":
                await with_newest(partial(pod_subresources.evict, self._writer, self.store), info)
                return _CREATED
        raise statuses.not_allowed()

    async def _answer_collection(self, info: RequestInfo) -> Response:
        kind = info.kind
        whole = bool(info.path.namespace) == kind.resource.namespaced  # not a namespaced kind across namespaces
        match info.request.method:
            case "GET" if options.is_watch(info.request):
                raise statuses.bad_request("a watch is a stream: open it as one")
            case "GET":
                return self._list(info)
            case "POST" if whole:
                return await self._write(self._writer.create, info)
            case "DELETE" if whole and kind.resource != NAMESPACES:
                return await self._delete_all(info)
        raise statuses.not_allowed()

    def _find(self, url_path: str) -> tuple[Kind, ResourcePath] | None:
        """The kind and resource path of a URL path; None if it is not of the API."""
        path = request_info.parse_path(url_path)
        if path is None:
            return None
        kind = self.registry.find(path.group, path.version, path.plural)
        if kind is None and not self.registry.has_group(path.group):
            return None
        if kind is None or not _can_be_at(kind, path):
            raise statuses.no_such_resource()
        return kind, path

    def _get(self, info: RequestInfo) -> Response:
        view = self._view(info)
        if asked := dict(info.request.query).get("resourceVersion"):
            self._refuse_future(options.parse_resource_version(asked))
        return Response(200, view.encode_object(self._current(info)), _JSON)

    def _current(self, info: RequestInfo) -> Version:
        return self._writer.current(info.kind, info.path)

    def _list(self, info: RequestInfo) -> Response:
        view = representation.requested_representation(info, self._clock.now, listing=True)
        wanted = options.for_list(info.request, info.kind, info.path.namespace)
        page = listing.list_page(self.store, info.kind, wanted)
        return Response(200, view.encode_list(page.metadata, page.items), _JSON)

    async def _delete(self, info: RequestInfo) -> Response:
        view = self._view(info)
        asked = options.for_delete(info.request)
        found = self._current(info)
        left = await with_newest(partial(self._writer.delete, asked=asked), info)
        if left is not None:
            return Response(200, view.encode_object(left), _JSON)
        uid = found.decode()["metadata"]["uid"]
        return Response(200, statuses.deleted(info.kind.resource, info.path.name, uid), _JSON)

    async def _delete_all(self, info: RequestInfo) -> Response:
        kind = info.kind
        wanted = options.for_list(info.request, kind, info.path.namespace).selection
        asked = options.for_delete(info.request)
        metadata = {"resourceVersion": str(self.store.number)}
        gone = await self._writer.delete_all(info, wanted, asked)
        view = Representation(kind, "whole", self._clock.now, info.caller.sees_owners_of(kind.resource))
        return Response(200, view.encode_list(metadata, gone), _JSON)

    def _watch(self, info: RequestInfo) -> Watch:
        asked = options.for_watch(info.request, info.kind, info.path.namespace)
        seconds = float(asked.seconds) if asked.seconds > 0 else self.generator.watch_seconds()
        return Watch(self.store, self._view(info), asked, seconds=seconds, opened=self._watches)

    async def _write(self, write: _Write, info: RequestInfo) -> Response:
        # The representation first: a write that cannot be answered must not be done.
        view = self._view(info.as_kind(scale_subresource.SCALE_KIND) if info.path.subresource == "scale" else info)
        written = await with_newest(write, info)
        return Response(written.code, view.encode_object(written.version), statuses.json_headers(written.warnings))

    def _view(self, info: RequestInfo) -> Representation:
        return representation.requested_representation(info, self._clock.now)

    def _refuse_future(self, asked: int) -> None:
        if asked > self.store.number:
            raise statuses.too_large_resource_version(asked, self.store.number)

    def _create_initial(self, obj: Untyped) -> None:
        """Create an initial object."""
        group, _, version = obj["apiVersion"].rpartition("/")
        found = (one.resource for one in self.registry.kinds() if one.resource.kind == obj["kind"])
        resource = next((one for one in found if (one.group, one.version) == (group, version)), None)
        if resource is not None:  # a registry may leave kinds out
            path = resource.path(obj["metadata"].get("namespace"))
            self.handle(Request("POST", path, body=msgspec.json.encode(obj)), APISERVER)


def _can_be_at(kind: Kind, path: ResourcePath) -> bool:
    """Whether objects of this kind can have this path."""
    if path.subresource and path.subresource not in kind.subresources:
        return False
    if path.namespace and not kind.resource.namespaced:
        return False
    return bool(path.namespace) or not (kind.resource.namespaced and path.name)
