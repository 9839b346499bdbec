"""What every test lives with: a blocking call inside the event loop fails it, and no test is timed."""

import os
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile("kedge", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("kedge"), max_examples=5_000)
settings.load_profile(os.environ.get("KEDGE_PROPERTIES", "kedge"))


_DRAWS = {"_get_local_constants"}


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx("kedge") as blockbuster:
        for call in ("os.path.abspath", "os.stat", "io.BufferedReader.read", "os.readlink"):
            if call in blockbuster.functions:  # hypothesis looks at our modules when a test draws, also in the loop
                blockbuster.functions[call].can_block_in("hypothesis/internal/conjecture/providers.py", _DRAWS)
        yield blockbuster
