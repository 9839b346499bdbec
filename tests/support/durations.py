"""Where the time of a test run goes: by folder and by what a test runs on, printed at its end and kept in a file.

Wall time and processor time, so that waiting shows. Processor time is that of the test's own process and of those it
started and saw the end of; servers that outlive a test are not in it.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

KINDS = ("unit", "virtual time", "embedded", "replayed", "real")
"""What a test runs on: nothing but itself; a loop whose time jumps; servers of ours in real time; what was recorded of
Kubernetes; Kubernetes."""

_VIRTUAL = re.compile(r"^(from|import) (support\.virtual|kedge\.simulate|simulate\.)", re.MULTILINE)
_SERVED = re.compile(
    r"^(from kedge\.(embedded\.(server|inprocess|cluster)|fleet)|from contract\.backend|import subprocess)\b",
    re.MULTILINE,
)
_SLOWEST = 15
_CPU = pytest.StashKey[float]()


class Spent(Struct):
    """What one test took."""

    id: str
    kind: str
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def folder(self) -> str:
        return self.id.split("::")[0].removeprefix("tests/").rpartition("/")[0].partition("/")[0] or "."


class Durations:
    """A pytest plug-in: measures where tests run, and collects where the run is reported."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._spent: dict[str, Spent] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        item.stash[_CPU] = _cpu()
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report = yield
        now = _cpu()
        report.cpu, item.stash[_CPU] = now - item.stash[_CPU], now
        report.kind = kind_of(item)
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        spent = self._spent.setdefault(report.nodeid, Spent(report.nodeid, report.kind))
        spent.seconds += report.duration
        spent.cpu += report.cpu

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._spent or hasattr(terminalreporter.config, "workerinput"):
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(msgspec.json.encode(list(self._spent.values())))
        terminalreporter.section("where the time went")
        for line in table(self._spent.values()):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"every test: {self._file}")


def kind_of(item: pytest.Item) -> str:
    """What a test runs on, by its marks and by what its module imports."""
    if item.get_closest_marker("real") is not None:
        return "real"
    if item.get_closest_marker("recorded") is not None:
        return "replayed"
    virtual, served = _imports(item.path)
    if virtual and not inspect.iscoroutinefunction(getattr(item, "function", None)):
        return "virtual time"
    return "embedded" if served else "unit"


@cache
def _imports(file: Path) -> tuple[bool, bool]:
    text = file.read_text()
    return bool(_VIRTUAL.search(text)), bool(_SERVED.search(text))


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def table(spent: Iterable[Spent]) -> Iterator[str]:
    """Tests, seconds and seconds of processor by folder and kind, the longest folder first; then the longest tests."""
    every = list(spent)
    by: Mapping[str, list[Spent]] = defaultdict(list)
    for one in every:
        by[one.folder].append(one)
    yield f"{'folder':<14}{'runs on':<14}{'tests':>7}{'wall s':>9}{'cpu s':>9}"
    for folder, those in sorted(by.items(), key=lambda item: -_seconds(item[1])):
        for kind in KINDS:
            yield from _line(folder, kind, [one for one in those if one.kind == kind])
    for kind in KINDS:
        yield from _line("all", kind, [one for one in every if one.kind == kind])
    yield from _line("all", "", every)
    yield f"the {_SLOWEST} longest:"
    for one in sorted(every, key=lambda one: -one.seconds)[:_SLOWEST]:
        yield f"{one.seconds:>9.1f}  {one.id}"


def _line(folder: str, kind: str, those: list[Spent]) -> Iterator[str]:
    if those:
        cpu = sum(one.cpu for one in those)
        yield f"{folder:<14}{kind:<14}{len(those):>7}{_seconds(those):>9.1f}{cpu:>9.1f}"


def _seconds(those: Iterable[Spent]) -> float:
    return sum(one.seconds for one in those)
