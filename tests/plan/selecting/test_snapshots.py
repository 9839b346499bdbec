"""Numbers of snapshots: which is the newest, what comes next, and which may be forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.fleet import IS_LATEST
from kedge.api.meta import ObjectMeta
from kedge.api.scheduling import PlacementPolicy, PlacementType, Toleration
from kedge.plan.placing.policies import number_of_clusters, policy_hash
from kedge.plan.selecting.snapshots import (
    NumberedSnapshot,
    newest_snapshot,
    numbered_snapshots,
    snapshot_change,
    surplus_snapshots,
)


def revision(index: int, content: str, latest: bool | None = None) -> NumberedSnapshot:
    labels = {} if latest is None else {IS_LATEST: str(latest).lower()}
    return NumberedSnapshot(ObjectMeta(name=f"r{index}", labels=labels), index, content)


A0, B1, B1_MARKED = revision(0, "a", False), revision(1, "b", False), revision(1, "b", True)


@pytest.mark.parametrize(
    ("known", "wanted", "unlabel", "label", "make"),
    [
        ([], "a", [], None, 0),
        ([revision(0, "a", True)], "a", [], None, None),
        ([revision(0, "a", True)], "b", [0], None, 1),
        ([A0, B1_MARKED], "a", [1], None, 2),  # what was once is a new number
        ([A0, B1], "b", [], 1, None),  # a crash took the label off, and what it was for is no longer wanted
        ([A0, B1], "c", [], None, 2),  # the same, and it is
        ([revision(0, "a", True), B1_MARKED], "b", [0], None, None),
        ([revision(0, "a", True), B1_MARKED], "c", [0, 1], None, 2),
        ([revision(0, "a", True), B1], "a", [], None, None),
        ([revision(7, "a", True)], "b", [7], None, 8),
    ],
)
def test_the_snapshot_change_for_each_situation(
    known: list[NumberedSnapshot], wanted: str, unlabel: list[int], label: int | None, make: int | None
) -> None:
    found = snapshot_change(known, wanted)
    assert [each.index for each in found.unlabel] == unlabel
    assert (found.label.index if found.label else None, found.create_index) == (label, make)


def test_a_number_that_is_referred_to_is_not_used_again() -> None:
    """Somebody deleted what it meant; clusters have it still."""
    assert snapshot_change([], "b", {0}).create_index == 1
    assert snapshot_change([A0], "b", {3, 1}).create_index == 4
    assert snapshot_change([revision(7, "a", True)], "b", {3}).create_index == 8


HISTORIES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=6).map(
    lambda each: [revision(index, content, latest) for index, (content, latest) in enumerate(each)]
)


@given(HISTORIES, st.sampled_from("abc"))
def test_after_the_change_one_snapshot_is_the_latest_and_has_the_wanted_content(
    known: list[NumberedSnapshot], wanted: str
) -> None:
    found = snapshot_change(known, wanted)
    after = [
        revision(each.index, each.hash, each is found.label or (each.is_labelled and each not in found.unlabel))
        for each in known
    ]
    if found.create_index is not None:
        assert found.create_index > max((each.index for each in known), default=-1)
        after.append(revision(found.create_index, wanted, True))
    assert [each.hash for each in after if each.is_labelled] == [wanted]
    assert snapshot_change(after, wanted).create_index is None


@given(HISTORIES, st.integers(1, 4), st.sets(st.integers(0, 6)))
def test_the_latest_and_needed_snapshots_are_kept(known: list[NumberedSnapshot], limit: int, needed: set[int]) -> None:
    gone = surplus_snapshots(known, limit, needed)
    left = [each for each in known if each not in gone]
    assert not {each.index for each in gone} & needed
    assert newest_snapshot(known) not in gone
    assert known[-limit:] == left[-limit:] if known else not gone
    assert all(each.index in needed or each is newest_snapshot(known) for each in left[: max(0, len(left) - limit)])


@pytest.mark.parametrize(
    ("limit", "needed", "gone"),
    [
        (10, (), []), (4, (), []), (3, (), [0]), (2, (), [0, 1]), (1, (), [0, 1, 2]), (0, (), [0, 1, 2]),
        (1, (1,), [0, 2]), (2, (0, 1), []),
    ],
)  # fmt: skip
def test_the_oldest_snapshots_are_removed_first(limit: int, needed: tuple[int, ...], gone: list[int]) -> None:
    known = [revision(index, "x", index == 3) for index in range(4)]
    assert [each.index for each in surplus_snapshots(known, limit, needed)] == gone


def test_the_latest_stays_even_if_others_have_higher_numbers() -> None:
    known = [revision(0, "a", True), revision(1, "b", False), revision(2, "c", False)]
    assert [each.index for each in surplus_snapshots(known, 1, ())] == [1]


def test_a_snapshot_without_a_number_is_left_alone() -> None:
    metas = [ObjectMeta(name="b", generation=1), ObjectMeta(name="stray"), ObjectMeta(name="a", generation=0)]
    found = numbered_snapshots(metas, lambda meta: {"a": 0, "b": 1}.get(meta.name), lambda meta: meta.name)
    assert [(each.index, each.hash) for each in found] == [(0, "a"), (1, "b")]


def test_numberOfClusters_is_not_part_of_the_policy_hash() -> None:
    one = PlacementPolicy(placement_type=PlacementType.pick_n, number_of_clusters=1)
    two = PlacementPolicy(placement_type=PlacementType.pick_n, number_of_clusters=2)
    other = PlacementPolicy(
        placement_type=PlacementType.pick_n, number_of_clusters=1, tolerations=(Toleration(key="a"),)
    )
    assert policy_hash(one) == policy_hash(two) != policy_hash(other)
    assert policy_hash(None) != policy_hash(PlacementPolicy())
    assert [number_of_clusters(each) for each in (one, two, None, PlacementPolicy())] == ["1", "2", None, None]
