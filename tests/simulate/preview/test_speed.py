"""A preview is there while one waits for it, however long what it shows would take."""

from __future__ import annotations

import time

import pytest

from kedge.plan.previewing.times import Times
from kedge.simulate.preview.previewing import Assumed
from simulate.preview.large import picture, released

SECONDS = 10.0  # of CPU


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("times", "is_done"),
    [
        (Times(for_all=8000.0), True),  # 10 waves that take a day
        (Times(for_all=20.0, failing=frozenset(f"cluster-{number}" for number in range(1, 11))), False),
    ],
    ids=["waves", "standstill"],
)
def test_a_hundred_clusters_over_a_day_are_previewed_in_ten_seconds(times: Times, is_done: bool) -> None:
    fleet = picture(100, "10%")
    began = time.process_time()
    course = released(fleet, Assumed(times=times))
    assert time.process_time() - began < SECONDS
    assert course.is_done is is_done
