"""Staged runs over whole fleets that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts
from simulate import scope_checks as check
from simulate.expected import (
    AGENT_TO_MEMBER,
    FAULTS,
    STAGING,
    hits_runs,
    roles_hit,
    roles_surely_hit,
)
from simulate.many import CRASHES, SEEDS, CrashRuns, counted, crash_runs
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.staging", "simulate.planted"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:staging", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    record_property("told", check.told(all_seeds, SEEDS))
    assert check.faults_in(all_seeds) > 50 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", STAGING)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts, crashes: CrashRuns) -> None:
    check.was_tested_often(promise, STAGING[promise], all_seeds, len(SEEDS), others=crashes.crashed)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_hit_the_writes_of_staged_runs(fault: str, all_seeds: Counts) -> None:
    """Those of a run's own status are few: of `slow` alone it is sure that so many seeds have it hit one."""
    if SHARE < 1:
        pytest.skip("too few seeds")
    assert roles_hit(all_seeds, fault) >= roles_surely_hit(fault) - {AGENT_TO_MEMBER}
    assert hits_runs(all_seeds, fault) or fault != "slow"


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    check.same_in_two_processes(f"{SCENARIOS}:staging", SEEDS[0], 3)


# A crash after single writes: every one is tried by `make soak`


@pytest.fixture(scope="module")
def crashes() -> CrashRuns:
    return crash_runs(f"{SCENARIOS}:hub_crashing", "hub", CRASHES)


def test_a_crash_after_any_write_of_the_hub_ends_as_if_there_had_been_none(crashes: CrashRuns) -> None:
    assert len(crashes.points) >= CRASHES
    assert crashes.problem == ""


# Planted bugs

FOUND_BY = {  # or one of the seeds after it
    "without_looking_at_runs": 68,
    "without_gates": 1,
    "without_turns": 1,
    "without_health": 63,
}
BROKEN = re.compile(" failed: (a staged run keeps its promises|a gate opens only while what is behind it works): ")


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert BROKEN.search(check.said_of_planted_bug(f"{PLANTED}:{bug}", FOUND_BY[bug]))
