"""Alignment on bad days, from many seeds: all clusters together keep one budget, whatever is late or lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts
from simulate import scope_checks as check
from simulate.expected import ALIGNING
from simulate.many import SEEDS, CrashRuns, counted, crash_runs
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.aligning", "simulate.planted_in_alignment"
CRASHES = 10
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:aligning", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    record_property("told", check.told(all_seeds, SEEDS))
    assert check.faults_in(all_seeds) > 10 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", ALIGNING)
def test_every_promise_was_put_to_the_test_often(promise: str, all_seeds: Counts) -> None:
    check.was_tested_often(promise, ALIGNING[promise], all_seeds, len(SEEDS), counted_in=IN_A_TEST_RUN)


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    check.same_in_two_processes(f"{SCENARIOS}:aligning", SEEDS[0])


@pytest.fixture(scope="module")
def crashes() -> CrashRuns:
    return crash_runs(f"{SCENARIOS}:hub_crashing", "hub", CRASHES)


def test_a_crash_of_the_hub_after_any_write_ends_as_if_there_had_been_none(crashes: CrashRuns) -> None:
    assert len(crashes.points) >= CRASHES
    assert crashes.problem == ""


FOUND_BY = {
    "by_reports_alone": 4,
    "acts_before_it_notes": 1,
    "any_report_is_proof": 4,
    "applied_is_proof": 4,
    "down_before_up": 1,
    "without_partition": 4,
    "a_bad_release_creeps": 8870000,
    "broken_pods_stay_broken": 8820123,
}


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    said = check.said_of_planted_bug(f"{PLANTED}:{bug}", FOUND_BY[bug])
    assert " failed: all clusters together keep one budget: " in said
