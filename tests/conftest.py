"""What every test lives with: a blocking call inside the event loop fails it, and no test is timed.

Several workers share the modules: `support.scheduling` says who runs what.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, Phase, settings

from support.durations import Durations
from support.recording import tables
from support.scheduling import ByScope, longest_first, seconds_by_scope

IF_CHANGED = [Path(__file__).parent / folder for folder in ("controlplane", "embedded")]
"""Where tests on the real control plane are in every run if what they are about has changed."""

settings.register_profile("kedge", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("kedge"), max_examples=5_000)
settings.register_profile(  # the same examples every time, and no word about which is the shortest
    "mutants", settings.get_profile("kedge"), derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("KEDGE_PROPERTIES", "kedge"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="without what is left to make test-real and make soak")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: on real clusters in every run; the others there are for make test-real")
    config.pluginmanager.register(Durations(config.rootpath / ".cache" / "durations.json"), "durations")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--core"):
        left_out = [item for item in items if not _is_in_every_run(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_in_every_run(item)]
    longest_first(items, seconds_by_scope())


def _is_in_every_run(item: pytest.Item) -> bool:
    marks = {mark.name for mark in item.iter_markers()}
    if "slow" in marks:
        return False
    if "real" not in marks or marks & {"core", "recorded"}:
        return True
    return any(map(item.path.is_relative_to, IF_CHANGED)) and bool(tables.changed_since(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByScope:
    return ByScope(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests that passed have to tell (`record_property("told", text)`), whichever worker ran them."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "told":
                terminalreporter.write_line(f"\n{report.nodeid}: {text}")


_DRAWS = {"_get_local_constants"}


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx("kedge") as blockbuster:
        for call in ("os.path.abspath", "os.stat", "io.BufferedReader.read", "os.readlink"):
            if call in blockbuster.functions:  # hypothesis looks at our modules when a test draws, also in the loop
                blockbuster.functions[call].can_block_in("hypothesis/internal/conjecture/providers.py", _DRAWS)
        yield blockbuster
