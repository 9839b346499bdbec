"""Patches, held to the examples of their RFCs, to small models of them, and to what kube-apiserver makes of them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.embedded.json_patch import json_patch, merge_patch, same_json
from kedge.embedded.statuses import Refused

KEYS = st.sampled_from(["a", "b", "c", "a/b", "m~n", "", "-", "0", "1"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "0"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)

RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7386)
def test_merge_patches_do_what_their_rfc_shows(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


RFC_6902 = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}], {"foo": "bar", "baz": "qux"}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
    ({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC_6902)
def test_json_patches_do_what_their_rfc_shows(target: Any, patch: Any, result: Any) -> None:
    assert json_patch(target, patch) == result


LENIENT = [
    ({"l": [1, 2, 3]}, [{"op": "replace", "path": "/l/-1", "value": 9}], {"l": [1, 2, 9]}),
    ({"l": [1, 2, 3]}, [{"op": "remove", "path": "/l/-1"}], {"l": [1, 2]}),
    ({"l": [1, 2]}, [{"op": "add", "path": "/l/-1", "value": 9}], {"l": [1, 2, 9]}),
    ({"l": [1, 2]}, [{"op": "add", "path": "/l/01", "value": 9}], {"l": [1, 9, 2]}),
    ({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}], {"a": {"b": 1}}),
    ({}, [{"op": "test", "path": "/a", "value": None}], {}),
    ({}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}),
    ({}, [{"op": "add", "path": "/a"}], {"a": None}),
    ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    ({"f": 1.0}, [{"op": "test", "path": "/f", "value": 1}], {"f": 1.0}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": 1}, [], {"a": 1}),
]


@pytest.mark.parametrize(("target", "patch", "result"), LENIENT)
def test_json_patches_are_as_lenient_as_those_of_kube_apiserver(target: Any, patch: Any, result: Any) -> None:
    assert json_patch(target, patch) == result


IMPOSSIBLE = [
    {"op": "test", "path": "/s", "value": "other"},
    {"op": "test", "path": "/t", "value": 1},
    {"op": "test", "path": "/none/of", "value": None},
    {"op": "test", "path": "", "value": {}},
    {"op": "replace", "path": "/l/5", "value": 1},
    {"op": "replace", "path": "/l/-", "value": 1},
    {"op": "replace", "path": "/s/x", "value": 1},
    {"op": "add", "path": "/l/4", "value": 9},
    {"op": "add", "path": "/l/x", "value": 9},
    {"op": "add", "path": "/l/-5", "value": 9},
    {"op": "add", "path": "/s/x", "value": 9},
    {"op": "add", "path": "/n/x", "value": 9},
    {"op": "add", "path": "/none/of", "value": 9},
    {"op": "add", "path": "", "value": {}},
    {"op": "add", "path": "s", "value": 9},
    {"op": "add", "value": 9},
    {"op": "remove", "path": "/none"},
    {"op": "remove", "path": "/l/3"},
    {"op": "remove", "path": "/l/-"},
    {"op": "remove", "path": ""},
    {"op": "remove", "path": "/s/x"},
    {"op": "move", "from": "/none", "path": "/y"},
    {"op": "move", "from": "/o", "path": "/o/inner"},
    {"op": "copy", "path": "/y"},
    {"op": "copy", "from": "/none/of", "path": "/y"},
    {"op": "ADD", "path": "/y", "value": 1},
    {"path": "/y", "value": 1},
    {},
]


@pytest.mark.parametrize("operation", IMPOSSIBLE, ids=str)
def test_a_json_patch_that_cannot_be_carried_out_is_refused(operation: dict[str, Any]) -> None:
    target = {"s": "x", "t": True, "n": None, "l": [1, 2, 3], "o": {"inner": 1}}
    with pytest.raises(Refused) as refused:
        json_patch(target, [{"op": "add", "path": "/first", "value": 1}, operation])
    assert refused.value.code == 422


# A model of RFC 7386: its own pseudocode, on copies.
def merge_model(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            if name in target:
                del target[name]
        else:
            target[name] = merge_model(target.get(name), value)
    return target


@given(VALUES, VALUES)
def test_merge_patches_agree_with_the_model(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    result = merge_patch(target, patch)
    assert same_json(result, merge_model(copy.deepcopy(target), copy.deepcopy(patch)))
    assert (target, patch) == before


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A merge patch from one object to another."""
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        there: Any = old.get(key)
        nested = isinstance(value, dict) and isinstance(there, dict)
        patch[key] = difference(there, value) if nested else value
    return patch


