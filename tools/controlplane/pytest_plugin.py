"""Fixtures that give tests a real control plane.

| fixture         | scope    | what a test gets                                                             |
|-----------------|----------|------------------------------------------------------------------------------|
| `binaries`      | session  | the programs; the test is skipped where there are none (and fails when CI=true) |
| `bare_cluster`  | session  | an API server only: nothing acts on objects but the test                     |
| `full_cluster`  | session  | with controllers, scheduler and two simulated nodes                          |
| `own_plane`     | function | a control plane of its own: `await own_plane.start("a", controllers=True, nodes=1)` |

The session's clusters start when first asked for and are shared by all tests, in any order: a test works in a
namespace of its own (`await cluster.fresh_namespace()`), takes away what it made outside of one, and never kills or
compacts anything there; for that there is `own_plane`. None of them belongs to a test's event loop.
A test that uses any of them is marked `real`, and has more time: starting a cluster counts as its time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from controlplane.binaries import Binaries, Missing, find
from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane

SECONDS_FOR_A_REAL_TEST = 400

NOT_HERE = "real control plane not available"

T = TypeVar("T")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real: needs the real control plane (make kube)")


@pytest.hookimpl(tryfirst=True)  # before -m chooses among the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need the real control plane."""
    for item in items:
        if isinstance(item, pytest.Function) and "binaries" in item.fixturenames:
            item.add_marker("real")
            if config.pluginmanager.hasplugin("timeout") and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not per test, that and why the real control plane was missing."""
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    missing = [reason for reason in reasons if NOT_HERE in reason]
    if missing:
        terminalreporter.write_line(f"{len(missing)} tests skipped: {missing[0].removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The control plane's programs."""
    found = find()
    if isinstance(found, Missing):
        reason = f"{NOT_HERE}: {found.reason}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def shared_plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """The etcd behind the shared clusters; tests want `bare_cluster` or `full_cluster`."""
    yield from _open_plane(binaries)


@pytest.fixture(scope="session")
def bare_cluster(shared_plane: ControlPlane) -> Cluster:
    """A shared cluster in which nothing acts but the tests."""
    return run_apart(shared_plane.start("bare"))


@pytest.fixture(scope="session")
def full_cluster(shared_plane: ControlPlane) -> Cluster:
    """A shared cluster with controllers, scheduler and two simulated nodes."""
    return run_apart(shared_plane.start("full", controllers=True, nodes=2))


@pytest.fixture
def own_plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane that one test may do anything to."""
    yield from _open_plane(binaries)


def _open_plane(binaries: Binaries) -> Iterator[ControlPlane]:
    plane = ControlPlane(binaries)
    run_apart(plane.open())
    try:
        yield plane
    finally:
        plane.close()


def run_apart(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on an event loop of its own, away from the one a test may be running on."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()
