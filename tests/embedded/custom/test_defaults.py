"""Defaults: what a schema fills in, and that it changes nothing else."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.custom.everything import GOOD, SCHEMA, whole
from kedge.api.openapi.model import Schema
from kedge.embedded.custom.defaults import with_schema_defaults

TEXT = {"type": "string", "default": "x"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "plain": {"type": "object", "properties": {"a": TEXT}},
    "nullable": {"type": "object", "properties": {"a": {**TEXT, "nullable": True}}},
    "without": {"type": "object", "properties": {"a": {"type": "string"}}},
    "nested": {"type": "object", "properties": {"o": {"type": "object", "default": {}, "properties": {"a": TEXT}}}},
    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
    "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
    "items": {"type": "array", "items": TEXT},
}


@pytest.mark.parametrize(
    ("schema", "value", "made"),
    [
        ("plain", {}, {"a": "x"}),
        ("plain", {"a": "y"}, {"a": "y"}),
        ("plain", {"a": None}, {"a": "x"}),
        ("plain", {"b": 1}, {"a": "x", "b": 1}),
        ("plain", "no object", "no object"),
        ("nullable", {"a": None}, {"a": None}),
        ("nullable", {}, {"a": "x"}),
        ("without", {"a": None}, {}),
        ("without", {"a": ""}, {"a": ""}),
        ("nested", {}, {"o": {"a": "x"}}),
        ("nested", {"o": {"a": None}}, {"o": {"a": "x"}}),
        ("map", {"k": {}, "l": {"a": "y"}}, {"k": {"a": "x"}, "l": {"a": "y"}}),
        ("texts", {"k": None}, {}),
        ("list", [{}, {"a": "y"}, 5], [{"a": "x"}, {"a": "y"}, 5]),
        ("items", [None, "y"], ["x", "y"]),
    ],
)
def test_what_is_missing_is_filled_in(schema: str, value: Any, made: Any) -> None:
    before = copy.deepcopy(value)
    assert with_schema_defaults(Schema(SCHEMAS[schema]), value) == made
    assert value == before


@pytest.mark.parametrize("name", GOOD)
def test_completing_twice_is_completing_once(name: str) -> None:
    schema = Schema(SCHEMA)
    once = with_schema_defaults(schema, whole("x", GOOD[name]))
    assert with_schema_defaults(schema, once) is once


def test_what_is_untouched_is_shared() -> None:
    inner = {"a": "y"}
    made = with_schema_defaults(Schema(SCHEMAS["map"]), {"k": {}, "l": inner})
    assert made["l"] is inner


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("aokl"), inner, max_size=3),
    max_leaves=8,
)


@given(name=st.sampled_from(sorted(SCHEMAS)), value=JSON)
def test_any_value_can_be_completed_and_only_once(name: str, value: Any) -> None:
    schema, before = Schema(SCHEMAS[name]), copy.deepcopy(value)
    once = with_schema_defaults(schema, value)
    assert with_schema_defaults(schema, once) is once
    assert value == before
