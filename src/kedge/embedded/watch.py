"""Watch: the changes of a collection as lines of a response, for one reader.

A `Watch` gives its lines to a `WatchSink`, within the write that caused them. The sink decides when and how they reach
a reader, and asks for bookmarks and for the end of the watch.

    watch = server.watch(request)        # or a Response, if it was refused
    for line in watch.open(sink): ...    # the first lines; from here on the sink gets the changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from kedge.embedded import representation
from kedge.embedded.kind import Kind
from kedge.embedded.options import ListOptions
from kedge.embedded.options import parse_resource_version as parse_number
from kedge.embedded.representation import Representation
from kedge.embedded.selectors import Selection
from kedge.embedded.statuses import Refused, expired, too_large_resource_version
from kedge.embedded.store import Change, EncodedEvents, HistoryExpired, Store, Version, version_of
from kedge.kube.codec import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED


class WatchSink(Protocol):
    """Where the lines of a watch go."""

    def push(self, line: bytes) -> None:
        """One more line."""
        ...

    def cut(self, why: str) -> None:
        """The connection is lost, with all that was under way."""
        ...


class WatchStart(Struct, frozen=True):
    """Where a watch starts: with all objects, or with the changes after a version."""

    everything: bool
    after: int
    mark_end: bool = False  # a bookmark after the initial objects


class Watch:
    """One watch. It gets changes from `open` to `close`."""

    def __init__(
        self, store: Store, view: Representation, asked: ListOptions, *, seconds: float, opened: dict[Watch, None]
    ) -> None:
        """`opened` has it while it is open, for the server to find it."""
        self.seconds = seconds
        self.bookmarks = asked.bookmarks
        self._store = store
        self._kind = view.kind
        self._view = view
        self._selection = asked.selection
        self._start = _start_of(asked, store.number)
        self._opened = opened
        self._sink: WatchSink | None = None
        self._stop: Callable[[], None] = _nothing
        self._last_bookmark = (-1, b"")

    def open(self, sink: WatchSink) -> Iterator[bytes]:
        """Send changes to the sink from now on; gives the lines that come before them.

        If it cannot start at the requested version, the only line is the error.
        """
        try:
            first = self._first_lines()
        except Refused as refused:
            return iter((representation.watch_event(ERROR, refused.body()),))
        self._sink = sink
        self._opened[self] = None
        self._stop = self._store.all(self._kind).subscribe(self._on_change, self._selection.namespace)
        return first

    @property
    def is_open(self) -> bool:
        return self._sink is not None

    def close(self) -> None:
        """Get no more changes."""
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
        """A bookmark line with the newest resourceVersion."""
        number = max(self._store.number, self._start.after)  # never before its start, which may be in the future
        if initial_events_end:
            return representation.watch_event(BOOKMARK, self._view.encode_bookmark(number, initial_events_end=True))
        if self._last_bookmark[0] != number:
            self._last_bookmark = (number, representation.watch_event(BOOKMARK, self._view.encode_bookmark(number)))
        return self._last_bookmark[1]

    def _first_lines(self) -> Iterator[bytes]:
        """All objects, or the missed changes. Lines are made as they are read: there can be very many."""
        if not self._start.everything:
            return self._lines_of(self._missed())
        if self._start.after > self._store.number:
            raise too_large_resource_version(self._start.after, self._store.number)
        now = self._store.all(self._kind).at(self._store.number).within(self._selection.prefix)
        end = self.bookmark(initial_events_end=True) if self._start.mark_end else None
        return self._listed(tuple(filter(self._selection.selects, now)), end)

    def _listed(self, versions: tuple[Version, ...], end: bytes | None) -> Iterator[bytes]:
        for index, version in enumerate(versions):
            yield self._view.encode_event(ADDED, version, first=index == 0)
        if end is not None:
            yield end

    def _missed(self) -> list[Change]:
        try:
            return self._store.all(self._kind).since(self._start.after)
        except HistoryExpired as forgotten:
            raise expired(f"too old resource version: {self._start.after} ({forgotten.oldest})") from None

    def _lines_of(self, changes: list[Change]) -> Iterator[bytes]:
        return (line for change in changes if (line := self._line(change, {})) is not None)

    def _on_change(self, change: Change, lines: EncodedEvents) -> None:
        # A watch that starts in the future skips earlier changes.
        if self._sink is None or change.version.number <= self._start.after:
            return
        if (line := self._line(change, lines)) is not None:
            self._sink.push(line)

    def _line(self, change: Change, lines: EncodedEvents) -> bytes | None:
        event_type = event_type_for(change, self._selection)
        if event_type is None:
            return None
        key = (event_type, self._view.key)
        if key not in lines:
            version = (
                last_selected_version(self._kind, change) if event_type == DELETED != change.type else change.version
            )
            lines[key] = self._view.encode_event(event_type, version)
        return lines[key]


def event_type_for(change: Change, selection: Selection) -> str | None:
    """The event type for a reader with this selection: leaving it is DELETED, entering it is ADDED."""
    before = change.previous is not None and selection.matches(change.previous)
    after = change.type != DELETED and selection.matches(change.version)
    if after:
        return MODIFIED if before else ADDED
    return DELETED if before else None


def last_selected_version(kind: Kind, change: Change) -> Version:
    """The last state of an object that left a selection, with the resourceVersion of the change."""
    assert change.previous is not None, "only what was there can leave"
    obj = change.previous.decode()
    obj["metadata"]["resourceVersion"] = str(change.version.number)
    return version_of(kind, change.version.key, change.version.number, obj, change.previous.owners)


def _start_of(asked: ListOptions, newest: int) -> WatchStart:
    after = parse_number(asked.version) if asked.version else 0
    if asked.initial_events:
        return WatchStart(everything=True, after=after, mark_end=asked.bookmarks)
    if asked.initial_events is None and after == 0:
        return WatchStart(everything=True, after=0)
    return WatchStart(everything=False, after=after or newest)


def _nothing() -> None:
    return None
