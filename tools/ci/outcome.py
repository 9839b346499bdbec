"""Outcome: a pytest plug-in that writes down what became of each test.

    pytest -p ci.outcome --outcome-file=FILE

Promises to write the file when pytest ends, last of all, and only then: no file, no end. Marks and what was deselected
are known where tests run, so with several processes (xdist) the workers hand them on; the process that reports writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ci import record
from ci.record import Outcome, Result, Run

_DESELECTED = pytest.StashKey[dict[str, bool]]()
"""Tests that were deselected, and whether they may be."""
_HANDED_ON = "ci_deselected"
_IN_EVERY_RUN = {"core", "recorded"}
_WORST_FIRST: Sequence[Outcome] = ("failed", "skipped", "passed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcome-file", help="where to write what became of each test")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_DESELECTED] = {}
    file = config.getoption("--outcome-file")
    if file is not None and not _is_worker(config):
        config.pluginmanager.register(Recorder(config, Path(file).absolute()), "outcome-recorder")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around all who choose, also those who do not say so
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    before = list(items)
    result = yield
    kept = {item.nodeid for item in items}
    deselected = {item.nodeid: _may_be_left_out(item) for item in before if item.nodeid not in kept}
    config.stash[_DESELECTED] = deselected
    if _is_worker(config):
        config.workeroutput[_HANDED_ON] = deselected  # type: ignore[attr-defined]  # xdist adds it
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    report.real = "real" in _marks(item)
    return report  # type: ignore[no-any-return]  # a wrapper gives back what it was given


class Recorder:
    """Collects, in the process that reports the run."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._config = config
        self._file = file
        self._process = os.getpid()
        self._ended: pytest.Session | None = None
        self._collected: dict[str, None] = {}
        self._deselected: dict[str, bool] = {}
        self._broken: list[str] = []
        self._results: dict[str, Result] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._collect(ids)

    def _collect(self, ids: Iterable[str]) -> None:
        self._collected.update(dict.fromkeys(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._broken.append(f"{report.nodeid} could not be collected")
        elif report.skipped:  # how many tests it has, and which, nobody knows
            self._broken.append(f"{report.nodeid} skips itself as a whole: {_reason(report)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            self._broken.append(f"worker {node.gateway.id} crashed: {error}")
        self._deselected.update(getattr(node, "workeroutput", {}).get(_HANDED_ON, {}))

    def pytest_internalerror(self, excrepr: object) -> None:
        self._broken.append(f"pytest itself failed: {str(excrepr).strip().splitlines()[-1]}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or not report.passed:
            result = Result(report.nodeid, _outcome(report), getattr(report, "real", False), _reason(report))
            self._results[report.nodeid] = _worse(result, self._results.get(report.nodeid, result))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._ended = session

    def pytest_unconfigure(self) -> None:
        if self._ended is not None and os.getpid() == self._process:  # a test may have forked
            record.write(self._run(self._ended), self._file)

    def _run(self, session: pytest.Session) -> Run:
        deselected = self._config.stash[_DESELECTED] | self._deselected
        return Run(
            exit_status=int(session.exitstatus),
            seed=_seed(self._config),
            collected=tuple(self._collected),
            deselected=tuple(test for test, may_be in deselected.items() if not may_be),
            left_out=tuple(test for test, may_be in deselected.items() if may_be),
            broken=tuple(dict.fromkeys(self._broken)),
            results=tuple(self._results.values()),
        )


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def _may_be_left_out(item: pytest.Item) -> bool:
    """Whether `make test` may leave a test to `make test-real` or `make soak`."""
    marks = _marks(item)
    return "slow" in marks or ("real" in marks and not marks & _IN_EVERY_RUN)


def _seed(config: pytest.Config) -> int | None:
    seed = config.getoption("randomly_seed", None)  # pytest-randomly's, if it is there
    return seed if isinstance(seed, int) else None


def _outcome(report: Any) -> Outcome:
    if report.skipped:
        return "skipped"
    return "passed" if report.passed else "failed"


def _worse(one: Result, other: Result) -> Result:
    return min(other, one, key=lambda result: _WORST_FIRST.index(result.outcome))


def _reason(report: Any) -> str:
    """Why a test was skipped, or was expected to fail; nothing if nobody said."""
    if not report.skipped:
        return ""
    if hasattr(report, "wasxfail"):
        expected = report.wasxfail.removeprefix("reason: ")
        return f"expected to fail: {expected}" if expected else ""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = said.removeprefix("Skipped").removeprefix(":").strip()
    return "" if reason == "unconditional skip" else reason  # what pytest says where a mark says nothing
