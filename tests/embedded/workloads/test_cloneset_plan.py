"""What a CloneSet does next: a table of cases, and what holds of every plan and of every rollout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.embedded.workloads.cloneset_plan import (
    CloneCounts,
    ClonePlan,
    ClonePod,
    WantedClones,
    counts,
    is_complete,
    plan,
)

OLD, NEW = "web-old", "web-new"
REVISIONS = {"o": OLD, "n": NEW, "x": "web-other"}


def pods(text: str) -> tuple[ClonePod, ...]:
    """Pods in short: `3o 2n! o? oS`: a number of pods, their revision; ! not ready, ? not available, S stuck."""
    made = [one for word in text.split() for one in _pods(word)]
    return tuple(ClonePod(f"p{number}", *one) for number, one in enumerate(made))


def _pods(word: str) -> list[tuple[str, bool, bool, bool]]:
    mark = word[-1] if word[-1] in "!?S" else ""
    body = word.removesuffix(mark)
    number = int(body[:-1] or 1)
    return [(REVISIONS[body[-1]], mark != "!", mark in ("", "S"), mark == "S")] * number


def wanted(replicas: int = 10, **more: Any) -> WantedClones:
    return WantedClones(**{"replicas": replicas, "current": OLD, "update": NEW, "max_unavailable": 2, **more})


def in_short(found: ClonePlan) -> str:
    """`+2o +1n -3o >2o` for a plan that creates 2 old pods and a new one, deletes 3 old and updates 2 old pods."""
    short = {revision: letter for letter, revision in REVISIONS.items()}
    words = [
        f"+{number}{letter}" for letter, number in (("o", found.create_current), ("n", found.create_update)) if number
    ]
    for sign, chosen in (("-", found.delete), (">", found.update)):
        for letter in "oxn":
            those = [pod for pod in chosen if short[pod.revision] == letter]
            well = sum(pod.available for pod in those)
            words += [
                f"{sign}{number}{letter}{mark}" for number, mark in ((len(those) - well, "!"), (well, "")) if number
            ]
    return " ".join(words)


@pytest.mark.parametrize(
    ("spec", "there", "does"),
    [
        # The number of pods
        ({}, "", "+10n"),
        ({}, "7n", "+3n"),
        ({}, "10n", ""),
        ({}, "12n", "-2n"),
        ({"replicas": 0, "max_unavailable": 0}, "3n", "-3n"),
        ({"replicas": 0}, "", ""),
        ({}, "11n n!", "-1n! -1n"),  # what is not available goes first
        ({"max_unavailable": 0}, "9n 3n!", "-2n!"),
        ({"max_unavailable": 0}, "8n 4n!", "-2n!"),
        # Scaling with a partition: old pods first while there are too few
        ({"partition": 4}, "", "+4o +6n"),
        ({"partition": 4}, "2o", "+2o +6n"),
        ({"partition": 4}, "4o 2n", "+4n"),
        ({"partition": 4}, "5o 2n", "+3n"),
        ({"partition": 10}, "6o", "+4o"),
        ({"partition": 4}, "6n", "+4o"),
        ({"partition": 4}, "3o 8n", "-1n"),
        ({"partition": 4}, "6o 6n", "-2o"),
        ({"partition": 4}, "5o 8n", "-1o -2n"),
        ({"partition": 4}, "4o 8n", "-2n"),
        # An update, within maxUnavailable
        ({}, "10o", ">2o"),
        ({"max_unavailable": 3}, "10o", ">3o"),
        ({}, "8o", "+2n"),
        ({}, "8o 2n!", ""),
        ({}, "8o 2n?", ""),
        ({}, "8o n n!", ">1o"),
        ({}, "8o 2n", ">2o"),
        ({}, "o 9n", ">1o"),
        ({}, "4o 4x 2n", ">2o"),  # any revision but the new one is old
        # An old pod that is not available is updated for nothing
        ({}, "10o!", ">10o!"),
        ({}, "5o 5o!", ">5o!"),
        ({}, "7o 3o!", ">3o!"),
        ({}, "9o o!", ">1o! >1o"),
        ({"max_unavailable": 0, "max_surge": 1}, "9o o! n!", ">1o!"),
        # The partition
        ({"partition": 4}, "10o", ">2o"),
        ({"partition": 9}, "10o", ">1o"),
        ({"partition": 10}, "10o", ""),
        ({"partition": 4}, "5o 5n", ">1o"),
        ({"partition": 4}, "4o 6n", ""),
        ({"partition": 4}, "2o 2o! 6n", ""),  # nor are those replaced that are kept back
        ({"partition": 9}, "10o!", ">1o!"),
        # Surge
        ({"max_surge": 2}, "10o", "+2n"),
        ({"max_surge": 2}, "10o 2n!", ">2o"),
        ({"max_surge": 2, "max_unavailable": 0}, "10o 2n!", ""),
        ({"max_surge": 2, "max_unavailable": 0}, "10o n n!", ">1o"),
        ({"max_surge": 2, "max_unavailable": 0}, "10o 2n", ">2o"),
        ({"max_surge": 2, "max_unavailable": 0}, "8o 2n", "+2n"),
        ({"max_surge": 2, "max_unavailable": 0}, "2o 10n", "-2o"),
        ({"max_surge": 2, "max_unavailable": 0}, "2o 9n n!", "-1o"),
        ({"max_surge": 5, "partition": 8}, "10o", "+2n"),  # no more than there are to update
        ({"max_surge": 5, "partition": 8}, "10o 2n", "-2o"),
        ({"max_surge": 5, "partition": 8}, "10o n", ">1o"),
        ({"max_surge": 5}, "10n", ""),
        # Paused, or OnDelete: the number of pods is kept, and nothing else
        ({"updates": False}, "10o", ""),
        ({"updates": False}, "10o!", ""),
        ({"updates": False, "max_surge": 2}, "10o", ""),
        ({"updates": False}, "8o", "+2n"),
        ({"updates": False, "partition": 10}, "8o", "+2o"),
        ({"updates": False}, "12o", "-2o"),
        ({"updates": False, "partition": 6}, "4o 6n", ""),
        # The partition grew: back
        ({"partition": 6}, "4o 6n", ">2n"),
        ({"partition": 10}, "4o 6n", ">2n"),
        ({"partition": 10}, "4o 6n!", ">6n!"),
        ({"partition": 10}, "6o 4n", ">2n"),
        ({"partition": 10}, "8o", "+2o"),
        ({"partition": 6, "max_surge": 1}, "4o 6n", "+1o"),
        ({"partition": 6, "max_surge": 1, "max_unavailable": 0}, "5o 6n", ">1n"),
        ({"partition": 6, "max_surge": 1, "max_unavailable": 0}, "4o o! 6n", ""),
        ({"partition": 6, "max_surge": 1, "max_unavailable": 0}, "6o 5n", "-1n"),
        ({"partition": 6, "partition_rollback": False}, "4o 6n", ""),
        ({"partition": 6, "current": NEW}, "4x 6n", ""),  # nothing to go back to
        ({"partition": 6, "partition_rollback": False}, "4o 5n", "+1o"),
        # In place only, and it is impossible
        ({}, "10oS", ""),
        ({}, "9oS o", ">1o"),
        ({}, "12oS", "-2o"),
    ],
)
def test_what_a_clone_set_does_next(spec: dict[str, Any], there: str, does: str) -> None:
    assert in_short(plan(wanted(**spec), pods(there))) == does


def test_of_pods_alike_the_first_goes_first() -> None:
    there = pods("3o")
    assert plan(wanted(3, max_unavailable=1), there).update == there[:1]
    assert plan(wanted(2, max_unavailable=1, partition=2), there).delete == there[:1]


def test_an_update_says_where_to() -> None:
    assert plan(wanted(), pods("10o")).target == NEW
    assert plan(wanted(partition=10), pods("4o 6n")).target == OLD
    assert plan(wanted(), pods("10n")) == ClonePlan()


def test_pods_are_counted() -> None:
    assert counts(pods("2o o! n n? n!"), NEW) == CloneCounts(6, 4, 3, 3, 2, 1)
    assert counts((), NEW) == CloneCounts()


@pytest.mark.parametrize(
    ("replicas", "there", "complete"),
    [
        (3, "3n", True),
        (3, "3n!", True),
        (3, "2n", False),
        (3, "2n o", False),
        (3, "3n o", False),
        (0, "", True),
        (3, "4n", False),
    ],
)
def test_an_update_is_complete_when_all_pods_are_new(replicas: int, there: str, complete: bool) -> None:
    assert is_complete(replicas, counts(pods(there), NEW)) is complete


# What always holds

clones = st.builds(
    lambda revision, state: (revision, state != "!", state == ""),
    st.sampled_from([OLD, NEW, "web-other"]),
    st.sampled_from(["", "", "?", "!"]),
)


@st.composite
def sets(draw: st.DrawFn) -> WantedClones:
    replicas = draw(st.integers(0, 8))
    unavailable, surge = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return WantedClones(
        replicas,
        OLD,
        NEW,
        partition=draw(st.integers(0, replicas)),
        max_unavailable=unavailable if unavailable or surge else 1,
        max_surge=surge,
        updates=draw(st.booleans()),
        partition_rollback=draw(st.booleans()),
    )


def carried_out(found: ClonePlan, spec: WantedClones, there: tuple[ClonePod, ...], number: int) -> tuple[ClonePod, ...]:
    """The pods after a plan: those that are updated are gone, those that are created are not ready."""
    left = [pod for pod in there if pod not in (*found.delete, *found.update)]
    made = [spec.current] * found.create_current + [spec.update] * found.create_update
    return (*left, *(ClonePod(f"m{number}-{one}", revision) for one, revision in enumerate(made)))


@given(sets(), st.lists(clones, max_size=14))
def test_no_plan_takes_more_than_it_may(spec: WantedClones, found: list[tuple[str, bool, bool]]) -> None:
    there = tuple(ClonePod(f"p{number}", *one) for number, one in enumerate(found))
    decided = plan(spec, there)
    after = carried_out(decided, spec, there, 0)
    before = counts(there, NEW)
    then = counts(after, NEW)
    assert then.available >= min(before.available, spec.replicas - spec.max_unavailable)
    assert then.replicas <= max(before.replicas, spec.replicas + spec.max_surge)
    moved = len(decided.update) if decided.target == NEW else 0
    assert then.updated + moved <= max(before.updated, spec.to_update)
    assert sum(map(bool, (decided.create_current + decided.create_update, decided.delete, decided.update))) <= 1
    assert spec.updates or not decided.update
    assert not decided.update or decided.target in (OLD, NEW)


@given(sets(), st.lists(clones, max_size=14), st.booleans())
def test_every_set_comes_to_rest_as_it_should_be(
    spec: WantedClones, found: list[tuple[str, bool, bool]], in_place: bool
) -> None:
    """All pods become available between two steps. What surges is limited by the replicas, and comes to an end."""
    there = tuple(ClonePod(f"p{number}", *one) for number, one in enumerate(found))
    for number in range(100):
        there = tuple(ClonePod(pod.name, pod.revision, True, True) for pod in there)
        decided = plan(spec, there)
        if decided == ClonePlan():
            break
        after = carried_out(decided, spec, there, number)
        kept = tuple(ClonePod(pod.name, decided.target) for pod in decided.update) if in_place else ()
        there = (*after, *kept)
    else:
        raise AssertionError("it never comes to rest")
    ended = counts(there, NEW)
    assert ended.replicas == spec.replicas
    if spec.updates and spec.partition_rollback:
        assert ended.updated == spec.to_update
    elif spec.updates:
        assert ended.updated >= spec.to_update
