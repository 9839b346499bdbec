"""Rollouts over whole fleets that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from kedge.simulate.faults import Counts, Faults
from simulate import scope_checks as check
from simulate.expected import FAULTS, ROLLING, roles_hit, roles_surely_hit
from simulate.many import CRASHES, SEEDS, CrashRuns, counted, crash_runs
from simulate.seeds import IN_A_TEST_RUN
from simulate.weather import LEAST, OTHERS, REQUESTS, weather

SCENARIOS, PLANTED = "simulate.rolling", "simulate.planted"
SHARE = len(SEEDS) / IN_A_TEST_RUN
pytestmark = pytest.mark.timeout(3600)  # of a machine that has other things to do


# Weather


def test_every_seed_has_at_least_three_kinds_of_fault() -> None:
    for seed in range(300):
        drawn = weather(Random(seed))
        assert len([kind for kind in (*REQUESTS, *OTHERS) if getattr(drawn, kind) > 0]) >= LEAST
        assert isinstance(drawn, Faults)


# Seeds


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{SCENARIOS}:rolling", SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    record_property("told", check.told(all_seeds, SEEDS))
    assert check.faults_in(all_seeds) > 100 * len(SEEDS) * (SHARE >= 1)


@pytest.mark.parametrize("promise", ROLLING)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts, all_crashes: Counts) -> None:
    check.was_tested_often(promise, ROLLING[promise], all_seeds, len(SEEDS), others=all_crashes)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_hit_writes_of_the_hub_and_of_agents(fault: str, all_seeds: Counts) -> None:
    if SHARE < 1:
        pytest.skip("too few seeds")
    assert roles_hit(all_seeds, fault) >= roles_surely_hit(fault)


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    check.same_in_two_processes(f"{SCENARIOS}:rolling", SEEDS[0])


# A crash after single writes: every one is tried by `make soak`

CRASHING = [("hub_crashing", "hub"), ("agent_crashing", "cluster-1")]
MOST = {"hub": CRASHES, "cluster-1": CRASHES // 2}  # an agent writes little


@pytest.fixture(scope="module")
def crashes() -> dict[str, CrashRuns]:
    return {scenario: crash_runs(f"{SCENARIOS}:{scenario}", who, MOST[who]) for scenario, who in CRASHING}


@pytest.fixture(scope="module")
def all_crashes(crashes: dict[str, CrashRuns]) -> Counts:
    return sum((runs.crashed for runs in crashes.values()), Counter())


@pytest.mark.parametrize(("scenario", "who"), CRASHING)
def test_a_crash_after_any_write_of_a_rollout_ends_as_if_there_had_been_none(
    scenario: str, who: str, crashes: dict[str, CrashRuns]
) -> None:
    assert len(crashes[scenario].points) >= MOST[who]
    assert crashes[scenario].problem == ""


# Planted bugs


FOUND_BY = {"without_preconditions": 17, "without_own_writes": 4, "without_proof": 63}  # or one of the seeds after it


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert " failed: " in check.said_of_planted_bug(f"{PLANTED}:{bug}", FOUND_BY[bug])
