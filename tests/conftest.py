"""What every test lives with: a blocking call inside the event loop fails it, and no test is timed.

Several workers share the modules. Those that may take longest go first, so that all workers end at about the same time.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile("kedge", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("kedge"), max_examples=5_000)
settings.load_profile(os.environ.get("KEDGE_PROPERTIES", "kedge"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        longest: dict[Path, float] = {}
        for item in items:
            longest[item.path] = max(longest.get(item.path, 0), _seconds(item))
        items.sort(key=lambda item: -longest[item.path])


def _seconds(item: pytest.Item) -> float:
    limit = item.get_closest_marker("timeout")
    return limit.args[0] if limit is not None else 0


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
