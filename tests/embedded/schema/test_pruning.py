"""Pruning a sent object as a custom kind."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.openapi.model import Schema
from kedge.embedded.schema.pruning import pruned
from kedge.embedded.schema.type_errors import TypeMismatch

THING = {"type": "object", "properties": {"k": {"type": "string"}}}
KEEPS = {"x-kubernetes-preserve-unknown-fields": True}
WHOLE = {"type": "object", "x-kubernetes-embedded-resource": True}
SPEC = {
    "size": {"type": "integer"},
    "free": {"type": "object", **KEEPS, "properties": {"inner": THING}},
    "tags": {"type": "array", "items": THING},
    "map": {"type": "object", "additionalProperties": THING},
    "bare": {"type": "object"},
    "anything": KEEPS,
    "port": {"x-kubernetes-int-or-string": True},
    "whole": {**WHOLE, **KEEPS},
    "strict": {**WHOLE, "properties": {"spec": THING}},
}
SCHEMA = Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}})


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "a.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def pod(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **members}


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"size": 1, "foo": 1}, {"size": 1}),
        ({"free": {"z": 1}}, {"free": {"z": 1}}),
        ({"free": {"inner": {"k": "x", "b": 1}}}, {"free": {"inner": {"k": "x"}}}),
        ({"tags": [{"k": "a", "z": 1}, {"y": 1}]}, {"tags": [{"k": "a"}, {}]}),
        ({"map": {"m": {"k": "x", "u": 1}}}, {"map": {"m": {"k": "x"}}}),
        ({"bare": {"q": 1}}, {"bare": {}}),
        ({"anything": {"q": {"r": 1.0}}}, {"anything": {"q": {"r": 1.0}}}),
        ({"tags": {"a": 1}}, {"tags": {}}),
        ({"tags": "x"}, {"tags": "x"}),
        ({"size": 1.0}, {"size": 1}),
        ({"size": 1.5}, {"size": 1.5}),
        ({"size": None}, {"size": None}),
        ({"port": "http"}, {"port": "http"}),
        ({"whole": pod(spec={"a": 1})}, {"whole": pod(spec={"a": 1})}),
        ({"whole": pod(metadata={"name": "x", "zed": 1})}, {"whole": pod(metadata={"name": "x"})}),
        ({"strict": pod(spec={"k": "a", "y": 1}, bar=1)}, {"strict": pod(spec={"k": "a"})}),
    ],
)
def test_what_the_schema_does_not_name_goes(spec: dict[str, Any], left: dict[str, Any]) -> None:
    sent = widget(**spec)
    before = copy.deepcopy(sent)
    assert pruned(SCHEMA, sent).obj == widget(**left)
    assert sent == before


def test_an_object_in_order_is_given_back_itself() -> None:
    sent = widget(size=1, tags=[{"k": "a"}], whole=pod(metadata={"name": "x"}))
    found = pruned(SCHEMA, sent)
    assert found.obj is sent
    assert not found.has_unknown


@pytest.mark.parametrize(
    "sent",
    [
        widget(foo=1),
        {**widget(), "bar": 1},
        {**widget(), "metadata": {"name": "w", "zed": 1}},
        widget(whole=pod(metadata={"zed": 1})),
    ],
)
def test_it_says_if_there_was_something_unknown(sent: dict[str, Any]) -> None:
    assert pruned(SCHEMA, sent).has_unknown


def test_what_was_pruned_before_is_not_looked_at_again() -> None:
    before = {**widget(foo=1), "metadata": {"name": "w", "zed": 1}}
    assert pruned(SCHEMA, dict(before), before).obj == before


def test_what_is_new_is_pruned_though_the_rest_was_before() -> None:
    before = widget(size=1)
    found = pruned(SCHEMA, {**before, "spec": {"size": 1, "foo": 1}}, before)
    assert found.obj == before
    assert found.obj["metadata"] is before["metadata"]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        (
            {"ownerReferences": [{"controller": "x"}]},
            "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
    ],
)
def test_metadata_has_types(metadata: Any, words: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        pruned(SCHEMA, {**widget(), "metadata": metadata})
    assert str(caught.value) == words


def test_metadata_of_an_object_inside_has_types_and_a_place() -> None:
    with pytest.raises(TypeMismatch) as caught:
        pruned(SCHEMA, widget(whole=pod(metadata={"labels": {"a": 1}})))
    why = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    assert str(caught.value) == f'spec.whole.metadata: Invalid value: {{"labels":{{"a":1}}}}: {why}'


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "inner", "spec", "z"]), inner, max_size=3)
    ),
    max_leaves=8,
)
specs = st.dictionaries(st.sampled_from([*(name for name in SPEC if name not in ("whole", "strict")), "foo"]), values)


@given(specs)
def test_what_was_pruned_has_nothing_left_to_prune(spec: dict[str, Any]) -> None:
    once = pruned(SCHEMA, widget(**spec)).obj
    again = pruned(SCHEMA, once)
    assert again.obj is once
    assert not again.has_unknown
