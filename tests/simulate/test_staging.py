"""Staged runs over whole fleets that have bad days, from many seeds: nothing that was promised is ever broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kedge.simulate.tally import Counts, role_of, table
from simulate.many import IS_SOAK, SEEDS, asked, counted, ended, ends, is_write, started
from simulate.weather import REQUESTS

STAGING, PLANTED = "simulate.staging", "simulate.planted"
CRASHES = 40
PROMISES = {
    "no more clusters of a stage move than may": 300,
    "clusters begin in their order": 300,
    "no cluster before the gates before it": 300,
    "no wait is cut short": 50,
    "nothing begins unapproved": 300,
    "an approval that was taken back does not count": 5,
    "nothing begins in a run that was stopped": 30,
    "two runs never move a placement at once": 300,
    "a binding is moved only as a run has said before": 1000,
    "a binding is taken away only as a run has said before": 100,
    "resources keep what they hold": 5,
    "a run that is said to be taken back is so": 1,
    "a cluster is done only if its binding says so": 1000,
    "a run goes by the stages it began with": 1000,
    "a move is of the version that was looked at": 1000,
    "nobody undoes what another has said": 1000,
    "available only if the member's own Deployment was": 1000,
    "a run that stands still says what it waits for": 50,
}
"""How often each has to be put to a tight test in 300 seeds, at the least: far fewer than it is."""
pytestmark = pytest.mark.timeout(0 if IS_SOAK else 3600)  # of a machine that has other things to do


@pytest.fixture(scope="module")
def all_seeds() -> Counts:
    return counted(f"{STAGING}:staging", 1, SEEDS)


def test_no_promise_is_ever_broken(all_seeds: Counts, record_property: Callable[[str, object], None]) -> None:
    faults = f"{SEEDS} seeds: which faults hit which writes\n{table(all_seeds)}"
    record_property("told", f"{faults}\nhow often each promise was asked, and was tight\n{asked(all_seeds)}")
    assert sum(number for name, number in all_seeds.items() if name[0] == "fault") > 50 * SEEDS


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_was_put_to_a_tight_test_often(promise: str, all_seeds: Counts) -> None:
    assert all_seeds["promise", promise, "tight"] >= PROMISES[promise] * SEEDS / 300


@pytest.mark.parametrize("fault", [*REQUESTS, "partitions", "crash"])
def test_every_fault_hit_the_writes_of_staged_runs(fault: str, all_seeds: Counts) -> None:
    faults = (name for name in all_seeds if name[0] == "fault" and name[2] == fault)
    hit = {name[3].partition(" ")[2] for name in faults if role_of(name[1]) == "hub → hub" and is_write(name[3])}
    assert any(what.startswith("clusterstagedupdateruns") for what in hit)


def test_the_same_seeds_are_the_same_in_two_processes() -> None:
    running = [started(f"{STAGING}:staging", 1, 3, hash_seed=seed) for seed in (1, 2)]
    (one, wrong), (other, also_wrong) = (process.communicate() for process in running)
    assert (wrong, also_wrong) == ("", "")
    assert one == other
    assert len(one.splitlines()) == 3


def test_a_crash_after_any_write_of_the_hub_ends_as_if_there_had_been_none() -> None:
    undisturbed = ended(started(f"{STAGING}:hub_crashing", 0, 1, "--counts"))
    writes = undisturbed["writes", "hub"]
    every = 1 if IS_SOAK else max(1, writes // CRASHES)
    seeds = -(-writes // every)
    crashed = counted(f"{STAGING}:hub_crashing", 1, seeds, every=every)
    crashes = sum(number for name, number in crashed.items() if name[0] == "fault" and name[2] == "crash")
    assert seeds >= CRASHES
    assert crashes > 0.9 * seeds, "but for the last, which may be of writes that were not needed this time"
    assert ends(crashed) == dict.fromkeys(ends(undisturbed), seeds)


@pytest.mark.parametrize("bug", ["without_looking_at_runs", "without_gates", "without_turns"])
def test_a_planted_bug_is_found(bug: str) -> None:
    process = started(f"{PLANTED}:{bug}", 1, 60)
    _, err = process.communicate()
    assert process.returncode == 1, "not one of the seeds found it"
    assert " failed: a staged run keeps its promises" in err
