"""Fixtures that give tests a real API server, live or as recorded, and the decision which of the two.

| fixture    | scope  | what a test gets                                                    |
|------------|--------|---------------------------------------------------------------------|
| `bare_api` | module | an API server only: nothing acts on objects but the test            |
| `full_api` | module | with controllers, scheduler and two simulated nodes                 |

A test that uses one of them, or is marked `recorded`, is a row of its module's table. By itself (`--real auto`) a
table is replayed, unless a row is not in it, or what it is about has changed since it was last asked of the real
server: then the whole module is live. `--real live` asks the real server for every row, and holds it to the recording;
`--real record` writes the recording.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from controlplane.binaries import Missing, find
from controlplane.pytest_plugin import NOT_HERE, SECONDS_FOR_A_REAL_TEST, is_ci
from support.recording import tables
from support.recording.api import RealApi
from support.recording.rows import Rows

FIXTURES = {"bare_api", "full_api", "without_nodes_api", "servers"}
_PASSED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real",
        choices=("auto", "live", "record"),
        default="auto",
        help="recorded tests: replay what may be (auto), ask the real server (live), or write what it says (record)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "recorded: asks a real API server, whose answers are recorded")
    is_narrowed = any("::" in argument for argument in config.args)
    config.pluginmanager.register(Tables(config.getoption("--real"), is_narrowed=is_narrowed), "tables")


class Tables:
    """The tables of a run."""

    def __init__(self, mode: str, *, is_narrowed: bool) -> None:
        self._mode = mode
        self._is_narrowed = is_narrowed  # to single tests: the others of a module are not to be seen
        self._rows: dict[Path, Rows] = {}
        self._live_because: dict[Path, str] = {}

    # Before the run

    @pytest.hookimpl(tryfirst=True)  # before -m chooses among the marks
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        modules: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in items:
            if FIXTURES & set(getattr(item, "fixturenames", ())):
                item.add_marker("recorded")
            if item.get_closest_marker("recorded") is not None:
                modules[item.path].append(item)
        for module, rows in modules.items():
            self._decide(module, rows)

    def _decide(self, module: Path, items: Sequence[pytest.Item]) -> None:
        recorded = tables.read(module)
        names = {row_of(item) for item in items}
        missing = [item for item in items if row_of(item) not in recorded]
        changed = tables.changed_since(module)
        why = "" if self._mode == "auto" else f"--real {self._mode}"
        why = why or (f"{len(missing)} rows are not recorded" if missing else "")
        why = why or (f"{', '.join(changed)} changed" if changed else "")
        if why and self._mode == "auto" and isinstance(find(), Missing) and not is_ci():
            self._without_a_server(missing)
            why = ""
        if why:
            self._live_because[module] = why
            for item in items:
                item.add_marker("real")
                if item.get_closest_marker("timeout") is None:
                    item.add_marker(pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST))
        known = None if self._is_narrowed else names
        self._rows[module] = Rows(module, is_live=bool(why), writes=self._mode == "record", known=known)

    def _without_a_server(self, missing: Sequence[pytest.Item]) -> None:
        for item in missing:
            item.add_marker("real")
            item.add_marker(pytest.mark.skip(reason=f"{NOT_HERE}, and this is not recorded"))

    def rows(self, module: Path) -> Rows:
        return self._rows[module]

    # While it goes on

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.get_closest_marker("recorded") is not None:
            self._rows[item.path].begin(row_of(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
        rows = self._rows.get(request.path) if fixturedef.scope == "module" else None
        if rows is None:
            return (yield)
        with rows.aside():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "call":
            item.stash[_PASSED] = report.passed
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        ended = yield
        if item.stash.get(_PASSED, False) and item.get_closest_marker("recorded") is not None:
            self._rows[item.path].check(row_of(item))
        return ended

    # After it

    def pytest_sessionfinish(self) -> None:
        for rows in self._rows.values():
            if rows.writes:
                rows.write()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for module, why in sorted(self._live_because.items()):
            terminalreporter.write_line(f"asked of the real server, because {why}: {module.relative_to(tables.ROOT)}")


def row_of(item: pytest.Item) -> str:
    """The name of a test within its module."""
    return item.nodeid.partition("::")[2]


def rows_of(request: pytest.FixtureRequest) -> Rows:
    """The rows of the module that asks."""
    found = request.config.pluginmanager.getplugin("tables")
    assert isinstance(found, Tables)
    return found.rows(request.path)


def api_of(request: pytest.FixtureRequest, cluster: str, *, others_act: bool = False) -> RealApi:
    """The cluster that a fixture starts, live or as recorded."""
    rows = rows_of(request)
    return RealApi(request.getfixturevalue(cluster) if rows.is_live else None, rows, others_act=others_act)


@pytest.fixture(scope="module")
def bare_api(request: pytest.FixtureRequest) -> RealApi:
    """An API server in which nothing acts but the tests."""
    return api_of(request, "bare_cluster")


@pytest.fixture(scope="module")
def full_api(request: pytest.FixtureRequest) -> RealApi:
    """One with controllers, scheduler and two simulated nodes."""
    return api_of(request, "full_cluster", others_act=True)
