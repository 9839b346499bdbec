"""Sets of fields: read, written, joined and told apart as Kubernetes does."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.embedded.ownership import field_set
from kedge.embedded.ownership.field_set import (
    FieldSet,
    Malformed,
    difference,
    encode,
    intersection,
    is_superset,
    parse_fields_v1,
    path_text,
    paths,
    recursive_difference,
    union,
)

STEPS = ["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'v:"y"', "v:2", "v:true", "i:0", "i:10", "i:9"]
ways = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map(tuple)
some_ways = st.lists(ways, max_size=6)
sets = some_ways.map(field_set.field_set)


def all_of(one: FieldSet) -> set[tuple[str, ...]]:
    return set(paths(one))


@given(some_ways)
def test_a_set_is_its_places(chosen: list[tuple[str, ...]]) -> None:
    assert all_of(field_set.field_set(chosen)) == set(chosen)


@given(sets, sets)
def test_sets_are_joined_and_told_apart_place_by_place(one: FieldSet, other: FieldSet) -> None:
    assert all_of(union(one, other)) == all_of(one) | all_of(other)
    assert all_of(difference(one, other)) == all_of(one) - all_of(other)
    assert all_of(intersection(one, other)) == all_of(one) & all_of(other)
    assert is_superset(one, other) == (all_of(one) >= all_of(other))


@given(sets, sets)
def test_without_takes_all_that_lies_below(one: FieldSet, other: FieldSet) -> None:
    gone = all_of(other)
    left = {way for way in all_of(one) if not any(way[:length] in gone for length in range(1, len(way) + 1))}
    assert all_of(recursive_difference(one, other)) == left


@given(sets, sets)
def test_nothing_is_changed_in_place(one: FieldSet, other: FieldSet) -> None:
    before = encode(one), encode(other)
    for combine in (union, difference, intersection, recursive_difference):
        combine(one, other)
    assert (encode(one), encode(other)) == before


@given(sets)
def test_what_is_written_is_read_back_and_written_the_same(one: FieldSet) -> None:
    read = parse_fields_v1(msgspec.json.decode(encode(one)))
    assert read == one
    assert encode(read) == encode(one)


@given(some_ways)
def test_the_order_of_places_does_not_show(chosen: list[tuple[str, ...]]) -> None:
    assert encode(field_set.field_set(chosen)) == encode(field_set.field_set(reversed(chosen)))


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ({}, b"{}"),
        ({"f:b": {}, "f:a": {}}, b'{"f:a":{},"f:b":{}}'),
        ({"f:a": {"f:b": {}, ".": {}}}, b'{"f:a":{".":{},"f:b":{}}}'),
        ({"f:a": {".": {}}}, b'{"f:a":{}}'),
        ({'v:"x"': {}, "v:10": {}, "v:9": {}, "v:true": {}}, rb'{"v:9":{},"v:10":{},"v:\"x\"":{},"v:true":{}}'),
        ({"i:10": {}, "i:9": {}, "f:a": {}}, b'{"f:a":{},"i:9":{},"i:10":{}}'),
        ({'k:{"port":443}': {}, 'k:{"port":80}': {}}, rb'{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}'),
        ({'k:{"b":1,"a":"x"}': {}}, rb'{"k:{\"a\":\"x\",\"b\":1}":{}}'),
        ({'k:{"name":"<"}': {}}, rb'{"k:{\"name\":\"\\u003c\"}":{}}'),
        ({"x:future": {}, "f:a": {}}, b'{"f:a":{}}'),
    ],
)
def test_a_set_is_written_in_the_order_kubernetes_writes_it(raw: Any, written: bytes) -> None:
    assert encode(parse_fields_v1(raw)) == written


@pytest.mark.parametrize(
    "raw",
    [{"a": {}}, {"": {}}, {"f": {}}, {"data": {}}, {"k:[]": {}}, {"k:{": {}}, {"v:x": {}}, {"i:x": {}}, {"f:a": 1}, []],
)
def test_what_is_no_set_is_refused(raw: Any) -> None:
    with pytest.raises(Malformed):
        parse_fields_v1(raw)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (["f:spec", "f:replicas"], ".spec.replicas"),
        (["f:spec", "f:containers", 'k:{"name":"web"}', "f:image"], '.spec.containers[name="web"].image'),
        (["f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'], '.ports[containerPort=80,protocol="TCP"]'),
        (["f:metadata", "f:finalizers", 'v:"x.io/y"'], '.metadata.finalizers[="x.io/y"]'),
        (["f:metadata", "f:labels", "f:app.kubernetes.io/name"], ".metadata.labels.app.kubernetes.io/name"),
        (["f:list", "i:3"], ".list[3]"),
    ],
)
def test_messages_name_a_place(way: list[str], said: str) -> None:
    assert path_text(way) == said


def test_places_of_one_level_come_before_what_lies_below() -> None:
    found = field_set.field_set([["f:b", "f:x"], ["f:a", "f:x", "f:y"], ["f:c"], ["f:a", "f:z"]])
    assert [path_text(way) for way in paths(found)] == [".c", ".a.z", ".a.x.y", ".b.x"]
