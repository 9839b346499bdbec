"""What a StatefulSet does next: a table of cases, and what holds of every plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.embedded.workloads.stateful_plan import Counts, OrdinalPod, StatefulPlan, Wanted, counts, is_complete, plan

OLD, NEW = "web-old", "web-new"
Set: TypeAlias = dict[int, OrdinalPod]


def pods(text: str) -> tuple[OrdinalPod, ...]:
    """Pods in short: `0n 1n! 2o~ 3oX`: ordinal, revision; ! not ready, ~ terminating, X ended, ? not available."""
    return tuple(_pod(word) for word in text.split())


def _pod(word: str) -> OrdinalPod:
    mark = word[-1] if word[-1] in "!~X?" else ""
    body = word.removesuffix(mark)
    return OrdinalPod(
        ordinal=int(body[:-1]),
        revision={"o": OLD, "n": NEW}[body[-1]],
        ready=mark in ("", "~", "?"),
        available=mark in ("", "~"),
        terminating=mark == "~",
        ended=mark == "X",
        pending=mark == "!",
    )


def in_short(found: StatefulPlan) -> str:
    """`+2n -1` for a plan that makes pod 2 of the new revision and deletes pod 1."""
    made = [f"+{one.ordinal}{'n' if one.revision == NEW else 'o'}" for one in found.create]
    return " ".join([*made, *(f"-{one.ordinal}" for one in found.delete)])


@pytest.mark.parametrize(
    ("wanted", "there", "does", "waits_for"),
    [
        # OrderedReady, scaling up
        ({}, "", "+0n", ""),
        ({}, "0n", "+1n", ""),
        ({}, "0n!", "", "pod 0 to be ready"),
        ({}, "0n?", "", "pod 0 to be available"),
        ({}, "0n 2n", "+1n", ""),
        ({}, "0n 1n 2n", "", ""),
        ({}, "0n 1nX 2n", "-1", "pod 1 to be gone"),
        ({}, "0n 1n~ 2n", "", "pod 1 to be gone"),
        # and down
        ({"replicas": 1}, "0n 1n 2n", "-2", ""),
        ({"replicas": 1}, "0n 1n 2n~", "", "pod 2 to be gone"),
        ({"replicas": 1}, "0n! 1n 2n", "", "pod 0 to be ready"),
        ({"replicas": 1}, "0n 1n 2n!", "-2", ""),
        ({"replicas": 1}, "0n 1n! 2n", "-2", ""),
        ({"replicas": 1}, "0n 1n! 2n!", "", "pod 2 to be ready"),
        ({"replicas": 0}, "0n", "-0", ""),
        # an update
        ({}, "0o 1o 2o", "-2", ""),
        ({}, "0o 1o", "+2n", ""),
        ({}, "0o 1o 2n!", "", "pod 2 to be ready"),
        ({}, "0o 1o 2n", "-1", ""),
        ({}, "0o 1n 2n", "-0", ""),
        ({}, "0o 1o! 2o", "", "pod 1 to be ready"),
        ({"partition": 2}, "0o 1o 2o", "-2", ""),
        ({"partition": 2}, "0o 1o 2n", "", ""),
        ({"partition": 2}, "0o 2n", "+1o", ""),
        ({"partition": 9}, "0o 1o 2o", "", ""),
        ({"partition": 1}, "0n 1n 2n", "", ""),
        ({"on_delete": True}, "0o 1o 2o", "", ""),
        ({"on_delete": True}, "0o 2o", "+1n", ""),
        ({"on_delete": True, "replicas": 1}, "0o 1o", "-1", ""),
        # Parallel
        ({"parallel": True}, "", "+0n +1n +2n", "pod 2 to be ready"),
        ({"parallel": True, "replicas": 1}, "0n! 1n 2n! 3n~", "-2 -1", "pod 0 to be ready"),
        ({"parallel": True}, "0n 1nX 2n", "-1", "pod 1 to be ready"),
        ({"parallel": True}, "0o 1o 2o", "-2", ""),
        ({"parallel": True}, "0o 1o 2n!", "", "pod 2 to be ready"),
        ({"parallel": True}, "0o! 1o! 2n", "-1", ""),
        ({"parallel": True}, "0o 1o 2o~", "", "pod 2 to be gone"),
        ({"parallel": True, "partition": 1}, "0o 1n", "+2n", "pod 2 to be ready"),
        # ordinals that begin elsewhere
        ({"start": 5, "replicas": 2}, "5n", "+6n", ""),
        ({"start": 5, "replicas": 2}, "0n 5n 6n 9n", "-9", ""),
        ({"start": 5, "replicas": 2}, "0n 5n 6n", "-0", ""),
        ({"start": 5, "replicas": 2, "partition": 1}, "5o 6o", "-6", ""),
        ({"start": 5, "replicas": 2, "partition": 1}, "6n", "+5o", ""),
    ],
)
def test_what_a_stateful_set_does_next(wanted: dict[str, object], there: str, does: str, waits_for: str) -> None:
    given_wanted: dict[str, object] = {"replicas": 3, "current": OLD, "update": NEW, **wanted}
    found = plan(Wanted(**given_wanted), pods(there))  # type: ignore[arg-type]
    assert (in_short(found), found.waits_for) == (does, waits_for)


def test_the_claims_of_pending_pods_are_looked_after_as_far_as_the_set_gets() -> None:
    assert plan(Wanted(3, OLD, NEW), pods("0n 1n! 2n!")).claims == (1,)
    assert plan(Wanted(3, OLD, NEW, parallel=True), pods("0n 1n! 2n!")).claims == (1, 2)


@pytest.mark.parametrize(
    ("there", "counted"),
    [
        ("", Counts()),
        ("0o 1o 2o", Counts(3, 3, 3, 3, 0)),
        ("0o 1n! 2n", Counts(3, 2, 2, 1, 2)),
        ("0o 1n? 2n~", Counts(3, 3, 2, 1, 1)),
        ("0nX", Counts(1, 0, 0, 0, 1)),
    ],
)
def test_what_is_counted(there: str, counted: Counts) -> None:
    assert counts(pods(there), OLD, NEW) == counted


@pytest.mark.parametrize(
    ("wanted", "there", "complete"),
    [
        ({}, "0n 1n 2n", True),
        ({}, "0n 1n 2n?", True),  # ready is enough: kube-controller-manager does not wait for minReadySeconds here
        ({}, "0n 1n 2n!", False),
        ({}, "0o 1n 2n", False),
        ({}, "0n 1n 2n 3n", False),
        ({"replicas": 0}, "", True),
        ({"on_delete": True}, "0n 1n 2n", False),
    ],
)
def test_when_an_update_is_complete(wanted: dict[str, object], there: str, complete: bool) -> None:
    given_wanted: dict[str, object] = {"replicas": 3, "current": OLD, "update": NEW, **wanted}
    assert is_complete(Wanted(**given_wanted), counts(pods(there), OLD, NEW)) is complete  # type: ignore[arg-type]


WANTED = st.builds(
    Wanted,
    replicas=st.integers(0, 5),
    current=st.just(OLD),
    update=st.sampled_from([OLD, NEW]),
    start=st.sampled_from([0, 0, 3]),
    partition=st.integers(0, 6),
    parallel=st.booleans(),
    on_delete=st.booleans(),
)
MEMBERS = st.builds(
    OrdinalPod,
    ordinal=st.integers(0, 8),
    revision=st.sampled_from([OLD, NEW]),
    ready=st.booleans(),
    available=st.booleans(),
    terminating=st.booleans(),
    ended=st.booleans(),
    pending=st.booleans(),
)
SETS = st.lists(MEMBERS, max_size=8, unique_by=lambda one: one.ordinal).map(tuple)


@given(WANTED, SETS)
def test_nothing_is_made_twice_deleted_twice_or_outside_of_the_set(
    wanted: Wanted, there: tuple[OrdinalPod, ...]
) -> None:
    found = plan(wanted, there)
    made, gone = [one.ordinal for one in found.create], [one.ordinal for one in found.delete]
    assert set(made) <= set(wanted.ordinals) - {one.ordinal for one in there}
    assert len(made) == len(set(made))
    assert set(found.delete) <= {one for one in there if not one.terminating}
    assert len(gone) == len(set(gone))


@given(WANTED, SETS)
def test_ordered_ready_takes_one_step_and_only_past_pods_that_are_well(
    wanted: Wanted, there: tuple[OrdinalPod, ...]
) -> None:
    wanted = replace(wanted, parallel=False)
    found = plan(wanted, there)
    assert len(found.create) + len(found.delete) <= 1
    for made in found.create:
        below = [one for one in there if wanted.start <= one.ordinal < made.ordinal]
        assert len(below) == made.ordinal - wanted.start
        assert all(one.is_well for one in below)


@given(WANTED, SETS)
def test_an_update_keeps_off_the_partition_and_takes_at_most_one_pod(
    wanted: Wanted, there: tuple[OrdinalPod, ...]
) -> None:
    updated = [one for one in plan(wanted, there).delete if not one.ended and one.ordinal in wanted.ordinals]
    assert len(updated) <= (0 if wanted.on_delete else 1)
    assert all(one.ordinal >= wanted.start + wanted.partition and one.revision != wanted.update for one in updated)


@given(WANTED, SETS)
def test_a_set_that_does_nothing_says_why_unless_it_is_as_wanted(wanted: Wanted, there: tuple[OrdinalPod, ...]) -> None:
    found = plan(wanted, there)
    if found.create or found.delete or found.waits_for:
        return
    assert {one.ordinal for one in there if not one.terminating} >= set(wanted.ordinals)
    beyond = [one for one in there if one.ordinal not in wanted.ordinals]
    assert all(one.terminating for one in beyond)
    free = [] if wanted.on_delete else [one for one in there if one.ordinal >= wanted.start + wanted.partition]
    assert all(one.revision == wanted.update for one in free if one.ordinal in wanted.ordinals)


def well(there: Iterable[OrdinalPod]) -> Set:
    return {one.ordinal: replace(one, ready=True, available=True, pending=False) for one in there}


def carry_out(found: StatefulPlan, there: Set) -> Set:
    gone = {one.ordinal for one in found.delete}
    kept = {ordinal: one for ordinal, one in there.items() if ordinal not in gone}
    return kept | {one.ordinal: replace(one, pending=True) for one in found.create}


@given(WANTED, SETS)
def test_every_set_gets_where_it_should_be_if_its_pods_become_well(
    wanted: Wanted, there: tuple[OrdinalPod, ...]
) -> None:
    now = {one.ordinal: replace(one, terminating=False, ended=False) for one in there}
    for _ in range(40):
        now = carry_out(plan(wanted, now.values()), well(now.values()))
    assert sorted(now) == list(wanted.ordinals)
    if not wanted.on_delete:
        assert all(
            one.revision == wanted.update for one in now.values() if one.ordinal >= wanted.start + wanted.partition
        )


@given(st.integers(0, 5), st.data())
def test_from_nothing_ordered_ready_never_has_two_pods_that_are_not_well(replicas: int, data: st.DataObject) -> None:
    wanted = Wanted(replicas, OLD, NEW)
    now: Set = {}
    for _ in range(20):
        now = carry_out(plan(wanted, now.values()), now)
        assert sum(not one.is_well for one in now.values()) <= 1
        if data.draw(st.booleans()):
            now = well(now.values())
