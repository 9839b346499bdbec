"""The number of tests that there have to be is not forgotten."""

import re
from pathlib import Path

from ci import floor

TESTS = Path(__file__).parents[1]
TEST = re.compile(r"^ *(async )?def test_", re.MULTILINE)


def test_the_floor_is_not_far_below_the_tests_that_there_are() -> None:
    """Functions are fewer than tests, as many have rows; a floor below even that says nothing any more."""
    functions = sum(len(TEST.findall(file.read_text())) for file in TESTS.rglob("test_*.py"))
    assert floor.read().all >= functions, "raise the numbers in tools/ci/floor to 98 % of what .ci/run ends with"


def test_tests_on_the_real_control_plane_have_a_floor_of_their_own() -> None:
    assert 0 < floor.read().real < floor.read().all
