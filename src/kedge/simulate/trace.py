"""Trace: everything that passed between processes and servers, as one digest; the last entries can be read.

Every request, answer and watch line goes into the digest, with its time and link: two runs with the same digest were
the same run. Only the last entries are kept, so a trace does not grow with the run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b

from msgspec import Struct

from kedge.kube.transport import ConnectionFailed, Request, Response

KEPT = 400


class Entry(Struct, frozen=True, gc=False):
    """One thing that happened."""

    at: float
    who: str
    number: int  # of the request it belongs to; 0 for remarks
    what: str
    body: bytes = b""

    def __str__(self) -> str:
        number = f"#{self.number}" if self.number else ""
        body = f"  [{blake2b(self.body, digest_size=4).hexdigest()}, {len(self.body)} bytes]" if self.body else ""
        return f"{self.at:12.6f}  {self.who:<24} {number:>7}  {self.what}{body}"


class Trace:
    """What happened so far. `tell` is given each entry as it happens."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, kept: int = KEPT, tell: Callable[[Entry], object] | None = None
    ) -> None:
        self.requests = 0
        self.lines = 0  # of watches
        self._time = loop.time
        self._last: deque[Entry] = deque(maxlen=kept)
        self._digest = blake2b(digest_size=16)
        self._followers = [tell] if tell is not None else []
        self._followers_of: dict[str, list[Callable[[Entry], object]]] = {}
        self._carried: dict[object, tuple[str, int]] = {}  # by task
        self._stopped_at: float | None = None

    @property
    def now(self) -> float:
        """The time of the last entry: now, or when it was stopped."""
        return self._time() if self._stopped_at is None else self._stopped_at

    def stop(self) -> None:
        """Record nothing more: what follows is only the end of the run."""
        if self._stopped_at is None:
            self._stopped_at = self._time()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def last(self) -> list[Entry]:
        """The latest entries, oldest first."""
        return list(self._last)

    def follow(self, follower: Callable[[Entry], object], *who: str) -> None:
        """Give each entry to this one, too, as it happens; or only those of the links and processes named."""
        if not who:
            self._followers.append(follower)
        for name in who:
            self._followers_of.setdefault(name, []).append(follower)

    @contextmanager
    def carrying(self, link: str, number: int) -> Iterator[None]:
        """While inside, what the current task has a server do is done for this request.

        A webhook that is asked about a request may have a server do something else meanwhile.
        """
        task = asyncio.current_task()
        before = self._carried.get(task)
        self._carried[task] = (link, number)
        try:
            yield
        finally:
            if before is None:
                del self._carried[task]
            else:
                self._carried[task] = before

    def carried(self) -> tuple[str, int] | None:
        """The link and the number of the request that is being carried out; None if a server acts by itself."""
        return self._carried.get(asyncio.current_task())

    def asked(self, link: str, request: Request) -> int:
        """A request leaves; gives its number."""
        self.requests += 1
        self._add(link, self.requests, str(request), request.body)
        return self.requests

    def answered(self, link: str, number: int, response: Response) -> None:
        after = response.headers.get("retry-after")
        self._add(link, number, f"→ {response.status}{f' (Retry-After: {after})' if after else ''}", response.body)

    def opened(self, link: str, number: int, status: int) -> None:
        """A watch was answered."""
        self._add(link, number, f"→ {status}, a stream")

    def line(self, link: str, number: int, line: bytes) -> None:
        """A line of a watch arrived."""
        self.lines += 1
        self._add(link, number, "· a line", line)

    def ended(self, link: str, number: int) -> None:
        """A watch ended in good order."""
        self._add(link, number, "· the end")

    def failed(self, link: str, number: int, error: ConnectionFailed) -> None:
        self._add(link, number, f"→ no answer{', perhaps done' if error.sent else ''}: {error}")

    def remark(self, who: str, what: str) -> None:
        """Record something else that happened, and is the same in every run of this seed."""
        self._add(who, 0, what)

    def note(self, who: str, what: str) -> None:
        """Record something to read that is not part of the digest: log messages may contain addresses."""
        if self._stopped_at is None:
            self._keep(Entry(self._time(), who, 0, what))

    def _add(self, who: str, number: int, what: str, body: bytes = b"") -> None:
        if self._stopped_at is not None:
            return
        at = self._time()
        self._digest.update(f"{at!r} {who} {number} {what} {len(body)}\n".encode())
        self._digest.update(body)
        self._keep(Entry(at, who, number, what, body))

    def _keep(self, entry: Entry) -> None:
        self._last.append(entry)
        for follower in self._followers:
            follower(entry)
        for follower in self._followers_of.get(entry.who, ()):
            follower(entry)
