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
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol, TypeAlias, TypeVar

from kedge.api.meta import ObjectMeta
from kedge.kube.bodies import Body, delete_options, encode, for_one, meta_in, name_in
from kedge.kube.codec import NOT_READ, Bookmark, Codec, Event, Page, Unreadable, Untyped, codec
from kedge.kube.errors import (
    Invalid,
    NotFound,
    NotUnderstood,
    ServerError,
    Status,
    Unreachable,
    Vanished,
    api_error,
    overtaken,
)
from kedge.kube.limits import Limiter, Retry
from kedge.kube.patches import APPLY, MergePatch, Patch
from kedge.kube.sender import Sender
from kedge.kube.transport import JSON, Request, Response, Stream, Transport

T = TypeVar("T")
Kind: TypeAlias = type[T] | Codec[T]
Selector: TypeAlias = str | Mapping[str, str] | None
WatchEvents: TypeAlias = AsyncIterator[Event[T] | Event[Unreadable] | Bookmark]


class Witness(Protocol):
    """Is told what a client wrote, so that nobody decides on what was there before."""

    def wrote(self, form: Codec[Any], meta: ObjectMeta) -> None:
        """The server answered a write with this."""
        ...

    def removed(self, form: Codec[Any], name: str, namespace: str | None, uid: str | None) -> None:
        """The server took a delete of this object; without a uid, of whatever had the name."""
        ...

    def in_doubt(self, form: Codec[Any], name: str, namespace: str | None) -> None:
        """A write of this object may have happened: there was no answer that says."""
        ...


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
        on_answer: Callable[[str, int], None] | None = None,
    ) -> None:
        """`timeout` bounds each request; `on_answer` is told method and code of every answer (0: none came)."""
        self._sender = Sender(transport, limiter=limiter, retry=retry, rng=rng, timeout=timeout, on_answer=on_answer)
        self._witness: Witness | None = None

    @property
    def transport(self) -> Transport:
        return self._sender.transport

    def as_flow(self, flow: str) -> Client:
        """The same client, waiting for its turns under another name."""
        return self._but(self._sender.but(flow=flow), self._witness)

    def without_retry(self) -> Client:
        """The same client, sending each request once: for callers that wait and try again themselves."""
        return self._but(self._sender.but(retry=Retry(attempts=1)), self._witness)

    def witnessed(self, witness: Witness) -> Client:
        """The same client, telling this witness of every write."""
        return self._but(self._sender, witness)

    def _but(self, sender: Sender, witness: Witness | None) -> Client:
        other = copy.copy(self)
        other._sender = sender
        other._witness = witness
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
        query = (("resourceVersion", resource_version),) if resource_version is not None else ()
        path = form.path(_place(form, namespace), name, subresource)
        request = Request("GET", path, query, accept=form.accept)
        return _one(form, request, await self._sender.send(request))

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
            request = Request("GET", form.path(namespace), query, accept=form.accept_list)
            page = await self._page(form, request)
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
        request = Request("GET", form.path(namespace), query, accept=form.accept)
        async with self._sender.stream(request, silence) as stream:
            yield _events(form, request, stream)

    async def document(self, path: str, *, accept: str = JSON) -> bytes:
        """What the server says at this path, where that is no object: discovery, say."""
        return (await self._sender.send(Request("GET", path, accept=accept))).body

    # Writing

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        namespace: str | None = None,
        *,
        manager: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
        name: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """Make an object; with `name` and `subresource`, a subresource of one (an eviction, a token).

        `strict` has it refused for fields that are not known, as kubectl does.
        """
        form = codec(kind)
        place = _place(form, namespace or meta_in(body, "namespace"))
        path = form.path(place, name, subresource)
        request = Request("POST", path, _write_query(manager, dry_run, strict=strict), encode(form.resource, body))
        if subresource is not None:
            return _one(form, request, await self._sender.send(request))
        return await self._write(form, request, meta_in(body, "name") or "", place, dry_run)

    async def apply(
        self,
        kind: Kind[T],
        body: Body,
        *,
        manager: str,
        uid: str | None = None,
        resource_version: str | None = None,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply: the fields in `body` become the manager's, those it had and left out are given up.

        Makes the object if there is none, also when a resource_version is given; a uid keeps it from bringing back
        what was deleted. Give both if what is applied was decided on an object that was there.
        """
        form = codec(kind)
        body = for_one(body, uid, resource_version)
        name, place = name_in(body), _place(form, meta_in(body, "namespace"))
        path, query = form.path(place, name, subresource), _write_query(manager, dry_run, force)
        request = Request("PATCH", path, query, encode(form.resource, body), APPLY)
        with _meaning(uid):
            return await self._write(form, request, name, place, dry_run)

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
        path = form.path(_place(form, namespace), name, subresource)
        body = patch.encode(uid, resource_version)
        request = Request("PATCH", path, _write_query(manager, dry_run), body, patch.content_type)
        with _meaning(uid):
            return await self._write(form, request, name, namespace, dry_run)

    async def amend(
        self,
        kind: Kind[T],
        seen: ObjectMeta,
        change: Mapping[str, Any],
        *,
        manager: str | None = None,
        subresource: str | None = None,
    ) -> T:
        """Merge a change into an object, if it still is in the very version that was seen: a Conflict if it is not."""
        try:
            return await self.patch(
                kind,
                seen.name,
                MergePatch(change),
                seen.namespace,
                uid=seen.uid,
                resource_version=seen.resource_version,
                manager=manager,
                subresource=subresource,
            )
        except NotFound as error:
            if error.status.details is None or error.status.details.name != seen.name:
                raise  # it is the kind that is not there
            raise Vanished(error.request, error.status) from error

    async def replace(
        self,
        kind: Codec[Untyped],
        body: Untyped,
        *,
        manager: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Untyped:
        """PUT a whole object, as read; its resourceVersion, if there, is a precondition. `strict`: as in `create`."""
        name, place = name_in(body), _place(kind, meta_in(body, "namespace"))
        path = kind.path(place, name, subresource)
        request = Request("PUT", path, _write_query(manager, dry_run, strict=strict), encode(kind.resource, body))
        return await self._write(kind, request, name, place, dry_run)

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
        form = codec(kind)
        path = form.path(_place(form, namespace), name)
        body = delete_options(uid, resource_version, propagation, grace_seconds, dry_run)
        request = Request("DELETE", path, body=body)
        if self._witness is None or dry_run:
            await self._sender.send(request)
            return
        with self._doubting(self._witness, form, name, namespace):
            await self._sender.send(request)
        self._witness.removed(form, name, namespace, uid)

    async def remove(self, kind: Kind[T], seen: ObjectMeta, *, propagation: str | None = None) -> None:
        """Delete an object in the very version that was seen: a Conflict if it changed, nothing if it is gone."""
        with suppress(NotFound):
            await self.delete(
                kind,
                seen.name,
                seen.namespace,
                uid=seen.uid,
                resource_version=seen.resource_version,
                propagation=propagation,
            )

    async def close(self) -> None:
        await self._sender.transport.close()

    # Sending

    async def _page(self, form: Codec[T], request: Request) -> Page[T]:
        response = await self._sender.send(request)
        try:
            return form.page(response.body)
        except NOT_READ as error:
            raise NotUnderstood(request, f"the answer is no list of {form.resource.kind}: {error}") from error

    async def _write(self, form: Codec[T], request: Request, name: str, namespace: str | None, dry_run: bool) -> T:
        """Send a write, and have it witnessed: also one of which nobody knows whether it was done."""
        if self._witness is None or dry_run:
            return _one(form, request, await self._sender.send(request))
        with self._doubting(self._witness, form, name, namespace):
            written = _one(form, request, await self._sender.send(request))
        self._witness.wrote(form, form.meta(written))
        return written

    @contextmanager
    def _doubting(self, witness: Witness, form: Codec[Any], name: str, namespace: str | None) -> Iterator[None]:
        """When no answer comes, or one that leaves it open, the write may have happened."""
        try:
            yield
        except (Unreachable, ServerError, NotUnderstood, asyncio.CancelledError) as error:
            sent = not isinstance(error, Unreachable) or error.maybe_done
            if sent and name:
                witness.in_doubt(form, name, namespace)
            raise


def _one(form: Codec[T], request: Request, response: Response) -> T:
    try:
        return form.one(response.body)
    except NOT_READ as error:
        raise NotUnderstood(request, f"the answer is no {form.resource.kind}: {error}") from error


async def _events(form: Codec[T], request: Request, stream: Stream) -> WatchEvents[T]:
    async for line in stream.lines():
        try:
            event = form.event(line)
        except NOT_READ as error:
            raise NotUnderstood(request, f"a watch event that is no JSON: {error}") from error
        if isinstance(event, Status):
            raise api_error(request, event)
        yield event


@contextmanager
def _meaning(uid: str | None) -> Iterator[None]:
    """An object with another uid than was asked for is a conflict; the server calls it invalid, the uid being fixed."""
    try:
        yield
    except Invalid as error:
        if uid and any(cause.field == "metadata.uid" for cause in error.causes):
            raise overtaken(error) from error
        raise


def selector(wanted: Selector) -> str | None:
    """`{"app": "web"}` as the API writes it: `app=web`. Text is taken as it is."""
    if wanted is None or isinstance(wanted, str):
        return wanted
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def _given(**options: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in options.items() if value is not None)


def _write_query(
    manager: str | None, dry_run: bool, force: bool = False, strict: bool = False
) -> tuple[tuple[str, str], ...]:
    return _given(
        fieldManager=manager,
        dryRun="All" if dry_run else None,
        force="true" if force else None,
        fieldValidation="Strict" if strict else None,
    )


def _place(form: Codec[Any], namespace: str | None) -> str | None:
    if form.resource.namespaced and not namespace:
        raise ValueError(f"{form.resource.kind} is namespaced: say in which namespace")
    return namespace
