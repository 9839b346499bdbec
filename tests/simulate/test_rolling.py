"""Rollouts over whole fleets that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kedge.simulate.faults import Faults
from kedge.simulate.tally import Counts, role_of, table
from simulate.many import IS_SOAK, SEEDS, asked, counted, ended, ends, is_write, started
from simulate.weather import LEAST, OTHERS, REQUESTS, weather

ROLLING, PLANTED = "simulate.rolling", "simulate.planted"
PROMISES = {
    "added while fewer than wanted + maxSurge hold": 30,
    "disturbed only if enough others are available": 300,
    "a move is of the version that was looked at": 1000,
    "no cluster is picked twice": 1000,
    "nobody undoes what another has said": 1000,
    "available only if the member's own Deployment was": 1000,
    "bad releases reach no more than may be unavailable": 20,
    "nothing is deleted that is still asked for": 100,
    "a rollout that stands still names whom it waits for": 50,
}
"""How often each has to be put to a tight test in 300 seeds, at the least: far fewer than it is."""
pytestmark = pytest.mark.timeout(0 if IS_SOAK else 3600)  # of a machine that has other things to do


# Weather


def test_every_seed_has_at_least_three_kinds_of_fault() -> None:
    for seed in range(SEEDS):
        drawn = weather(Random(seed))
        assert len([kind for kind in (*REQUESTS, *OTHERS) if getattr(drawn, kind) > 0]) >= LEAST
        assert isinstance(drawn, Faults)


# Seeds


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{ROLLING}:rolling", 1, SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    faults = f"{SEEDS} seeds: which faults hit which writes\n{table(all_seeds)}"
    record_property("told", f"{faults}\nhow often each promise was asked, and was tight\n{asked(all_seeds)}")
    assert sum(number for name, number in all_seeds.items() if name[0] == "fault") > 100 * SEEDS


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts) -> None:
    assert all_seeds["promise", promise, "tight"] >= PROMISES[promise] * SEEDS / 300


@pytest.mark.parametrize("fault", [*REQUESTS, "partitions", "crash"])
def test_every_fault_hit_writes_of_the_hub_and_of_agents(fault: str, all_seeds: Counts) -> None:
    hit = {role_of(name[1]) for name in all_seeds if name[0] == "fault" and name[2] == fault and is_write(name[3])}
    assert hit >= {"hub → hub", "cluster → hub", "cluster → cluster"}


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    running = [started(f"{ROLLING}:rolling", 1, 5, hash_seed=seed) for seed in (1, 2)]
    (one, wrong), (other, also_wrong) = (process.communicate() for process in running)
    assert (wrong, also_wrong) == ("", "")
    assert one == other
    assert len(one.splitlines()) == 5


# A crash after every single write


@pytest.mark.parametrize(
    ("scenario", "who", "most"), [("hub_crashing", "hub", 60), ("agent_crashing", "cluster-1", 15)]
)
def test_a_crash_after_any_write_of_a_rollout_ends_as_if_there_had_been_none(
    scenario: str, who: str, most: int
) -> None:
    undisturbed = ended(started(f"{ROLLING}:{scenario}", 0, 1, "--counts"))
    writes = undisturbed["writes", who]
    every = 1 if IS_SOAK else max(1, writes // most)
    seeds = -(-writes // every)
    crashed = counted(f"{ROLLING}:{scenario}", 1, seeds, every=every)
    crashes = sum(number for name, number in crashed.items() if name[0] == "fault" and name[2] == "crash")
    assert seeds >= most
    assert crashes > 0.9 * seeds, "but for the last, which may be of writes that were not needed this time"
    assert ends(crashed) == dict.fromkeys(ends(undisturbed), seeds)


# Planted bugs


@pytest.mark.parametrize("bug", ["without_preconditions", "without_own_writes"])
def test_a_planted_bug_is_found(bug: str) -> None:
    process = started(f"{PLANTED}:{bug}", 1, 60)
    _, err = process.communicate()
    assert process.returncode == 1, "not one of the seeds found it"
    assert " failed: " in err
