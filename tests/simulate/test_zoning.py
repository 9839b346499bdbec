"""Rollout groups that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.faults import Counts, fault_table
from simulate.expected import ZONING, is_too_rare, tight_tests
from simulate.many import CRASHES, SEEDS, CrashRuns, asked, counted, crash_runs, started
from simulate.seeds import IN_A_TEST_RUN

SCENARIOS, PLANTED = "simulate.zoning", "simulate.planted"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:zoning", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    faults = f"seeds {SEEDS[0]} to {SEEDS[-1]}: which faults hit which writes\n{fault_table(all_seeds)}"
    record_property("told", f"{faults}\nhow often each promise was asked, and was tight\n{asked(all_seeds)}")
    assert sum(number for name, number in all_seeds.items() if name[0] == "fault") > 10 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", ZONING)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts) -> None:
    if is_too_rare(ZONING[promise], len(SEEDS)):
        pytest.skip("too rare to count on it in so few seeds: `make soak` does")
    assert tight_tests(all_seeds, promise) >= ZONING[promise].tight * SHARE


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    running = [started(f"{SCENARIOS}:zoning", SEEDS[0], 5, hash_seed=seed) for seed in (1, 2)]
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


FOUND_BY = {"without_fresh_pods": 1, "without_other_zones": 1, "without_proof_of_pods": 1, "by_the_status": 1}


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    process = started(f"{PLANTED}:{bug}", FOUND_BY[bug], 60)
    _, err = process.communicate()
    assert process.returncode == 1, "not one of the seeds found it"
    assert " failed: " in err
