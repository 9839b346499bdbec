"""Client: the verbs of one Kubernetes API, typed or untyped.

    deployment = await client.get(Deployment, "web", "shop")          # a typed object
    anything = await client.get(untyped(resource), "web", "shop")     # a dict
    await client.apply(Deployment, {"metadata": {...}, "spec": {...}}, manager="kedge-rollout")

Promises: every request keeps to the rate limit (`limits`), is retried only where that cannot do a thing twice, and
ends in an object or in a `KubeError` that says what was asked and what was answered. Typed kinds keep only part of
an object, so there is no PUT for them: apply or patch them. Whole objects (`untyped`) can be replaced.
"""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from kedge.api.meta import ObjectMeta
from kedge.kube.codec import Codec, Page, Unreadable, Untyped, codec
from kedge.kube.errors import NotFound, Vanished
from kedge.kube.limits import Limiter, Retry
from kedge.kube.patches import APPLY, MergePatch, Patch
from kedge.kube.requests import (
    Body,
    Selector,
    delete_options,
    encode,
    for_one,
    meta_in,
    name_in,
    namespace_for,
    query,
    selector,
    watch_query,
    write_query,
)
from kedge.kube.rest import RestClient, WatchEvents, read_events, read_object, read_page
from kedge.kube.transport import JSON, Request, Transport
from kedge.kube.write_observer import WriteObserver, other_uid_is_conflict, reporting_doubt

T = TypeVar("T")
Kind: TypeAlias = type[T] | Codec[T]


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
        self._rest = RestClient(transport, limiter=limiter, retry=retry, rng=rng, timeout=timeout, on_answer=on_answer)
        self._observer: WriteObserver | None = None

    @property
    def transport(self) -> Transport:
        return self._rest.transport

    def as_flow(self, flow: str) -> Client:
        """The same client, taking its turns at the rate limit under another name."""
        return self._copy(self._rest.with_options(flow=flow), self._observer)

    def without_retry(self) -> Client:
        """The same client, sending each request once: for callers that wait and try again themselves."""
        return self._copy(self._rest.with_options(retry=Retry(attempts=1)), self._observer)

    def observed_by(self, observer: WriteObserver) -> Client:
        """The same client, telling this observer of every write."""
        return self._copy(self._rest, observer)

    def _copy(self, rest: RestClient, observer: WriteObserver | None) -> Client:
        other = copy.copy(self)
        other._rest = rest
        other._observer = observer
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
        given = (("resourceVersion", resource_version),) if resource_version is not None else ()
        path = form.path(namespace_for(form.resource, namespace), name, subresource)
        request = Request("GET", path, given, accept=form.accept)
        return read_object(form, request, await self._rest.send(request))

    async def list(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        page_size: int = 500,
    ) -> Page[T]:
        """Every object, as of one resourceVersion, read in pages. `Gone` if the server has forgotten that version."""
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
        """The pages of a list, as of one resourceVersion."""
        form = codec(kind)
        base = query(labelSelector=selector(labels), fieldSelector=selector(fields), limit=str(page_size))
        more = ""
        while True:
            given = (*base, ("continue", more)) if more else base
            request = Request("GET", form.path(namespace), given, accept=form.accept_list)
            page = read_page(form, request, await self._rest.send(request))
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
        given = watch_query(labels, fields, resource_version, initial_events, seconds)
        request = Request("GET", form.path(namespace), given, accept=form.accept)
        async with self._rest.stream(request, silence) as stream:
            yield read_events(form, request, stream)

    async def document(self, path: str, *, accept: str = JSON) -> bytes:
        """The body at a path that is not an object: discovery, for example."""
        return (await self._rest.send(Request("GET", path, accept=accept))).body

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
        """Create an object; with `name` and `subresource`, a subresource of one (an eviction, a token).

        `strict` has unknown fields refused, as kubectl does.
        """
        form = codec(kind)
        place = namespace_for(form.resource, namespace or meta_in(body, "namespace"))
        path = form.path(place, name, subresource)
        request = Request("POST", path, write_query(manager, dry_run, strict=strict), encode(form.resource, body))
        if subresource is not None:
            return read_object(form, request, await self._rest.send(request))
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
        """Server-side apply: the manager owns the fields in `body`, and gives up those it leaves out.

        Creates the object if there is none, also if a resource_version is given; a uid keeps it from recreating a
        deleted object. Give both if the decision was made on an existing object.
        """
        form = codec(kind)
        body = for_one(body, uid, resource_version)
        name, place = name_in(body), namespace_for(form.resource, meta_in(body, "namespace"))
        path, given = form.path(place, name, subresource), write_query(manager, dry_run, force)
        request = Request("PATCH", path, given, encode(form.resource, body), APPLY)
        with other_uid_is_conflict(uid):
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
        path = form.path(namespace_for(form.resource, namespace), name, subresource)
        body = patch.encode(uid, resource_version)
        request = Request("PATCH", path, write_query(manager, dry_run), body, patch.content_type)
        with other_uid_is_conflict(uid):
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
        """Merge a change into an object, if it still has the resourceVersion that was seen. Else it is a Conflict."""
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
                raise  # the kind is missing, not the object
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
        name, place = name_in(body), namespace_for(kind.resource, meta_in(body, "namespace"))
        path = kind.path(place, name, subresource)
        request = Request("PUT", path, write_query(manager, dry_run, strict=strict), encode(kind.resource, body))
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
        path = form.path(namespace_for(form.resource, namespace), name)
        body = delete_options(uid, resource_version, propagation, grace_seconds, dry_run)
        request = Request("DELETE", path, body=body)
        if self._observer is None or dry_run:
            await self._rest.send(request)
            return
        with reporting_doubt(self._observer, form, name, namespace):
            await self._rest.send(request)
        self._observer.removed(form, name, namespace, uid)

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
        await self._rest.transport.close()

    # Sending

    async def _write(self, form: Codec[T], request: Request, name: str, namespace: str | None, dry_run: bool) -> T:
        """Send a write, and tell the observer of it, also if nobody knows whether it was done."""
        if self._observer is None or dry_run:
            return read_object(form, request, await self._rest.send(request))
        with reporting_doubt(self._observer, form, name, namespace):
            written = read_object(form, request, await self._rest.send(request))
        self._observer.wrote(form, form.meta(written))
        return written
