"""Changes that come one after another become one revision, soon after the last."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.selecting.snapshots import MAX_WAITS, ChangeBurst

QUIET = 0.1
LONG_AGO = -1000.0


def revisions(times: list[float], quiet: float = QUIET) -> list[tuple[int, float]]:
    """How many changes each revision holds, and when it is made."""
    found: list[tuple[int, float]] = []
    coming, count, before = None, 0, LONG_AGO
    for now in times:
        if coming is not None and now >= coming.ends(quiet):
            found.append((count, coming.ends(quiet)))
            coming, count = None, 0
        coming = coming.next(now) if coming is not None else ChangeBurst.first(now, before)
        count, before = count + 1, now
    return found if coming is None else [*found, (count, coming.ends(quiet))]


@pytest.mark.parametrize(
    ("pauses", "counts"),
    [
        ([], [1]),
        ([0.01] * 50, [51]),
        ([0.09] * 15, [16]),
        ([0.15] * 10, [1, 10]),  # slower than a single one is waited for: the second shows how slow
        ([0.09, 0.3], [3]),
        ([0.09, 0.4], [2, 1]),
        ([0.6] * 3, [1, 3]),
        ([5.0] * 3, [1, 1, 1, 1]),  # four edits, and not one apply
        ([0.05] * 100, [41, 41, 19]),  # without an end, every 2 s
    ],
)
def test_changes_in_a_burst_become_one_revision(pauses: list[float], counts: list[int]) -> None:
    times = [*accumulate(pauses, initial=1000.0)]
    assert [count for count, _ in revisions(times)] == counts


def test_the_longest_pause_that_counts_extends_the_wait() -> None:
    assert ChangeBurst(10.0, 11.0, 2.0).ends(0.1) == 12.0
    assert ChangeBurst(10.0, 11.0, 2.1).ends(0.1) == pytest.approx(11.1)


def test_a_single_change_waits_only_the_quiet_time() -> None:
    assert ChangeBurst.first(10.0, LONG_AGO).ends(QUIET) == pytest.approx(10.1)
    assert ChangeBurst.first(10.0, LONG_AGO).ends(0.0) == 10.0


@given(st.lists(st.floats(0.0, 30.0), max_size=60), st.floats(0.0, 5.0))
def test_every_change_becomes_a_revision_within_the_limit(pauses: list[float], quiet: float) -> None:
    times = [*accumulate(pauses, initial=1000.0)]
    found = revisions(times, quiet)
    assert sum(count for count, _ in found) == len(times)
    starts = [0, *accumulate(count for count, _ in found)]
    for (first, after), (_, made) in zip(pairwise(starts), found, strict=True):
        assert times[after - 1] <= made <= times[first] + MAX_WAITS * quiet + 1e-6
