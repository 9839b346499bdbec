"""What every test lives with: a blocking call inside the event loop fails it, and no test is timed."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile("kedge", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kedge")


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx("kedge") as blockbuster:
        yield blockbuster
