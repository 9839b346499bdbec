"""Rows: what the tests of one module said to a real server, each under its name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.recording import tables
from support.recording.exchange import Exchange
from support.recording.tape import ANEW, Differs, Recording, Replay, compare

_NO_ROW = ""


class Rows:
    """The rows of a module while its tests run."""

    def __init__(
        self, module: Path, *, is_live: bool, writes: bool = False, known: Collection[str] | None = None
    ) -> None:
        """`known`: all rows there are to be, if that is known; others are left out when it is written."""
        self.module = module
        self.is_live = is_live
        self.writes = writes
        self._known = known
        self.current = _NO_ROW
        self._recorded = tables.read(module)
        self._tapes: dict[str, Recording | Replay] = {}

    def begin(self, name: str) -> None:
        """What is said from now on belongs to this row."""
        self.current = name
        self._tapes[name] = Recording() if self.is_live else Replay(self._recorded.get(name, ()))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is said within prepares a live server for all rows, and belongs to none."""
        before, self.current = self.current, _NO_ROW
        self._tapes[_NO_ROW] = Recording() if self.is_live else Replay(())
        yield
        del self._tapes[_NO_ROW]
        self.current = before

    @property
    def recording(self) -> Recording:
        tape = self._tapes[self.current]
        assert isinstance(tape, Recording)
        return tape

    @property
    def replay(self) -> Replay:
        tape = self._tapes[self.current]
        assert isinstance(tape, Replay)
        return tape

    def check(self, name: str) -> None:
        """Fail if a row that has been played is not what was recorded."""
        tape = self._tapes.get(name)
        if self._known is not None and not self.writes and (others := self._recorded.keys() - self._known):
            raise Differs(f"{tables.file_of(self.module).name} has a row that no test has, {min(others)}; {ANEW}")
        if isinstance(tape, Replay):
            tape.check()
        elif tape is not None and name in self._recorded and not self.writes:
            compare(self._recorded[name], tape.exchanges())

    def write(self) -> None:
        """Write down what was taken down; in the words of last time where only what differs every time differs."""
        taken = {name: tape.exchanges() for name, tape in self._tapes.items() if isinstance(tape, Recording)}
        if not taken:  # another process has them
            return
        rows = {**self._recorded, **{name: self._kept(name, now) for name, now in taken.items()}}
        tables.write(
            self.module, {name: row for name, row in rows.items() if self._known is None or name in self._known}
        )

    def _kept(self, name: str, now: Sequence[Exchange]) -> Sequence[Exchange]:
        try:
            compare(self._recorded[name], now)
        except (KeyError, AssertionError):
            return now
        return self._recorded[name]
