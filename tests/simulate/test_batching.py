"""Rollouts in batches that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts, fault_table
from simulate.expected import BATCHING, is_too_rare, tight_tests, times_asked
from simulate.many import CRASHES, SEEDS, CrashRuns, asked, counted, crash_runs, started
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.batching", "simulate.planted_in_batches"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:batching", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    faults = f"seeds {SEEDS[0]} to {SEEDS[-1]}: which faults hit which writes\n{fault_table(all_seeds)}"
    record_property("told", f"{faults}\nhow often each promise was asked, and was tight\n{asked(all_seeds)}")
    assert sum(number for name, number in all_seeds.items() if name[0] == "fault") > 10 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", BATCHING)
def test_every_promise_was_put_to_the_test_often(promise: str, all_seeds: Counts) -> None:
    expected = BATCHING[promise]
    if is_too_rare(expected, len(SEEDS)):
        pytest.skip("too rare to count on it in so few seeds: `make soak` does")
    assert tight_tests(all_seeds, promise) >= expected.tight * SHARE
    assert times_asked(all_seeds, promise) >= expected.asked * SHARE


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    running = [started(f"{SCENARIOS}:batching", SEEDS[0], 5, hash_seed=seed) for seed in (1, 2)]
    (one, wrong), (other, also_wrong) = (process.communicate() for process in running)
    assert (wrong, also_wrong) == ("", "")
    assert one == other
    assert len(one.splitlines()) == 5


@pytest.fixture(scope="module")
def crashes() -> CrashRuns:
    return crash_runs(f"{SCENARIOS}:operator_crashing", "operator", CRASHES)


def test_a_crash_after_any_write_of_a_rollout_ends_as_if_there_had_been_none(crashes: CrashRuns) -> None:
    assert len(crashes.points) >= CRASHES
    assert crashes.problem == ""


FOUND_BY = {
    "without_floor": 16,
    "without_ceiling": 16,
    "one_batch_too_many": 4,
    "without_webhooks": 6,
    "acts_before_it_notes": 2,
    "takes_back_at_once": 19,
    "without_proof_of_batches": 13,
    "pods_of_others": 3,
}


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    process = started(f"{PLANTED}:{bug}", FOUND_BY[bug], 60)
    _, err = process.communicate()
    assert process.returncode == 1, "not one of the seeds found it"
    assert " failed: a workload is moved only when it may be: " in err
