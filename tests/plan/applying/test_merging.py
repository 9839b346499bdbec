"""Three-way merges, for any objects. What they come to on servers is in tests/contract/test_three_way_merges.py."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kedge.api.openapi.model import ANY, Schema
from kedge.plan.applying.merging import three_way

LIST: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-patch-merge-key": "name",
    "x-kubernetes-patch-strategy": "merge",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}},
}
WITH_LISTS = Schema({"type": "object", "properties": {"env": LIST, "plain": {"type": "array"}}})
NAMES = st.sampled_from("abcd")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
ITEMS = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"value": st.integers(0, 3)}), max_size=4)
LISTS = ITEMS.map(lambda items: {"env": list({item["name"]: item for item in items}.values())})


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def holds(target: Any, wanted: Any) -> bool:
    """Whether the target says all that is asked for."""
    if isinstance(wanted, dict) and isinstance(target, dict):
        return all(
            name not in target if value is None else name in target and holds(target[name], value)
            for name, value in wanted.items()
        )
    return bool(target == without_nulls(wanted))


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_all_that_is_asked_for_is_there(last: Any, wanted: Any, live: Any) -> None:
    assert holds(three_way(ANY, last, wanted, live), wanted)


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_what_nobody_asked_for_stays_and_what_is_no_longer_asked_for_goes(last: Any, wanted: Any, live: Any) -> None:
    target = three_way(ANY, last, wanted, live)
    for name in live.keys() - wanted.keys():
        assert (name in target) is (name not in last)
        assert target.get(name) in (live[name], None)
    assert target.keys() <= live.keys() | wanted.keys()


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_doing_it_again_changes_nothing(last: Any, wanted: Any, live: Any) -> None:
    target = three_way(ANY, last, wanted, live)
    assert three_way(ANY, wanted, wanted, target) == target


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_what_is_merged_is_not_changed_itself(last: Any, wanted: Any, live: Any) -> None:
    before = repr((last, wanted, live))
    three_way(ANY, last, wanted, live)
    assert repr((last, wanted, live)) == before


@given(LISTS, LISTS, LISTS)
def test_items_of_others_stay_and_ours_come_in_the_order_asked_for(last: Any, wanted: Any, live: Any) -> None:
    names = [item["name"] for item in three_way(WITH_LISTS, last, wanted, live)["env"]]
    asked, told = ([item["name"] for item in each["env"]] for each in (wanted, last))
    theirs = [item["name"] for item in live["env"] if item["name"] not in (*asked, *told)]
    assert [name for name in names if name in asked] == asked
    assert [name for name in names if name not in asked] == theirs


@given(LISTS, LISTS, LISTS)
def test_merging_lists_again_changes_nothing(last: Any, wanted: Any, live: Any) -> None:
    target = three_way(WITH_LISTS, last, wanted, live)
    assert three_way(WITH_LISTS, wanted, wanted, target) == target


def test_items_that_cannot_be_told_apart_make_the_list_one_thing() -> None:
    wanted = {"env": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}
    live = {"env": [{"name": "b", "value": 3}]}
    assert three_way(WITH_LISTS, {}, wanted, live) == wanted


def test_true_is_not_one() -> None:
    assert three_way(ANY, {}, {"a": True}, {"a": 1}) == {"a": True}
    assert three_way(ANY, {}, {"a": [1]}, {"a": [True]})["a"][0] is not True
