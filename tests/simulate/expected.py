"""Expected: how often seeds have to put each promise to the test, and which writes faults have to hit.

A promise that is seldom put to a tight test says little. So a soak asks for many tight tests of each, and for faults
that hit every kind of write. The seeds of a test run are few, and each commit has others: it asks only for what they
cannot miss. Its numbers come from 164 seeds: six standard deviations below what 60 seeds have on average, or 1 where
fewer than one in 10⁹ times 60 would have none. What is 0 is too rare for that, and left to the soak. A test run has
fewer seeds, and is asked for its share of that: five standard deviations below its own average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kedge.simulate.faults import Counts, link_role
from simulate import align_exposure, align_promises
from simulate.batch_promises import CEILING, FLOOR, GATES, NOTED, OWN, PARTITION, PROOF
from simulate.batch_promises import PAUSED as BATCHES_PAUSED
from simulate.many import is_write
from simulate.scaling_promises import APART, PREPARED
from simulate.seeds import IN_A_TEST_RUN
from simulate.weather import REQUESTS
from simulate.zone_promises import BUDGET, ONE_ZONE, OUTDATED, UNPROVEN

FAULTS = (*REQUESTS, "partitions", "crash")
HUB, AGENT_TO_HUB, AGENT_TO_MEMBER = "hub → hub", "cluster → hub", "cluster → cluster"
EVERYBODY = frozenset({HUB, AGENT_TO_HUB, AGENT_TO_MEMBER})
RUNS = "clusterstagedupdateruns"
COUNTED_IN = 60
"""How many seeds have what is expected of a test run."""


class Expected(NamedTuple):
    """How often a promise is put to the test, at the least."""

    soak: int  # tight tests in 300 seeds
    tight: int = 0  # tight tests in 60 seeds of test runs, and their crashes
    asked: int = 0  # tests in 60 seeds, tight or not


ROLLING: Mapping[str, Expected] = {
    "added while fewer than wanted + maxSurge hold": Expected(10, asked=100),
    "disturbed only if enough others are available": Expected(300, tight=60),
    "a move is of the version that was looked at": Expected(1000, tight=200),
    "no cluster is picked twice": Expected(700, tight=100),
    "nobody undoes what another has said": Expected(1000, tight=200),
    "available only if the member's own Deployment was": Expected(1000, tight=200),
    "bad releases reach no more than may be unavailable": Expected(20, tight=20),  # each run with a crash has some
    "nothing is deleted that is still asked for": Expected(100),
    "few clusters hold what none has proven": Expected(300, tight=40),
    "what works is changed only while enough others do": Expected(100, tight=1),
    "a Deployment is changed only as the hub has decided": Expected(1000, tight=200),
    "a binding says what the member's own Deployment says": Expected(100, tight=10),
    "a rollout that stands still names whom it waits for": Expected(50, tight=1),
    "an explanation contradicts neither itself nor the facts": Expected(1000, tight=200),
}

STAGING: Mapping[str, Expected] = {
    "no more clusters of a stage move than may": Expected(300, tight=40),
    "clusters begin in their order": Expected(300, tight=60),
    "no cluster before the gates before it": Expected(300, tight=40),
    "no wait is cut short": Expected(50, tight=1),
    "nothing begins unapproved": Expected(300, tight=40),
    "an approval that was taken back does not count": Expected(1, asked=40),
    "nothing begins in a run that was stopped": Expected(15, asked=150),
    "two runs never move a placement at once": Expected(300, tight=40),
    "a binding is moved only as a run has said before": Expected(1000, tight=200),
    "a binding is taken away only as a run has said before": Expected(100, tight=1),
    "resources keep what they hold": Expected(5, asked=60),
    "a run that is said to be taken back is so": Expected(1),
    "a cluster is done only if its binding says so": Expected(1000, tight=200),
    "a run goes by the stages it began with": Expected(1000, tight=200),
    "a move is of the version that was looked at": Expected(1000, tight=200),
    "nobody undoes what another has said": Expected(1000, tight=200),
    "available only if the member's own Deployment was": Expected(1000, tight=200),
    "nothing is deleted that is still asked for": Expected(20, tight=15),  # each run with a crash has some
    "a gate opens only while its stage works": Expected(100, tight=1, asked=100),
    "a run that stands still says what it waits for": Expected(50, tight=1),
    "an explanation contradicts neither itself nor the facts": Expected(1000, tight=200),
}


ZONING: Mapping[str, Expected] = {
    OUTDATED: Expected(300, tight=20),
    ONE_ZONE: Expected(300, tight=20),
    BUDGET: Expected(200, tight=10),
    UNPROVEN: Expected(100, tight=5),
    PREPARED: Expected(100, tight=15),
    APART: Expected(50, tight=5),
}


BATCHING: Mapping[str, Expected] = {
    FLOOR: Expected(100, tight=5),
    CEILING: Expected(100, tight=5),
    PROOF: Expected(100, tight=5),
    PARTITION: Expected(50, tight=1),
    GATES: Expected(100, tight=5),
    BATCHES_PAUSED: Expected(1, asked=100),
    NOTED: Expected(100, tight=5),
    OWN: Expected(300, tight=30),
}


ALIGNING: Mapping[str, Expected] = {
    align_promises.FLOOR: Expected(300, tight=10),
    align_promises.CEILING: Expected(300, tight=20),
    align_promises.PARTITION: Expected(50, tight=1),
    align_exposure.EXPOSED: Expected(10),
    align_promises.VALID: Expected(1000, tight=200),
    align_promises.PAUSED: Expected(5, asked=100),
    align_promises.FORTH: Expected(5, asked=1),
    align_promises.NOTED: Expected(1000, tight=200),
}


def tight_tests(counts: Counts, promise: str) -> int:
    return counts["promise", promise, "tight"]


def times_asked(counts: Counts, promise: str) -> int:
    """How often a promise was put to the test, tight or not."""
    return tight_tests(counts, promise) + counts["promise", promise, "asked"]


def is_too_rare(expected: Expected, seeds: int) -> bool:
    """Whether so many seeds say nothing about a promise."""
    return seeds < IN_A_TEST_RUN or not (expected.tight or expected.asked)


def untested(counts: Counts, promises: Mapping[str, Expected], seeds: int) -> Iterator[str]:
    """The promises that so many seeds of a soak have not put to enough tight tests."""
    for promise, expected in promises.items():
        found, least = tight_tests(counts, promise), expected.soak * seeds / 300
        if found < least:
            yield f"{promise}: {found} tight tests, and there should be {least:g}"


# Faults


def roles_hit(counts: Counts, fault: str) -> set[str]:
    """Whose writes a fault hit."""
    return {link_role(name[1]) for name in _hits(counts, fault)}


def hits_runs(counts: Counts, fault: str) -> bool:
    """Whether a fault hit a write of a staged run by the hub."""
    written = (name[3].partition(" ")[2] for name in _hits(counts, fault) if link_role(name[1]) == HUB)
    return any(what.startswith(RUNS) for what in written)


def _hits(counts: Counts, fault: str) -> Iterator[tuple[str, ...]]:
    return (name for name in counts if name[0] == "fault" and name[2] == fault and is_write(name[3]))


def roles_surely_hit(fault: str) -> frozenset[str]:
    """Whose writes a fault hits in any 40 seeds: agents write little to their members, and partitions are rare."""
    if fault == "partitions":
        return frozenset({AGENT_TO_HUB})
    return EVERYBODY if fault in ("slow", "crash") else frozenset({HUB, AGENT_TO_HUB})


def unhit_in_rolling(counts: Counts) -> Iterator[str]:
    for fault in FAULTS:
        if missed := EVERYBODY - roles_hit(counts, fault):
            yield f"{fault} hit no write of {', '.join(sorted(missed))}"


def unhit_in_staging(counts: Counts) -> Iterator[str]:
    for fault in FAULTS:
        if not hits_runs(counts, fault):
            yield f"{fault} hit no write of a staged run"
