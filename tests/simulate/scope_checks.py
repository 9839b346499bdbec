"""Scope checks: what the tests of every scope ask of many seeds, whatever its promises are."""

from __future__ import annotations

import pytest

from kedge.simulate.faults import Counts, fault_table
from simulate.expected import COUNTED_IN, Expected, is_too_rare, tight_tests, times_asked
from simulate.many import asked, started


def told(counts: Counts, seeds: range) -> str:
    """What these seeds counted, for people to read."""
    faults = f"seeds {seeds[0]} to {seeds[-1]}: which faults hit which writes\n{fault_table(counts)}"
    return f"{faults}\nhow often each promise was asked, and was tight\n{asked(counts)}"


def faults_in(counts: Counts) -> int:
    """How many faults there were."""
    return sum(number for name, number in counts.items() if name[0] == "fault")


def was_tested_often(
    promise: str,
    expected: Expected,
    counts: Counts,
    seeds: int,
    *,
    counted_in: int = COUNTED_IN,
    others: Counts | None = None,
) -> None:
    """A promise that is never close to being broken proves nothing. Tight tests of `others` count, too."""
    if is_too_rare(expected, seeds):
        pytest.skip("too rare to count on it in so few seeds: `make soak` does")
    share = seeds / counted_in
    assert tight_tests(counts if others is None else counts + others, promise) >= expected.tight * share
    assert times_asked(counts, promise) >= expected.asked * share


def same_in_two_processes(scenario: str, first: int, number: int = 2) -> None:
    """The same seeds print the same traces, however each process hashes."""
    running = [started(scenario, first, number, hash_seed=seed) for seed in (1, 2)]
    (one, wrong), (other, also_wrong) = (process.communicate() for process in running)
    assert (wrong, also_wrong) == ("", "")
    assert one == other
    assert len(one.splitlines()) == number


def said_of_planted_bug(scenario: str, first: int) -> str:
    """What is said when a bug is found, by this seed or one of the next."""
    process = started(scenario, first, 60)
    _, err = process.communicate()
    assert process.returncode == 1, "not one of the seeds found it"
    return err
