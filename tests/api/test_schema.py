"""The structural schema of a type: one test for each thing a marker or a type can say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import pytest
from msgspec import Struct, field

from kedge.api.dialect import Dialect
from kedge.api.markers import Edition, Rule, Schema, said_of
from kedge.api.meta import ObjectMeta, Value
from kedge.api.schema import SchemaError, object_schema

V1 = Edition("v1", Dialect.seed)
V2 = Edition("v2", Dialect.seed)
V2_FLEET = Edition("v2", Dialect.kubefleet)


class Colour(StrEnum):
    """Not in the order of the alphabet."""

    red = "Red"
    blue = "Blue"


class Part(Value, frozen=True):
    """A part."""

    key: str
    """What it is called."""
    size: int = 0


class Everything(Value, frozen=True):
    """All that a type can say.

    This paragraph is for programmers.
    """

    text: Annotated[str, Schema(min_length=1, max_length=9, pattern="^x")]
    """Some
    text.
    """
    number: Annotated[int, Schema(minimum=0, maximum=5, default=3, format="int32")] = 3
    flag: bool = False
    ratio: float = 0.0
    moment: datetime | None = None
    colour: Annotated[Colour, Schema(default=Colour.blue)] = Colour.blue
    share: Annotated[int | str, Schema(pattern="%$", default="")] = ""
    share_or_none: int | str | None = None
    inner: Annotated[str, Schema(max_length=5)] | None = None
    parts: Annotated[tuple[Part, ...], Schema(list_type="map", list_map_keys=("key",), max_items=2, min_items=1)] = ()
    names: Annotated[tuple[Annotated[str, Schema(max_length=3)], ...], Schema(list_type="set")] = ()
    whole: Annotated[
        Part | None, Schema(map_type="atomic", rules=(Rule("self.size > 0", "size must be positive"),))
    ] = None
    amounts: Annotated[Mapping[str, int], Schema(min_properties=1, max_properties=4)] = field(default_factory=dict)
    anything: Mapping[str, Any] = field(default_factory=dict)
    embedded: Annotated[Mapping[str, Any], Schema(embedded_resource=True)] = field(default_factory=dict)
    maybe: Annotated[str | None, Schema(nullable=True)] = None
    filled: Annotated[str, Schema(required=True, default="x")] = "x"
    late: Annotated[str | None, Schema(absent=True, versions=("v1",))] = None
    spoken: Annotated[
        str,
        Schema(max_length=1, default="a"),
        Schema(max_length=2, versions=("v2",)),
        Schema(default=None, versions=("v2",), dialect=Dialect.kubefleet),
    ] = "a"
    api_group: str = field(name="APIGroup", default="")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def node(name: str, edition: Edition = V1) -> dict[str, Any]:
    """What the schema says of a field, its description apart."""
    properties: dict[str, dict[str, Any]] = object_schema(Everything, edition)["properties"]
    return {word: value for word, value in properties[name].items() if word != "description"}


PART = {
    "description": "A part.",
    "type": "object",
    "required": ["key"],
    "properties": {"key": {"description": "What it is called.", "type": "string"}, "size": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text", {"type": "string", "pattern": "^x", "minLength": 1, "maxLength": 9}),
        ("number", {"type": "integer", "default": 3, "format": "int32", "minimum": 0, "maximum": 5}),
        ("flag", {"type": "boolean"}),
        ("ratio", {"type": "number"}),
        ("moment", {"type": "string", "format": "date-time"}),
        ("colour", {"type": "string", "enum": ["Red", "Blue"], "default": "Blue"}),
        (
            "share",
            {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "default": "",
                "pattern": "%$",
                "x-kubernetes-int-or-string": True,
            },
        ),
        (
            "shareOrNone",
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
        ),
        ("inner", {"type": "string", "maxLength": 5}),
        (
            "parts",
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": PART,
                "x-kubernetes-list-map-keys": ["key"],
                "x-kubernetes-list-type": "map",
            },
        ),
        ("names", {"type": "array", "items": {"type": "string", "maxLength": 3}, "x-kubernetes-list-type": "set"}),
        (
            "amounts",
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 4,
                "additionalProperties": {"type": "integer"},
            },
        ),
        ("anything", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (
            "embedded",
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
        ("maybe", {"type": "string", "nullable": True}),
        ("filled", {"type": "string", "default": "x"}),
        ("APIGroup", {"type": "string"}),
    ],
)
def test_a_field_says(name: str, expected: dict[str, Any]) -> None:
    assert node(name) == expected


def test_a_rule_carries_its_message() -> None:
    whole = node("whole")
    assert whole["x-kubernetes-validations"] == [{"rule": "self.size > 0", "message": "size must be positive"}]
    assert whole["x-kubernetes-map-type"] == "atomic"


def test_a_field_without_a_default_is_required_and_others_if_they_say_so() -> None:
    assert object_schema(Everything, V1)["required"] == ["filled", "text"]


def test_a_field_may_exist_in_some_versions_only() -> None:
    assert "late" not in object_schema(Everything, V1)["properties"]
    assert node("late", V2) == {"type": "string"}


@pytest.mark.parametrize(
    ("edition", "expected"),
    [
        (V1, {"type": "string", "default": "a", "maxLength": 1}),
        (V2, {"type": "string", "default": "a", "maxLength": 2}),
        (V2_FLEET, {"type": "string", "maxLength": 2}),
    ],
)
def test_a_later_marker_wins_where_it_speaks_and_none_takes_back(edition: Edition, expected: dict[str, Any]) -> None:
    assert node("spoken", edition) == expected


def test_markers_that_say_nothing_say_nothing() -> None:
    assert said_of(V1, (Schema(), Schema(versions=("v1",), dialect=Dialect.seed))) == {}


def test_every_object_has_what_all_objects_have_and_no_schema_for_metadata() -> None:
    properties = object_schema(Everything, V1)["properties"]
    assert list(properties)[:3] == ["apiVersion", "kind", "metadata"]
    assert properties["metadata"] == {"type": "object"}


def test_descriptions_are_the_first_paragraph_on_one_line() -> None:
    schema = object_schema(Everything, V1)
    assert schema["description"] == "All that a type can say."
    assert schema["properties"]["text"]["description"] == "Some text."


def test_a_marker_on_the_whole_object_ends_up_there() -> None:
    rule = Rule("self.metadata.name != ''", "name it")
    assert (
        object_schema(Everything, V1, (Schema(rules=(rule,)),))["x-kubernetes-validations"][0]["message"] == "name it"
    )


def test_words_come_in_one_order() -> None:
    assert list(node("number")) == ["type", "default", "format", "minimum", "maximum"]
    assert list(object_schema(Everything, V1)) == ["description", "type", "required", "properties"]


def test_what_is_given_out_is_nobody_elses() -> None:
    node("share")["anyOf"].clear()
    assert node("share")["anyOf"]


class Loop(Value, frozen=True):
    """Holds itself."""

    inside: Loop | None = None


class Odd(Struct, frozen=True):
    """Holds what no schema can say."""

    odd: complex = 0j


class Pair(Value, frozen=True):
    odd: tuple[int, str] = (0, "")


class IntKeys(Value, frozen=True):
    odd: Mapping[int, str] = field(default_factory=dict)


class IntOrBool(Value, frozen=True):
    odd: int | bool | str = 0


class LengthOfNumber(Value, frozen=True):
    odd: Annotated[int, Schema(max_length=5)] = 0


class ItemsOfText(Value, frozen=True):
    odd: Annotated[str, Schema(max_items=5)] = ""


class ListTypeOfObject(Value, frozen=True):
    odd: Annotated[Part | None, Schema(list_type="atomic")] = None


class BadDefault(Value, frozen=True):
    odd: Annotated[Colour, Schema(default="Green")] = Colour.red


class MapWithoutKeys(Value, frozen=True):
    odd: Annotated[tuple[Part, ...], Schema(list_type="map")] = ()


class KeysWithoutMap(Value, frozen=True):
    odd: Annotated[tuple[Part, ...], Schema(list_type="set", list_map_keys=("key",))] = ()


class OptionalKey(Value, frozen=True):
    odd: Annotated[tuple[Part, ...], Schema(list_type="map", list_map_keys=("size",))] = ()


class UnknownKey(Value, frozen=True):
    odd: Annotated[tuple[Part, ...], Schema(list_type="map", list_map_keys=("name",))] = ()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Loop, "inside: Loop holds itself"),
        (Odd, "odd: no structural schema can say"),
        (Pair, "odd: no structural schema can say"),
        (IntKeys, "odd: no structural schema can say"),
        (IntOrBool, "odd: no structural schema can say"),
        (LengthOfNumber, "odd: maxLength says nothing about type integer"),
        (ItemsOfText, "odd: maxItems says nothing about type string"),
        (ListTypeOfObject, "odd: x-kubernetes-list-type says nothing about type object"),
        (BadDefault, "odd: the default 'Green' is none of"),
        (MapWithoutKeys, "odd: a list of type map needs its keys"),
        (KeysWithoutMap, "odd: a list of type map needs its keys"),
        (OptionalKey, "odd: the list's key 'size' must be a required or defaulted field"),
        (UnknownKey, "odd: the list's key 'name' must be a required or defaulted field"),
    ],
)
def test_what_no_schema_can_say_is_refused_by_its_path(kind: type[Struct], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        object_schema(kind, V1)
