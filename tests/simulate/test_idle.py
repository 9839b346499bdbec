"""A whole fleet at rest writes nothing, lists nothing anew and misses nothing, for as long as it takes.

How long a day takes here is for `make bench` to say, not for a test.
"""

from __future__ import annotations

import pytest

from kedge.simulate.run import run

pytestmark = pytest.mark.timeout(1200)  # of a machine that has other things to do


def test_a_fleet_at_rest_for_two_hours() -> None:
    report = run("simulate.idle:two_hours", seed=2)
    assert report.seconds > 7200
    assert report.writes > 0, "it was set up"


@pytest.mark.slow
def test_a_fleet_at_rest_for_a_day() -> None:
    report = run("simulate.idle:day", seed=1)
    assert report.seconds > 86_400
    assert report.requests / report.seconds < 41 / 8, "each link asks about once in ten seconds who is there"