def has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_null, value.values()))
    return value is None


@given(OBJECTS, OBJECTS.filter(lambda value: not has_null(value)))
def test_a_merge_patch_can_turn_any_object_into_any_other_without_nulls(old: Any, new: Any) -> None:
    assert same_json(merge_patch(old, difference(old, new)), new)


# A model of RFC 6902, strict: changes a copy in place, one operation at a time.
def strict_model(target: Any, operations: list[dict[str, Any]]) -> Any:
    document = {"": copy.deepcopy(target)}

    def resolve(pointer: str) -> tuple[Any, Any]:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
        place: Any = document
        for step in steps[:-1]:
            place = place[int(step) if isinstance(place, list) else step]
        last = steps[-1]
        if isinstance(place, list):
            return place, len(place) if last == "-" else int(last)
        if not isinstance(place, dict):
            raise TypeError(place)
        return place, last

    def put(pointer: str, value: Any) -> None:
        place, step = resolve(pointer)
        if isinstance(place, list):
            if not 0 <= step <= len(place):
                raise IndexError(step)
            place.insert(step, value)
        else:
            place[step] = value

    def get(pointer: str) -> Any:
        place, step = resolve(pointer)
        return place[step]

    def drop(pointer: str) -> Any:
        place, step = resolve(pointer)
        return place.pop(step)

    for operation in operations:
        match operation["op"]:
            case "add":
                put(operation["path"], copy.deepcopy(operation["value"]))
            case "remove":
                drop(operation["path"])
            case "replace":
                place, step = resolve(operation["path"])
                place[step] = copy.deepcopy(operation["value"])
            case "move":
                put(operation["path"], drop(operation["from"]))
            case "copy":
                put(operation["path"], copy.deepcopy(get(operation["from"])))
    return document[""]


def places(value: Any, so_far: str = "") -> list[str]:
    """Pointers to everything in a value but the whole."""
    inner: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        inner = [(key.replace("~", "~0").replace("/", "~1"), child) for key, child in value.items()]
    elif isinstance(value, list):
        inner = [(str(index), child) for index, child in enumerate(value)]
    return [place for key, child in inner for place in (f"{so_far}/{key}", *places(child, f"{so_far}/{key}"))]


def containers(value: Any) -> list[str]:
    """Pointers behind which something can be added."""
    grown = [f"{place}/{key}" for place in ("", *places(value)) for key in ("new", "-")]
    return grown + places(value)


@given(st.data(), OBJECTS)
def test_json_patches_agree_with_the_model(data: st.DataObject, target: dict[str, Any]) -> None:
    document: Any = target
    operations: list[dict[str, Any]] = []
    for _ in range(data.draw(st.integers(1, 5))):
        operation = data.draw(an_operation(document))
        try:
            document = strict_model(target, [*operations, operation])
        except (KeyError, IndexError, TypeError, ValueError):
            with pytest.raises(Refused):
                json_patch(target, [*operations, operation])
            continue
        operations.append(operation)
    before = copy.deepcopy((target, operations))
    assert same_json(json_patch(target, operations), document)
    assert (target, operations) == before


@st.composite
def an_operation(draw: st.DrawFn, document: Any) -> dict[str, Any]:
    """One that may be possible, in the part of the language where Kubernetes is no more lenient than the RFC."""
    there = places(document)
    op = draw(st.sampled_from(["add", "remove", "replace", "move", "copy"] if there else ["add"]))
    place = draw(st.sampled_from(containers(document) if op in ("add", "move", "copy") else there))
    operation: dict[str, Any] = {"op": op, "path": place}
    if op in ("add", "replace"):
        operation["value"] = draw(VALUES)
    if op in ("move", "copy"):
        operation["from"] = draw(st.sampled_from(there))
    return operation


@given(VALUES, VALUES)
def test_the_same_json_is_the_same_both_ways_and_true_is_not_one(one: Any, other: Any) -> None:
    assert same_json(one, copy.deepcopy(one))
    assert same_json(one, other) == same_json(other, one)
    assert not same_json([True, one], [1, one])
