"""What an object covers, and what changed between two."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.ownership.things import POD, THING, leaves, thing
from kedge.embedded.ownership.compare import Comparison, all_fields, applied_fields, compare
from kedge.embedded.ownership.field_set import FieldSet, union

A_PART = 'k:{"kind":"plain","name":"a"}'
ANOTHER = 'k:{"kind":"other","name":"a"}'


def spec(fields: Any) -> FieldSet:
    return {"f:spec": fields}


def here(below: Any) -> FieldSet:
    """Owned itself, too."""
    return {".": {}, **below}


def covered(value: Any) -> FieldSet:
    """What applying this spec covers, of the spec."""
    found: FieldSet = applied_fields(THING.schema, {"spec": value}).get("f:spec", {})
    return found


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"count": 1}, leaves("count")),
        ({"text": None}, leaves("text")),
        ({"order": ["x"]}, leaves("order")),
        ({"order": []}, leaves("order")),
        ({"names": ["v", "u"]}, {"f:names": {'v:"u"': {}, 'v:"v"': {}}}),
        ({"names": []}, {}),
        ({"whole": {"i": 1}}, leaves("whole")),
        ({"table": {"i": 1}}, {"f:table": leaves("i")}),
        ({"table": {}}, leaves("table")),
        ({"deep": {"x": {"y": 1}}}, {"f:deep": {"f:x": leaves("y")}}),
        ({"deep": {"x": {}}}, {"f:deep": leaves("x")}),
        ({"deep": {}}, leaves("deep")),
        ({"deep": None}, leaves("deep")),
        ({"port": "http"}, leaves("port")),
        ({"parts": [{"name": "a"}]}, {"f:parts": {A_PART: here(leaves("name"))}}),
        ({"parts": [{"name": "a", "kind": "other"}]}, {"f:parts": {ANOTHER: here(leaves("name", "kind"))}}),
        ({"parts": [{"name": "a", "more": {}}]}, {"f:parts": {A_PART: here(leaves("name", "more"))}}),
        ({"free": {"m": {"p": [1]}}}, {"f:free": {"f:m": here(leaves("p"))}}),
        ({"free": {"m": [{"a": 1}]}}, {"f:free": leaves("m")}),
        ({"half": {"known": {"k": "1"}}}, {"f:half": {"f:known": leaves("k")}}),
        ({"half": {"known": {"u": {"v": 1}}}}, {"f:half": {"f:known": {"f:u": here(leaves("v"))}}}),
        ({"manifest": {"metadata": {"labels": {"a": "1"}}}}, {"f:manifest": {"f:metadata": {"f:labels": leaves("a")}}}),
        ({"manifest": {"data": {"z": "1"}}}, {"f:manifest": {"f:data": here(leaves("z"))}}),
    ],
)
def test_applying_covers_the_ends_and_the_items_and_free_members_on_the_way(value: Any, fields: Any) -> None:
    assert covered(value) == fields


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"count": 1}, leaves("count")),
        ({"names": ["u"]}, {"f:names": here({'v:"u"': {}})}),
        ({"names": []}, leaves("names")),
        ({"whole": {"i": 1}}, leaves("whole")),
        ({"deep": {"x": {"y": 1}}}, {"f:deep": here({"f:x": here(leaves("y"))})}),
        ({"deep": {"x": {}}}, {"f:deep": here(leaves("x"))}),
        ({"parts": [{"name": "a"}]}, {"f:parts": here({A_PART: here(leaves("name"))})}),
        ({"parts": [{"name": "a", "size": 1}, {"name": "a", "size": 2}]}, {"f:parts": here({A_PART: {}})}),
    ],
)
def test_making_covers_every_part(value: Any, fields: Any) -> None:
    assert all_fields(THING.schema, {"spec": value}) == {"f:spec": here(fields)}


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        ({"count": 1}, {"count": 1}, {}, {}, {}),
        ({"count": 1}, {"count": 2}, {}, leaves("count"), {}),
        ({}, {"count": 1}, leaves("count"), {}, {}),
        ({"count": 1}, {}, {}, {}, leaves("count")),
        ({"text": "a"}, {"text": None}, {}, leaves("text"), {}),
        ({"order": ["x"]}, {"order": ["x", "y"]}, {}, leaves("order"), {}),
        ({"whole": {"i": 1}}, {"whole": {"j": 1}}, {}, leaves("whole"), {}),
        ({"table": {"i": 1}}, {"table": {"j": 1}}, {"f:table": leaves("j")}, {}, {"f:table": leaves("i")}),
        ({"table": {"i": 1}}, {"table": {}}, {}, {}, {"f:table": leaves("i")}),
        ({"table": {}}, {"table": None}, {}, leaves("table"), {}),
        ({"names": ["u", "v"]}, {"names": ["v", "u"]}, {}, {}, {}),
        ({"names": ["u"]}, {"names": ["v"]}, {"f:names": {'v:"v"': {}}}, {}, {"f:names": {'v:"u"': {}}}),
        (
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a", "size": 2}]},
            {},
            {"f:parts": {A_PART: leaves("size")}},
            {},
        ),
        (
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a", "kind": "other"}]},
            {"f:parts": {ANOTHER: here(leaves("name", "kind"))}},
            {},
            {"f:parts": {A_PART: here(leaves("name"))}},
        ),
        (
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a", "kind": "plain"}]},
            {"f:parts": {A_PART: leaves("kind")}},
            {},
            {},
        ),
        (
            {"parts": [{"name": "a"}, {"name": "a"}]},
            {"parts": [{"name": "a"}]},
            {"f:parts": {A_PART: here(leaves("name"))}},
            {},
            {"f:parts": leaves() | {A_PART: {}}},
        ),
        ({"parts": [{"name": "a", "size": 1}] * 2}, {"parts": [{"name": "a"}] * 2}, {}, {"f:parts": {A_PART: {}}}, {}),
        ({"free": {"m": {"p": 1}}}, {"free": {"m": 5}}, {}, {"f:free": leaves("m")}, {"f:free": {"f:m": leaves("p")}}),
        ({"free": {"m": 5}}, {"free": {"m": {"p": 1}}}, {"f:free": {"f:m": leaves("p")}}, {"f:free": leaves("m")}, {}),
        ({"free": {"m": 1}}, {"free": {"m": True}}, {}, {"f:free": leaves("m")}, {}),
        ({"free": {"m": 1}}, {"free": {"m": 1.0}}, {}, {}, {}),
        ({"port": 1}, {"port": "1"}, {}, leaves("port"), {}),
    ],
)
def test_what_changed(old: Any, new: Any, added: Any, modified: Any, removed: Any) -> None:
    found = compare(THING.schema, {"spec": old}, {"spec": new})
    wanted = [spec(part) if part else {} for part in (added, modified, removed)]
    assert found == Comparison(*wanted)


def test_a_part_that_is_always_there_does_not_come_into_being_with_the_object() -> None:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}], "securityContext": {}}}
    made = POD.changes(None, pod).given
    assert made == {
        "f:metadata": {"f:labels": here(leaves("a"))},
        "f:spec": {"f:containers": {'k:{"name":"c"}': here(leaves("name"))}, "f:securityContext": {}},
    }


def test_a_port_without_a_protocol_is_a_tcp_port() -> None:
    pod = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}
    ports = applied_fields(POD.schema, pod)["f:spec"]["f:containers"]['k:{"name":"c"}']["f:ports"]
    assert ports == {'k:{"containerPort":80,"protocol":"TCP"}': here(leaves("containerPort"))}


values = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(0, 2),
        "names": st.lists(st.sampled_from("uvw"), unique=True),
        "table": st.dictionaries(st.sampled_from("ij"), st.integers(0, 1)),
        "parts": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("ab")}, optional={"size": st.integers(0, 1)}),
            unique_by=lambda part: str(part["name"]),
        ),
        "free": st.recursive(
            st.none() | st.booleans() | st.integers(0, 1), lambda part: st.dictionaries(st.sampled_from("mn"), part)
        ),
    },
)


@given(values, values)
def test_what_one_way_adds_the_other_removes(one: Any, other: Any) -> None:
    there, back = (compare(THING.schema, thing(a), thing(b)) for a, b in ((one, other), (other, one)))
    assert there.added == back.removed
    assert there.modified == back.modified


@given(values)
def test_making_covers_at_least_what_applying_covers(value: Any) -> None:
    made = all_fields(THING.schema, thing(value))
    assert union(made, applied_fields(THING.schema, thing(value))) == made
