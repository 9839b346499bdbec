"""Listing: a collection in pages, all as of the resourceVersion of the first.

A continue token has that version and the start of the next page. When the version is too old, the answer is 410 Gone
with another token, which continues with the newest version.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec import Struct

from kedge.embedded.kind import Kind
from kedge.embedded.options import ListOptions
from kedge.embedded.options import parse_resource_version as parse_number
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import PAGES_EXPIRED, Refused, bad_request, expired, too_large_resource_version
from kedge.embedded.store import HistoryExpired, Snapshot, Store, Version
from kedge.kube.codec import Untyped

_AS_OF_NOW = -1


class Page(Struct, frozen=True):
    """A page of a list, and its metadata."""

    items: tuple[Version, ...]
    metadata: Untyped


class _Token(Struct, frozen=True, rename={"number": "rv"}):
    number: int
    start: str
    v: str = "meta.k8s.io/v1"


def list_page(store: Store, kind: Kind, options: ListOptions) -> Page:
    """The requested page."""
    number, start = _list_start(store, options)
    try:
        snapshot = store.all(kind).at(number)
    except HistoryExpired:
        raise _expired(options, start) from None
    limit = 0 if options.version == "0" else options.limit  # kube-apiserver serves "0" from its cache, in one piece
    return _cut(snapshot, options.selection, number, start, limit)


def _list_start(store: Store, options: ListOptions) -> tuple[int, str]:
    """As of which version to list, and from which key on."""
    if options.more:
        return _continued(store, options)
    if options.version in ("", "0"):
        return store.number, ""
    asked = _list_number(options.version)
    if asked > store.number:
        raise too_large_resource_version(asked, store.number)
    # A page size makes an unqualified version exact, for clients older than resourceVersionMatch.
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    return (asked if exact else store.number), ""


def _continued(store: Store, options: ListOptions) -> tuple[int, str]:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    token = _decode_token(options.more)
    return (store.number if token.number == _AS_OF_NOW else token.number), token.start


def _cut(snapshot: Snapshot, selection: Selection, number: int, start: str, limit: int) -> Page:
    found = _selected(snapshot, selection, start)
    if limit <= 0:
        return Page(tuple(found), {"resourceVersion": str(number)})
    items = tuple(islice(found, limit))
    metadata: Untyped = {"resourceVersion": str(number)}
    if next(found, None) is not None:
        following = items[-1].key + "\0"
        metadata["continue"] = _encode_token(_Token(number, following))
        if not selection.selective:
            metadata["remainingItemCount"] = snapshot.count(selection.prefix, following)
    return Page(items, metadata)


def _selected(snapshot: Snapshot, selection: Selection, start: str) -> Iterator[Version]:
    return (version for version in snapshot.within(selection.prefix, start) if selection.selects(version))


def _expired(options: ListOptions, start: str) -> Refused:
    if options.more:
        return expired(PAGES_EXPIRED, more=_encode_token(_Token(_AS_OF_NOW, start)))
    return expired("The resourceVersion for the provided list is too old.")


def _list_number(text: str) -> int:
    try:
        return parse_number(text)
    except Refused as error:
        raise bad_request(f"invalid resource version: {error}") from None


def _encode_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> _Token:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=_Token)
    except ValueError as error:  # also what msgspec raises
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
