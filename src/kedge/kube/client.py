"""Client: the verbs of one Kubernetes API, typed or untyped.

    deployment = await client.get(Deployment, "web", "shop")          # a typed object
    anything = await client.get(untyped(resource), "web", "shop")     # a dict
    await client.apply(Deployment, {"metadata": {...}, "spec": {...}}, manager="kedge-rollout")

Promises: every request waits for its turn (`limits`), is sent again only where that cannot do a thing twice, and
ends in an object or in a `KubeError` that says what was asked and what was answered. Typed kinds keep only part of
an object, so there is no PUT for them: apply or patch them. Whole objects (`untyped`) can be replaced.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import msgspec

from kedge.kube.codec import Body, Bookmark, Codec, Event, Page, Unreadable, Untyped, codec, encode
from kedge.kube.errors import KubeError, NotUnderstood, Status, Unreachable, api_error, refusal
from kedge.kube.limits import Limiter, Retry
from kedge.kube.patches import Patch
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream, Transport

T = TypeVar("T")
Kind: TypeAlias = type[T] | Codec[T]
Selector: TypeAlias = str | Mapping[str, str] | None
WatchEvents: TypeAlias = AsyncIterator[Event[T] | Event[Unreadable] | Bookmark]

APPLY = "application/apply-patch+yaml"  # JSON is YAML, and every server takes it under this name
log = logging.getLogger(__name__)


class Client:
    """Speaks to one API server, through a transport."""

    def __init__(
        self,
        transport: Transport,
        *,
        limiter: Limiter | None = None,
        retry: Retry | None = None,
        rng: random.Random | None = None,
        timeout: float = 30.0,
        flow: str = "",
        on_answer: Callable[[str, int], None] | None = None,
    ) -> None:
        """`flow` names who asks, for fair turns; `on_answer` is told method and code of every answer (0: none)."""
        self.transport = transport
        self._limiter = limiter or Limiter()
        self._retry = retry or Retry()
        self._rng = rng or random.Random()
        self._timeout = timeout
        self._flow = flow
        self._on_answer = on_answer
        self._warned: set[str] = set()

    def as_flow(self, flow: str) -> Client:
        """The same client, waiting for its turns under another name."""
        other = copy.copy(self)
        other._flow = flow
        return other

    def without_retry(self) -> Client:
        """The same client, sending each request once: for callers that wait and try again themselves."""
        other = copy.copy(self)
        other._retry = Retry(attempts=1)
        return other

    # Reading

    async def get(
        self,
        kind: Kind[T],
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """One object. Without a resource_version it is the newest there is."""
        form = codec(kind)
        query = _given(resourceVersion=resource_version)
        path = form.resource.path(_place(form, namespace), name, subresource)
        return await self._one(form, Request("GET", path, query, accept=form.accept))

    async def list(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        page_size: int = 500,
    ) -> Page[T]:
        """Every object, as of one moment, read in pages. `Gone` if reading took longer than the server remembers."""
        items: list[T] = []
        unreadable: list[Unreadable] = []
        async for page in self.pages(kind, namespace, labels=labels, fields=fields, page_size=page_size):
            items += page.items
            unreadable += page.unreadable
            version = page.resource_version
        return Page(tuple(items), tuple(unreadable), version)

    async def pages(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        page_size: int = 500,
    ) -> AsyncIterator[Page[T]]:
        """The pages of a list, as of one moment."""
        form = codec(kind)
        base = _given(labelSelector=selector(labels), fieldSelector=selector(fields), limit=str(page_size))
        more = ""
        while True:
            query = base + _given(**{"continue": more or None})
            request = Request("GET", form.resource.path(namespace), query, accept=form.accept_list)
            page = form.page((await self._send(request)).body)
            yield page
            more = page.more
            if not more:
                return

    @asynccontextmanager
    async def watch(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        seconds: float = 300.0,
        silence: float = 75.0,
    ) -> AsyncIterator[WatchEvents[T]]:
        """Changes since a resourceVersion, for about so many seconds; or everything there is, then changes.

        Opens before the context is entered, so that what went wrong there is an error of its own. `silence` is how
        long nothing at all may come (bookmarks come each minute) before the connection counts as dead.
        """
        form = codec(kind)
        query = _given(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=selector(labels),
            fieldSelector=selector(fields),
            resourceVersion=resource_version,
            timeoutSeconds=str(round(seconds)),
            sendInitialEvents="true" if initial_events else None,
            resourceVersionMatch="NotOlderThan" if initial_events else None,
        )
        request = Request("GET", form.resource.path(namespace), query, accept=form.accept)
        await self._limiter.turn(self._flow)
        try:
            async with self.transport.stream(request, timeout=self._timeout, silence=silence) as stream:
                self._count(request, stream.status)
                if stream.status != 200:
                    raise refusal(request, Response(stream.status, await stream.read(), stream.headers))
                yield _events(form, request, stream)
        except ConnectionFailed as error:
            self._count(request, 0)
            raise Unreachable(request, str(error), maybe_done=False) from error

    # Writing

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        namespace: str | None = None,
        *,
        manager: str | None = None,
        dry_run: bool = False,
        name: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """Make an object; with `name` and `subresource`, a subresource of one (an eviction, a token)."""
        form = codec(kind)
        path = form.resource.path(_place(form, namespace or _body_namespace(body)), name, subresource)
        query = _write_query(manager, dry_run)
        return await self._one(form, Request("POST", path, query, encode(form.resource, body)))

    async def apply(
        self,
        kind: Kind[T],
        body: Body,
        *,
        manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply: the fields in `body` become the manager's, those it had and left out are given up.

        A resourceVersion in `body.metadata` makes it conditional on that version.
        """
        form = codec(kind)
        path = form.resource.path(_place(form, _body_namespace(body)), _body_name(body), subresource)
        query = _write_query(manager, dry_run, force)
        return await self._one(form, Request("PATCH", path, query, encode(form.resource, body), APPLY))

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        manager: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change part of an object, if it still is the one with this uid and resourceVersion."""
        form = codec(kind)
        path = form.resource.path(_place(form, namespace), name, subresource)
        body = patch.encode(uid, resource_version)
        request = Request("PATCH", path, _write_query(manager, dry_run), body, patch.content_type)
        return await self._one(form, request)

    async def replace(
        self,
        kind: Codec[Untyped],
        body: Untyped,
        *,
        manager: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Untyped:
        """PUT a whole object, as read; its resourceVersion, if there, is a precondition."""
        path = kind.resource.path(_place(kind, _body_namespace(body)), _body_name(body), subresource)
        query = _write_query(manager, dry_run)
        return await self._one(kind, Request("PUT", path, query, encode(kind.resource, body)))

    async def delete(
        self,
        kind: Kind[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object, if it still is the one with this uid and resourceVersion."""
        resource = codec(kind).resource
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if wanted := {key: value for key, value in preconditions.items() if value}:
            options["preconditions"] = wanted
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if dry_run:
            options["dryRun"] = ["All"]  # here, not in the query: a server that finds a body does not look there
        path = resource.path(_place(codec(kind), namespace), name)
        await self._send(Request("DELETE", path, body=msgspec.json.encode(options)))

    async def close(self) -> None:
        await self.transport.close()

    # Sending

    async def _one(self, form: Codec[T], request: Request) -> T:
        response = await self._send(request)
        try:
            return form.one(response.body)
        except msgspec.DecodeError as error:
            raise NotUnderstood(request, f"the answer is no {form.resource.kind}: {error}") from error

    async def _send(self, request: Request) -> Response:
        attempt = 1
        while True:
            await self._limiter.turn(self._flow)
            try:
                return await self._send_once(request)
            except KubeError as error:
                delay = self._retry.delay(error, attempt, self._rng)
                if delay is None:
                    raise
            attempt += 1
            await asyncio.sleep(delay)

    async def _send_once(self, request: Request) -> Response:
        try:
            response = await self.transport.send(request, timeout=self._timeout)
        except ConnectionFailed as error:
            self._count(request, 0)
            raise Unreachable(request, str(error), maybe_done=error.sent) from error
        self._count(request, response.status)
        if "warning" in response.headers:
            self._warn(request, response)
        if 200 <= response.status < 300:
            return response
        raise refusal(request, response)

    def _count(self, request: Request, code: int) -> None:
        if self._on_answer is not None:
            self._on_answer(request.method, code)

    def _warn(self, request: Request, response: Response) -> None:
        """Log each warning of the server once: it repeats them with every request."""
        for text in response.warnings:
            if text not in self._warned:
                self._warned.add(text)
                log.warning("the API server warns: %s", text, extra={"request": f"{request.method} {request.path}"})


