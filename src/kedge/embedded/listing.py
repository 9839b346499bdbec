"""Listing: a collection in pages, all as of the moment of the first.

A continue token carries that moment, and where the next page starts. When the moment is forgotten, the answer is
410 Gone with another token, which goes on as of now.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec import Struct

from kedge.embedded.kind import Kind
from kedge.embedded.options import ListOptions
from kedge.embedded.options import number as parse_number
from kedge.embedded.selectors import Wanted
from kedge.embedded.statuses import PAGES_EXPIRED, Refused, bad_request, not_there_yet, too_old
from kedge.embedded.store import Forgotten, Snapshot, Store, Untyped, Version

_AS_OF_NOW = -1


class Page(Struct, frozen=True):
    """Part of a list, or the whole of it, and what its metadata says."""

    items: tuple[Version, ...]
    metadata: Untyped


class _Token(Struct, frozen=True, rename={"number": "rv"}):
    number: int
    start: str
    v: str = "meta.k8s.io/v1"


def page(store: Store, kind: Kind, options: ListOptions) -> Page:
    """The page a list asks for."""
    number, start = _where(store, options)
    try:
        snapshot = store.all(kind).at(number)
    except Forgotten:
        raise _forgotten(options, start) from None
    limit = 0 if options.version == "0" else options.limit  # kube-apiserver serves "0" from its cache, in one piece
    return _cut(snapshot, options.wanted, number, start, limit)


def _where(store: Store, options: ListOptions) -> tuple[int, str]:
    """As of which version to list, and from which key on."""
    if options.more:
        return _continued(store, options)
    if options.version in ("", "0"):
        return store.number, ""
    asked = _list_number(options.version)
    if asked > store.number:
        raise not_there_yet(asked, store.number)
    # A page size makes an unqualified version exact, for clients older than resourceVersionMatch.
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    return (asked if exact else store.number), ""


def _continued(store: Store, options: ListOptions) -> tuple[int, str]:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    token = _read(options.more)
    return (store.number if token.number == _AS_OF_NOW else token.number), token.start


def _cut(snapshot: Snapshot, wanted: Wanted, number: int, start: str, limit: int) -> Page:
    found = _selected(snapshot, wanted, start)
    if limit <= 0:
        return Page(tuple(found), {"resourceVersion": str(number)})
    items = tuple(islice(found, limit))
    metadata: Untyped = {"resourceVersion": str(number)}
    if next(found, None) is not None:
        following = items[-1].key + "\0"
        metadata["continue"] = _write(_Token(number, following))
        if not wanted.selective:
            metadata["remainingItemCount"] = snapshot.count(wanted.prefix, following)
    return Page(items, metadata)


def _selected(snapshot: Snapshot, wanted: Wanted, start: str) -> Iterator[Version]:
    return (version for version in snapshot.within(wanted.prefix, start) if wanted.selects(version))


def _forgotten(options: ListOptions, start: str) -> Refused:
    if options.more:
        return too_old(PAGES_EXPIRED, more=_write(_Token(_AS_OF_NOW, start)))
    return too_old("The resourceVersion for the provided list is too old.")


def _list_number(text: str) -> int:
    try:
        return parse_number(text)
    except Refused as error:
        raise bad_request(f"invalid resource version: {error}") from None


def _write(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read(text: str) -> _Token:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=_Token)
    except ValueError as error:  # also what msgspec raises
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
