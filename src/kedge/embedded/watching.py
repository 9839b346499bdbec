"""Watching: the changes of a collection as lines, for one reader.

A `Watch` says what it has to say to a `Sink`, within the write that caused it; when and how that reaches a reader is
the sink's business, and so is time: bookmarks and the end of the watch are for the sink to ask for.

    watch = server.watch(request)        # or a Response, if it was refused
    for line in watch.open(sink): ...    # what comes first; from here on the sink is told of changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from kedge.embedded import forms
from kedge.embedded.forms import View
from kedge.embedded.kind import Kind
from kedge.embedded.options import ListOptions
from kedge.embedded.options import number as parse_number
from kedge.embedded.selectors import Wanted
from kedge.embedded.statuses import Refused, not_there_yet, too_old
from kedge.embedded.store import Change, Forgotten, Lines, Store, Version, version_of
from kedge.kube.codec import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED


class Sink(Protocol):
    """Where the lines of a watch go."""

    def push(self, line: bytes) -> None:
        """One more line."""
        ...

    def cut(self, why: str) -> None:
        """The connection is lost, with all that was under way."""
        ...


class Begin(Struct, frozen=True):
    """Where a watch begins: with everything there is, or with the changes after a version."""

    everything: bool
    after: int
    mark_end: bool = False  # of everything, with a bookmark


class Watch:
    """One watch. It hears of changes from `open` to `close`."""

    def __init__(
        self, store: Store, view: View, asked: ListOptions, *, seconds: float, opened: dict[Watch, None]
    ) -> None:
        """`opened` is where it stands while it is open, for the server to find it."""
        self.seconds = seconds
        self.bookmarks = asked.bookmarks
        self._store = store
        self._kind = view.kind
        self._view = view
        self._wanted = asked.wanted
        self._begin = _begin(asked, store.number)
        self._opened = opened
        self._sink: Sink | None = None
        self._stop: Callable[[], None] = _nothing
        self._last_bookmark = (-1, b"")

    def open(self, sink: Sink) -> Iterator[bytes]:
        """Tell the sink of changes from now on; gives the lines that come before them.

        If it cannot begin where it was to, the last of these lines is the error, and there will be no others.
        """
        try:
            first = self._first_lines()
        except Refused as refused:
            return iter((forms.event(ERROR, refused.body()),))
        self._sink = sink
        self._opened[self] = None
        self._stop = self._store.all(self._kind).follow(self._see, self._wanted.namespace)
        return first

    @property
    def is_open(self) -> bool:
        return self._sink is not None

    def close(self) -> None:
        """Hear no more."""
        self._stop()
        self._stop = _nothing
        self._sink = None
        self._opened.pop(self, None)

    def cut(self, why: str) -> None:
        """Lose the connection."""
        sink = self._sink
        self.close()
        if sink is not None:
            sink.cut(why)

    def bookmark(self, *, initial_events_end: bool = False) -> bytes:
        """A line that says how far the server has got."""
        number = max(self._store.number, self._begin.after)  # never back, when it begins in the future
        if initial_events_end:
            return forms.event(BOOKMARK, self._view.bookmark(number, initial_events_end=True))
        if self._last_bookmark[0] != number:
            self._last_bookmark = (number, forms.event(BOOKMARK, self._view.bookmark(number)))
        return self._last_bookmark[1]

    def _first_lines(self) -> Iterator[bytes]:
        """What there is, or what was missed. Lines are made as they are read: all at once they could be very many."""
        if not self._begin.everything:
            return self._told(self._missed())
        if self._begin.after > self._store.number:
            raise not_there_yet(self._begin.after, self._store.number)
        now = self._store.all(self._kind).at(self._store.number).within(self._wanted.prefix)
        end = self.bookmark(initial_events_end=True) if self._begin.mark_end else None
        return self._listed(tuple(filter(self._wanted.selects, now)), end)

    def _listed(self, versions: tuple[Version, ...], end: bytes | None) -> Iterator[bytes]:
        for index, version in enumerate(versions):
            yield self._view.event(ADDED, version, first=index == 0)
        if end is not None:
            yield end

    def _missed(self) -> list[Change]:
        try:
            return self._store.all(self._kind).since(self._begin.after)
        except Forgotten as forgotten:
            raise too_old(f"too old resource version: {self._begin.after} ({forgotten.oldest})") from None

    def _told(self, changes: list[Change]) -> Iterator[bytes]:
        return (line for change in changes if (line := self._line(change, {})) is not None)

    def _see(self, change: Change, lines: Lines) -> None:
        # A watch that begins in the future is not told of what comes before.
        if self._sink is None or change.version.number <= self._begin.after:
            return
        if (line := self._line(change, lines)) is not None:
            self._sink.push(line)

    def _line(self, change: Change, lines: Lines) -> bytes | None:
        seen = as_seen(change, self._wanted)
        if seen is None:
            return None
        key = (seen, self._view.key)
        if key not in lines:
            version = left(self._kind, change) if seen == DELETED != change.type else change.version
            lines[key] = self._view.event(seen, version)
        return lines[key]


def as_seen(change: Change, wanted: Wanted) -> str | None:
    """What the change is to someone who wants only this: what leaves looks deleted, what enters looks new."""
    before = change.previous is not None and wanted.matches(change.previous)
    after = change.type != DELETED and wanted.matches(change.version)
    if after:
        return MODIFIED if before else ADDED
    return DELETED if before else None


def left(kind: Kind, change: Change) -> Version:
    """What those are shown that an object has left: how it last was, under the number of the change."""
    assert change.previous is not None, "only what was there can leave"
    obj = change.previous.decode()
    obj["metadata"]["resourceVersion"] = str(change.version.number)
    return version_of(kind, change.version.key, change.version.number, obj, change.previous.owners)


def _begin(asked: ListOptions, newest: int) -> Begin:
    after = parse_number(asked.version) if asked.version else 0
    if asked.initial_events:
        return Begin(everything=True, after=after, mark_end=asked.bookmarks)
    if asked.initial_events is None and after == 0:
        return Begin(everything=True, after=0)
    return Begin(everything=False, after=after or newest)


def _nothing() -> None:
    return None
