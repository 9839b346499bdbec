"""Rollout groups that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts
from simulate import scope_checks as check
from simulate.expected import ZONING
from simulate.many import CRASHES, SEEDS, CrashRuns, counted, crash_runs
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.zoning", "simulate.planted"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:zoning", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    record_property("told", check.told(all_seeds, SEEDS))
    assert check.faults_in(all_seeds) > 10 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", ZONING)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts) -> None:
    check.was_tested_often(promise, ZONING[promise], all_seeds, len(SEEDS))


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    check.same_in_two_processes(f"{SCENARIOS}:zoning", SEEDS[0])


@pytest.fixture(scope="module")
def crashes() -> CrashRuns:
    return crash_runs(f"{SCENARIOS}:operator_crashing", "operator", CRASHES)


def test_a_crash_after_any_write_of_a_rollout_ends_as_if_there_had_been_none(crashes: CrashRuns) -> None:
    assert len(crashes.points) >= CRASHES
    assert crashes.problem == ""


FOUND_BY = {"without_fresh_pods": 41, "without_other_zones": 1, "without_proof_of_pods": 1, "by_the_status": 1}


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert " failed: " in check.said_of_planted_bug(f"{PLANTED}:{bug}", FOUND_BY[bug])
