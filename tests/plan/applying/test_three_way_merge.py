"""Three-way merges, for any objects. What they come to on servers is in tests/contract/test_three_way_merges.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.openapi.model import ANY, Schema
from kedge.plan.applying.three_way_merge import three_way_merge

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
def test_everything_asked_for_is_in_the_result(last: Any, wanted: Any, live: Any) -> None:
    assert holds(three_way_merge(ANY, last, wanted, live), wanted)


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_fields_of_others_stay_and_fields_no_longer_asked_for_are_removed(last: Any, wanted: Any, live: Any) -> None:
    target = three_way_merge(ANY, last, wanted, live)
    for name in live.keys() - wanted.keys():
        assert (name in target) is (name not in last)
        assert target.get(name) in (live[name], None)
    assert target.keys() <= live.keys() | wanted.keys()


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_merging_twice_changes_nothing(last: Any, wanted: Any, live: Any) -> None:
    target = three_way_merge(ANY, last, wanted, live)
    assert three_way_merge(ANY, wanted, wanted, target) == target


@given(OBJECTS, OBJECTS, OBJECTS.map(without_nulls))
def test_merging_changes_no_argument(last: Any, wanted: Any, live: Any) -> None:
    before = repr((last, wanted, live))
    three_way_merge(ANY, last, wanted, live)
    assert repr((last, wanted, live)) == before


@given(LISTS, LISTS, LISTS)
def test_items_of_others_stay_and_ours_come_in_the_order_asked_for(last: Any, wanted: Any, live: Any) -> None:
    names = [item["name"] for item in three_way_merge(WITH_LISTS, last, wanted, live)["env"]]
    asked, told = ([item["name"] for item in each["env"]] for each in (wanted, last))
    theirs = [item["name"] for item in live["env"] if item["name"] not in (*asked, *told)]
    assert [name for name in names if name in asked] == asked
    assert [name for name in names if name not in asked] == theirs


@given(LISTS, LISTS, LISTS)
def test_merging_lists_again_changes_nothing(last: Any, wanted: Any, live: Any) -> None:
    target = three_way_merge(WITH_LISTS, last, wanted, live)
    assert three_way_merge(WITH_LISTS, wanted, wanted, target) == target


def test_a_list_with_items_without_keys_is_replaced() -> None:
    wanted = {"env": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}
    live = {"env": [{"name": "b", "value": 3}]}
    assert three_way_merge(WITH_LISTS, {}, wanted, live) == wanted


def test_true_and_one_are_different_values() -> None:
    assert three_way_merge(ANY, {}, {"a": True}, {"a": 1}) == {"a": True}
    assert three_way_merge(ANY, {}, {"a": [1]}, {"a": [True]})["a"][0] is not True


PORTS = {
    "type": "array",
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "port",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"default": "TCP"}}},
}
MOUNTS = {
    "type": "array",
    "x-kubernetes-patch-strategy": "merge,retainKeys",
    "x-kubernetes-patch-merge-key": "name",
    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
KIND = Schema(
    {
        "type": "object",
        "properties": {
            "labels": MAP,
            "struct": {"type": "object", "properties": {"x": {}, "y": {}}},
            "env": LIST,
            "plain": {"type": "array"},
            "finalizers": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}},
            "ports": PORTS,
            "mounts": MOUNTS,
            "exclusive": {
                "type": "object",
                "x-kubernetes-patch-strategy": "retainKeys",
                "properties": {"x": {}, "y": {}},
            },
            "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace", "properties": {"x": {}, "y": {}}},
            "unnamed": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
            "amount": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
        },
    },
    {"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"}},
)
NOTHING: dict[str, Any] = {}


def named(**values: int) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


MERGES: dict[str, tuple[Any, Any, Any, Any]] = {  # last, wanted, live, and what becomes of it
    "others' fields stay": (NOTHING, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    "what is no longer asked for goes": ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1}),
    "null takes away": (NOTHING, {"a": None}, {"a": 1, "b": 2}, {"b": 2}),
    "null in a new map": (NOTHING, {"a": {"x": None, "y": [{"z": None}]}}, NOTHING, {"a": {"y": [{}]}}),
    "a map where a text was": (NOTHING, {"a": {"x": 1}}, {"a": "text"}, {"a": {"x": 1}}),
    "maps merge": ({"m": {"x": 1, "y": 1}}, {"m": {"x": 2}}, {"m": {"x": 1, "y": 1, "z": 3}}, {"m": {"x": 2, "z": 3}}),
    "the last was no map": ({"m": 1}, {"m": {"x": 2}}, {"m": {"y": 1}}, {"m": {"x": 2, "y": 1}}),
    "others' labels stay": ({"labels": {"a": "1"}}, NOTHING, {"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "2"}}),
    "no labels are left": ({"labels": {"a": "1"}}, NOTHING, {"labels": {"a": "1"}}, NOTHING),
    "a struct goes whole": ({"struct": {"x": 1}}, NOTHING, {"struct": {"x": 1, "y": 2}}, NOTHING),
    "no map any more": ({"labels": {"a": "1"}}, NOTHING, {"labels": "text"}, NOTHING),
    "others' items stay": ({"env": named(a=1)}, NOTHING, {"env": named(a=1, b=2)}, {"env": named(b=2)}),
    "no items are left": ({"env": named(a=1)}, NOTHING, {"env": named(a=1)}, NOTHING),
    "a plain list goes whole": ({"plain": [1]}, NOTHING, {"plain": [1, 2]}, NOTHING),
    "no list any more": ({"env": named(a=1)}, NOTHING, {"env": "text"}, NOTHING),
    "the last was no list": ({"env": "text"}, NOTHING, {"env": named(a=1)}, NOTHING),
    "an empty list that nobody has": (NOTHING, {"plain": []}, NOTHING, NOTHING),
    "an empty list where one is": (NOTHING, {"plain": []}, {"plain": [1]}, {"plain": []}),
    "an empty map that nobody has": (NOTHING, {"labels": {}}, NOTHING, NOTHING),
    "an empty struct means something": (NOTHING, {"struct": {}}, NOTHING, {"struct": {}}),
    "an empty map where a list is meant": (NOTHING, {"plain": {}}, NOTHING, {"plain": {}}),
    "an empty list where a map is meant": (NOTHING, {"labels": []}, NOTHING, {"labels": []}),
    "a list that is not empty": (NOTHING, {"plain": [1]}, NOTHING, {"plain": [1]}),
    "a map that is not empty": (NOTHING, {"labels": {"a": "1"}}, NOTHING, {"labels": {"a": "1"}}),
    "keys that exclude each other": (
        NOTHING, {"exclusive": {"x": 1}}, {"exclusive": {"y": 2}}, {"exclusive": {"x": 1}},
    ),
    "replaced as a whole": (NOTHING, {"whole": {"x": 1}}, {"whole": {"y": 2}}, {"whole": {"x": 1}}),
    "items merge": (NOTHING, {"env": [{"name": "a"}]}, {"env": named(a=1)}, {"env": named(a=1)}),
    "what an item no longer has": (
        {"env": named(a=1)}, {"env": [{"name": "a"}]}, {"env": named(a=1)}, {"env": [{"name": "a"}]},
    ),
    "items that exclude each other": (
        NOTHING, {"mounts": [{"name": "a", "x": 1}]}, {"mounts": [{"name": "a", "y": 2}]},
        {"mounts": [{"name": "a", "x": 1}]},
    ),
    "an item was no map before": ({"env": ["a"]}, {"env": named(a=2)}, {"env": named(a=1)}, {"env": named(a=2)}),
    "names of their own": (
        {"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "c"]}, {"finalizers": ["c", "b"]},
    ),
    "things that have no name": (NOTHING, {"finalizers": [["b"]]}, {"finalizers": ["a"]}, {"finalizers": [["b"]]}),
    "ports by number and protocol": (
        NOTHING, {"ports": [{"port": 1, "protocol": "UDP"}]}, {"ports": [{"port": 1}]},
        {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 1}]},
    ),
    "a default counts as a name": (
        NOTHING, {"ports": [{"port": 1, "x": 1}]}, {"ports": [{"port": 1, "protocol": "TCP"}]},
        {"ports": [{"port": 1, "protocol": "TCP", "x": 1}]},
    ),
    "an item without its key": (NOTHING, {"ports": [{"x": 1}]}, {"ports": [{"port": 1}]}, {"ports": [{"x": 1}]}),
    "an item with a strange key": (
        NOTHING, {"ports": [{"port": []}]}, {"ports": [{"port": 1}]}, {"ports": [{"port": []}]},
    ),
    "an item that is no map": (NOTHING, {"env": ["a"]}, {"env": named(a=1)}, {"env": ["a"]}),
    "items nothing is known of": (
        NOTHING, {"unnamed": [{"name": "a", "x": 1}]}, {"unnamed": [{"name": "a", "y": 2}, {"name": "b"}]},
        {"unnamed": [{"name": "a", "y": 2, "x": 1}, {"name": "b"}]},
    ),
    "an amount in other words": (NOTHING, {"amount": "1000m"}, {"amount": "1"}, {"amount": "1"}),
    "another amount": (NOTHING, {"amount": "2"}, {"amount": "1"}, {"amount": "2"}),
    "no amount at all": (NOTHING, {"amount": "many"}, {"amount": "more"}, {"amount": "many"}),
    "the same in other words elsewhere": (NOTHING, {"text": "1000m"}, {"text": "1"}, {"text": "1000m"}),
}  # fmt: skip


@pytest.mark.parametrize(("last", "wanted", "live", "target"), MERGES.values(), ids=MERGES)
def test_three_way_merges_of_known_kinds(last: Any, wanted: Any, live: Any, target: Any) -> None:
    assert three_way_merge(KIND, last, wanted, live) == target


@pytest.mark.parametrize(
    ("wanted", "live", "stays"),
    [
        ([{"x": 1}], [{"x": 1}], True),
        ([{"x": 1}], [{"x": 1, "y": 1}], False),
        ([{"x": 1, "y": 2}], [{"x": 1, "y": 3}], False),
        ([{"x": 1, "y": 2}], [{"x": 3, "y": 2}], False),
        ([1, 2], [1, 3], False),
        ([1, 2], [3, 2], False),
        ([1], [1, 2], False),
        ([1], [True], False),
        ([{"x": 1}], [{"x": True}], False),
        (["a"], {"a": 1}, False),
    ],
)
def test_an_object_that_is_as_asked_for_does_not_change(wanted: Any, live: Any, stays: bool) -> None:
    found = three_way_merge(ANY, {}, {"a": wanted}, {"a": live})["a"]
    assert (found is live) is stays
    assert found == wanted


def test_new_items_take_the_places_of_removed_ones() -> None:
    def order(last: str, wanted: str, live: str) -> str:
        given = ({"env": [{"name": name} for name in names]} for names in (last, wanted, live))
        return "".join(item["name"] for item in three_way_merge(KIND, *given)["env"])

    assert order("ab", "cd", "abx") == "xcd"
    assert order("a", "bc", "axy") == "xybc"
    assert order("", "bc", "xcy") == "bxcy"