async def _events(form: Codec[T], request: Request, stream: Stream) -> WatchEvents[T]:
    async for line in stream.lines():
        try:
            event = form.event(line)
        except msgspec.DecodeError as error:
            raise NotUnderstood(request, f"a watch event that is no JSON: {error}") from error
        if isinstance(event, Status):
            raise api_error(request, event)
        yield event


def selector(wanted: Selector) -> str | None:
    """`{"app": "web"}` as the API writes it: `app=web`. Text is taken as it is."""
    if wanted is None or isinstance(wanted, str):
        return wanted
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def _given(**options: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in options.items() if value is not None)


def _write_query(manager: str | None, dry_run: bool, force: bool = False) -> tuple[tuple[str, str], ...]:
    return _given(fieldManager=manager, dryRun="All" if dry_run else None, force="true" if force else None)


def _place(form: Codec[Any], namespace: str | None) -> str | None:
    if form.resource.namespaced and not namespace:
        raise ValueError(f"{form.resource.kind} is namespaced: say in which namespace")
    return namespace


def _body_meta(body: Body, name: str) -> str | None:
    if isinstance(body, Mapping):
        value: str | None = body.get("metadata", {}).get(name)
        return value
    return getattr(getattr(body, "metadata", None), name, None)


def _body_name(body: Body) -> str:
    name = _body_meta(body, "name")
    if not name:
        raise ValueError("the object has no metadata.name")
    return name


def _body_namespace(body: Body) -> str | None:
    return _body_meta(body, "namespace")
