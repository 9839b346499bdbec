"""Fixtures that give tests a real control plane.

| fixture         | scope    | what a test gets                                                             |
|-----------------|----------|------------------------------------------------------------------------------|
| `binaries`      | session  | the programs; the test is skipped where there are none (and fails when CI=true) |
| `bare_cluster`  | session  | an API server only: nothing acts on objects but the test                     |
| `full_cluster`  | session  | with controllers, scheduler and two simulated nodes                          |
| `own_plane`     | function | a control plane of its own: `await own_plane.start("a", controllers=True, nodes=1)` |

The session's clusters start when first asked for and are shared by all tests of a run, in any order and in any of its
processes: a test works in a namespace of its own (`await cluster.fresh_namespace()`), takes away what it made outside
of one, and never kills or compacts anything there; for that there is `own_plane`. None of them belongs to a test's
event loop.
A test that uses any of them is marked `real`, and has more time: starting a cluster counts as its time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from controlplane import sharing
from controlplane.binaries import Binaries, Missing, find
from controlplane.cluster import Cluster, Options
from controlplane.plane import ControlPlane

SECONDS_FOR_A_REAL_TEST = 400

NOT_HERE = "real control plane not available"

T = TypeVar("T")

_KEEPER = pytest.StashKey[sharing.Keeper]()
_ADDRESS = "clusters"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real: needs the real control plane (make kube)")
    if not hasattr(config, "workerinput"):
        config.stash[_KEEPER] = sharing.Keeper()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (keeper := config.stash.get(_KEEPER, None)) is not None:
        keeper.close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the clusters are kept."""
    address = node.config.stash[_KEEPER].listen()
    node.workerinput[_ADDRESS] = (address.path, address.key)


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


def is_ci() -> bool:
    """Whether nothing may be left out."""
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The control plane's programs."""
    found = find()
    if isinstance(found, Missing):
        reason = f"{NOT_HERE}: {found.reason}"
        if is_ci():
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


class Clusters:
    """The clusters that all tests of a run share, in whichever process they are. Started when first asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __call__(self, name: str, options: Options = Options()) -> Cluster:  # noqa: B008  # frozen
        """The cluster of this name; who asks first says what it is like."""
        if (address := self._address) is not None:
            return sharing.ask(address, name, options)
        return self._config.stash[_KEEPER].cluster(name, options)

    def give_back(self, *names: str) -> None:
        """Nobody needs these any more: a cluster that does nothing still takes a twentieth of a core."""
        for name in names:
            if (address := self._address) is not None:
                sharing.give_back(address, name)
            else:
                self._config.stash[_KEEPER].stop(name)

    @property
    def _address(self) -> sharing.Address | None:
        """Where the clusters are kept, if another process does."""
        given = getattr(self._config, "workerinput", {}).get(_ADDRESS)
        return None if given is None else sharing.Address(*given)

    def many(self, wanted: Mapping[str, Options]) -> dict[str, Cluster]:
        """Several clusters, started at once."""
        with ThreadPoolExecutor(len(wanted)) as pool:
            return dict(zip(wanted, pool.map(self, wanted, wanted.values()), strict=True))


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest, binaries: Binaries) -> Clusters:  # noqa: ARG001  # which must be there
    """The shared clusters; most tests want `bare_cluster` or `full_cluster`."""
    return Clusters(request.config)


@pytest.fixture(scope="session")
def bare_cluster(clusters: Clusters) -> Cluster:
    """A shared cluster in which nothing acts but the tests."""
    return clusters("bare")


@pytest.fixture(scope="session")
def full_cluster(clusters: Clusters) -> Cluster:
    """A shared cluster with controllers, scheduler and two simulated nodes."""
    return clusters("full", Options(controllers=True, nodes=2))


@pytest.fixture
def own_plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane that one test may do anything to."""
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
