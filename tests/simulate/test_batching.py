"""Rollouts in batches that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts
from simulate import scope_checks as check
from simulate.expected import BATCHING
from simulate.many import CRASHES, SEEDS, CrashRuns, counted, crash_runs
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.batching", "simulate.planted_in_batches"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:batching", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    record_property("told", check.told(all_seeds, SEEDS))
    assert check.faults_in(all_seeds) > 10 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", BATCHING)
def test_every_promise_was_put_to_the_test_often(promise: str, all_seeds: Counts) -> None:
    check.was_tested_often(promise, BATCHING[promise], all_seeds, len(SEEDS))


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    check.same_in_two_processes(f"{SCENARIOS}:batching", SEEDS[0])


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
    said = check.said_of_planted_bug(f"{PLANTED}:{bug}", FOUND_BY[bug])
    assert " failed: a workload is moved only when it may be: " in said
