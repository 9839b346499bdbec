"""What every test lives with: a blocking call inside the event loop fails it."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    with blockbuster_ctx("kedge") as blockbuster:
        yield blockbuster
