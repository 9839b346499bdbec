"""Write observer: is told what a client wrote, so that nobody decides on what was there before.

A write that got no clear answer may have happened or not. That is reported too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from kedge.api.meta import ObjectMeta
from kedge.kube.codec import Codec
from kedge.kube.errors import Invalid, NotUnderstood, ServerError, Unreachable, as_conflict


class WriteObserver(Protocol):
    """Is told of the writes of a client."""

    def wrote(self, form: Codec[Any], meta: ObjectMeta) -> None:
        """The server answered a write with this."""
        ...

    def removed(self, form: Codec[Any], name: str, namespace: str | None, uid: str | None) -> None:
        """The server accepted a delete of this object; without a uid, of any object with the name."""
        ...

    def in_doubt(self, form: Codec[Any], name: str, namespace: str | None) -> None:
        """A write of this object may have happened: no answer says."""
        ...


@contextmanager
def reporting_doubt(observer: WriteObserver, form: Codec[Any], name: str, namespace: str | None) -> Iterator[None]:
    """Report a write as in doubt if it may have happened: it got no answer, or one that leaves it open."""
    try:
        yield
    except (Unreachable, ServerError, NotUnderstood, asyncio.CancelledError) as error:
        sent = not isinstance(error, Unreachable) or error.maybe_done
        if sent and name:
            observer.in_doubt(form, name, namespace)
        raise


@contextmanager
def other_uid_is_conflict(uid: str | None) -> Iterator[None]:
    """Raise a Conflict if the object has another uid than asked for. The server calls that invalid: uids are fixed."""
    try:
        yield
    except Invalid as error:
        if uid and any(cause.field == "metadata.uid" for cause in error.causes):
            raise as_conflict(error) from error
        raise
