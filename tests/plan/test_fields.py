"""Merge patches of plain objects: one that replaces, several as one, and the part that changes something."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.embedded.json_patch import merge_patch
from kedge.plan.fields import changed, covers, merged, patched, replacement

VALUES = st.recursive(
    st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=1) | st.booleans(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
PATCHES = st.dictionaries(st.sampled_from("abc"), VALUES | st.none(), max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_replacement_leaves_nothing_of_the_old_map(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge_patch(old, replacement(old, new)) == new


@given(OBJECTS, PATCHES, PATCHES)
def test_several_patches_as_one_do_what_they_do_one_after_the_other(
    obj: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    if any(value is None or not isinstance(value, type(one.get(key, value))) for key, value in other.items()):
        return  # a map over a null, or the other way round, is not the same
    if any(one.get(key, 0) is None for key in other):
        return
    assert merge_patch(obj, merged(one, other)) == merge_patch(merge_patch(obj, one), other)


@pytest.mark.parametrize(
    ("patches", "whole"),
    [
        (({"a": 1}, {"a": 2}), {"a": 2}),
        (({"a": {"b": 1}}, {"a": {"c": 2}}), {"a": {"b": 1, "c": 2}}),
        (({"a": {"b": 1}}, {"a": None}), {"a": None}),
        (({"a": [1]}, {"a": [2]}, {"b": 3}), {"a": [2], "b": 3}),
        (({"a": 1},), {"a": 1}),
    ],
)
def test_a_later_patch_has_the_last_word(patches: tuple[dict[str, Any], ...], whole: dict[str, Any]) -> None:
    assert merged(*patches) == whole


@pytest.mark.parametrize(
    ("patch", "left"),
    [
        ({"a": 1}, {}),
        ({"a": 2}, {"a": 2}),
        ({"m": {"x": 1, "y": 3}}, {"m": {"y": 3}}),
        ({"m": {"x": 1}}, {}),
        ({"m": None}, {"m": None}),
        ({"z": None}, {}),
        ({"m": {"z": None}}, {}),
        ({"l": [1]}, {}),
        ({"l": [2]}, {"l": [2]}),
        ({"z": {"q": 1}}, {"z": {"q": 1}}),
        ({"a": {"q": 1}}, {"a": {"q": 1}}),
    ],
)
def test_only_what_changes_something_is_left(patch: dict[str, Any], left: dict[str, Any]) -> None:
    obj = {"a": 1, "m": {"x": 1, "y": 2}, "l": [1]}
    assert changed(obj, patch) == left
    assert merge_patch(obj, changed(obj, patch)) == merge_patch(obj, patch)


def test_nothing_is_removed_from_a_map_that_is_not_there() -> None:
    assert changed({"a": 1}, {"z": {"q": None}}) == {}
    assert changed({"a": 1}, {"z": {"q": None, "r": {"s": None}, "t": 1}}) == {"z": {"t": 1}}


@pytest.mark.parametrize(
    ("obj", "patch", "wanted"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    ],
)
def test_a_patch_merges_maps_and_replaces_everything_else(obj: Any, patch: Any, wanted: Any) -> None:
    assert patched(obj, patch) == wanted


@pytest.mark.parametrize(
    ("obj", "wanted", "is_covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": {"b": [{"c": 1, "d": 2}]}}, {"a": {"b": [{"c": 1}]}}, True),
        ({"a": {"b": [{"c": 1}, {"c": 2}]}}, {"a": {"b": [{"c": 1}]}}, False),
        ({"a": None}, {"a": {}}, True),
        ({}, {"a": None}, True),
        ({"a": 1}, {"a": {"b": 1}}, False),
        ({"a": {"b": 1}}, {"a": [1]}, False),
    ],
)
def test_an_object_covers_what_it_has_all_of(obj: object, wanted: object, is_covered: bool) -> None:
    assert covers(obj, wanted) is is_covered
