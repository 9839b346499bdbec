"""Answers: reads what a server answered, as one object, as a page of a list, or as the events of a watch.

An answer that is not what the API promises is raised as `NotUnderstood`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias, TypeVar

from kedge.kube.codec import DECODE_ERRORS, Bookmark, Codec, Event, Page, Unreadable
from kedge.kube.errors import NotUnderstood, Status, api_error
from kedge.kube.transport import Request, Response, Stream

T = TypeVar("T")
WatchEvents: TypeAlias = AsyncIterator[Event[T] | Event[Unreadable] | Bookmark]


def read_object(form: Codec[T], request: Request, response: Response) -> T:
    try:
        return form.one(response.body)
    except DECODE_ERRORS as error:
        raise NotUnderstood(request, f"the answer is no {form.resource.kind}: {error}") from error


def read_page(form: Codec[T], request: Request, response: Response) -> Page[T]:
    try:
        return form.page(response.body)
    except DECODE_ERRORS as error:
        raise NotUnderstood(request, f"the answer is no list of {form.resource.kind}: {error}") from error


async def read_events(form: Codec[T], request: Request, stream: Stream) -> WatchEvents[T]:
    """The events of a watch, as they arrive. The error with which a server ends a watch is raised."""
    async for line in stream.lines():
        try:
            event = form.event(line)
        except DECODE_ERRORS as error:
            raise NotUnderstood(request, f"a watch event that is no JSON: {error}") from error
        if isinstance(event, Status):
            raise api_error(request, event)
        yield event
