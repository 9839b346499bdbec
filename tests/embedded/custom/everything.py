"""A kind whose schema says everything a schema can say, and objects of it: good ones, bad ones, and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from embedded.custom.definitions import KEYED, TEXT, Object, definition

MEMBERS: Mapping[str, Object] = {
    "text": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "choice": {"type": "string", "enum": ["red", "green"]},
    "level": {"type": "integer", "enum": [1, 2]},
    "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10},
    "open": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
    "huge": {"type": "integer", "format": "int64"},
    "plain": {"type": "integer"},
    "share": {"type": "number", "minimum": 0.5, "multipleOf": 0.5},
    "even": {"type": "integer", "multipleOf": 2},
    "flag": {"type": "boolean"},
    "since": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "wait": {"type": "string", "format": "duration"},
    "blob": {"type": "string", "format": "byte"},
    "ip": {"type": "string", "format": "ipv4"},
    "net": {"type": "string", "format": "cidr"},
    "mail": {"type": "string", "format": "email"},
    "uuid": {"type": "string", "format": "uuid"},
    "link": {"type": "string", "format": "uri"},
    "host": {"type": "string", "format": "hostname"},
    "other": {"type": "string", "format": "unheard-of"},
    "amount": {"x-kubernetes-int-or-string": True},
    "amounts": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^1",
    },
    "maybe": {"type": "string", "nullable": True},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "minLength": 1}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "keyed": KEYED,
    "twice": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
        },
    },
    "map": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "integer", "minimum": 1}},
    "few": {"type": "object", "minProperties": 1, "additionalProperties": TEXT},
    "maps": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
    "either": {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "some": {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "both": {"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 4}]},
    "not": {"type": "string", "not": {"enum": ["no"]}},
    "free": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "integer"}},
    },
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "object": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "deep": {
        "type": "object",
        "default": {},
        "properties": {
            "mode": {"type": "string", "default": "fast"},
            "inner": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 3}}},
        },
    },
    "shallow": {"type": "object", "properties": {"mode": {"type": "string", "default": "fast"}}},
    "items": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "mode": {"type": "string", "default": "fast"}},
        },
    },
    "values": {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"mode": {"type": "string", "default": "fast"}}},
    },
    "steady": {
        "type": "string",
        "maxLength": 9,
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}],
    },
    "ruled": {
        "type": "object",
        "properties": {
            "low": {"type": "integer"},
            "high": {"type": "integer"},
            "namespace": {"type": "string", "maxLength": 9},
            "until": {"type": "string", "format": "date-time"},
            "pause": {"type": "string", "format": "duration"},
            "ratio": {"type": "number"},
            "names": {
                "type": "array",
                "maxItems": 4,
                "x-kubernetes-list-type": "set",
                "items": {"type": "string", "maxLength": 9},
            },
            "memory": {"type": "string", "maxLength": 9},
            "hook": {"type": "string", "maxLength": 40},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low is above high"},
            {
                "rule": "!has(self.low) || self.low != 7",
                "messageExpression": "has(self.high) ? 'with high' : 'without high'",
            },
            {
                "rule": "!has(self.low) || self.low != 8",
                "fieldPath": ".low",
                "reason": "FieldValueForbidden",
                "message": "8",
            },
            {"rule": "!has(self.low) || self.low != 9", "reason": "FieldValueRequired", "message": "9"},
            {"rule": "!has(self.low) || self.low != 10"},
            {"rule": "!has(self.low) || self.low != 11 || self.high > 1"},
            {"rule": "!has(self.low) || self.low != 12 || self.names[5] == 'x'"},
            {"rule": "!has(self.low) || self.low != 13 || 1 / (self.low - 13) > 0"},
            {"rule": "!has(self.__namespace__) || self.__namespace__.startsWith('kube')", "message": "namespace"},
            {"rule": "!has(self.until) || self.until > timestamp('2025-01-01T00:00:00Z')", "message": "until"},
            {"rule": "!has(self.pause) || self.pause < duration('1h')", "message": "pause"},
            {"rule": "!has(self.ratio) || self.ratio == 1.0", "message": "ratio"},
            {"rule": "!has(self.names) || self.names.isSorted()", "message": "sorted"},
            {"rule": "!has(self.memory) || quantity(self.memory).isLessThan(quantity('1Gi'))", "message": "memory"},
            {
                "rule": "!has(self.hook) || (isURL(self.hook) && url(self.hook).getScheme() == 'https')",
                "message": "hook",
            },
            {"rule": "!has(oldSelf.names) || !has(self.names) || self.names == oldSelf.names", "message": "names stay"},
            {"rule": "!has(self.hook) || self.hook.find('[0-9]+') == '443'", "message": "port"},
        ],
    },
}
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": dict(MEMBERS)},
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer", "minimum": 0}, "phase": {"type": "string", "enum": ["Up"]}},
        },
    },
    "x-kubernetes-validations": [{"rule": "self.metadata.name != 'forbidden'", "message": "not this name"}],
}
DEFINITION = definition(SCHEMA, subresources={"status": {}})

KEY = {"name": "a", "size": 1}
RULED_KEYS = {"low": 1, "high": 2, "names": ["a", "b"]}

GOOD: Mapping[str, Object] = {
    "nothing": {},
    "texts": {"text": "abc", "choice": "red", "other": "anything"},
    "numbers": {"size": 10, "open": 1, "huge": 2**62, "plain": -5, "share": 1.5, "even": 4, "level": 2},
    "a whole number that is written as a fraction": {"plain": 3.0, "size": 2.0},
    "formats": {
        "since": "2025-03-12T06:15:21Z",
        "day": "2025-03-12",
        "wait": "1h30m",
        "blob": "YWJj",
        "ip": "10.0.0.1",
        "net": "10.0.0.0/8",
        "mail": "a@example.com",
        "link": "https://example.com/x",
        "host": "example.com",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
    },
    "a moment with a fraction and a zone": {"since": "2025-03-12T06:15:21.123+02:00"},
    "either a number or a text": {"amount": 1, "amounts": "10%"},
    "a null that may be": {"maybe": None},
    "a null that may not be": {"text": None},
    "a null where a default stands": {"deep": None, "shallow": {"mode": None}},
    "lists": {"list": ["a"], "set": ["a", "b"], "keyed": [KEY, {"name": "b"}], "twice": [{"port": 1}, {"port": 2}]},
    "maps": {"map": {"a": 1}, "few": {"x": "y"}, "maps": {"a": [1, 2]}},
    "alternatives": {"either": {"a": "x"}, "some": {"a": "x", "b": "y"}, "both": "abc", "not": "yes"},
    "free things": {"free": {"known": 1, "x": {"y": [1]}}, "any": [1, {"a": None}]},
    "an object inside": {"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}}},
    "defaults": {"deep": {"inner": {}}, "shallow": {}, "items": [{"name": "a"}], "values": {"x": {}}},
    "rules": {
        "ruled": {**RULED_KEYS, "namespace": "kube-x", "until": "2026-01-01T00:00:00Z", "pause": "5m", "ratio": 1}
    },
    "more rules": {"ruled": {"memory": "512Mi", "hook": "https://example.com:443/x"}},
    "steady": {"steady": "x"},
}

BAD: Mapping[str, Object] = {
    "too short": {"text": "a"},
    "too long": {"text": "abcdef"},
    "against a pattern": {"text": "ABC"},
    "a text with a newline": {"text": "abc\n"},
    "none of the choices": {"choice": "blue"},
    "a number that is no choice": {"level": 3},
    "a null among choices": {"choice": None, "level": "1"},
    "too small": {"size": 0},
    "too big": {"size": 11},
    "on the open bound": {"open": 0},
    "on the other open bound": {"open": 9},
    "no int32": {"size": 2**31},
    "no int64": {"huge": 2**63},
    "no integer at all": {"plain": 2**64},
    "a fraction": {"plain": 1.5, "size": 1.5},
    "a small share": {"share": 0.25},
    "an uneven share": {"share": 0.75},
    "odd": {"even": 3},
    "no boolean": {"flag": "yes"},
    "a boolean for a number": {"plain": True, "size": False},
    "a number for a text": {"text": 5},
    "a number for a moment": {"since": 5},
    "a list for an object": {"map": []},
    "an object for a list": {"list": {}},
    "an object for a number": {"size": {}},
    "a text for an object": {"deep": "x"},
    "no moment": {"since": "yesterday"},
    "no day": {"day": "2025-02-30"},
    "no duration": {"wait": "soon"},
    "no base64": {"blob": "?"},
    "no address": {"ip": "300.0.0.1"},
    "no network": {"net": "10.0.0.0"},
    "no mail": {"mail": "me"},
    "no uuid": {"uuid": "x"},
    "no link": {"link": "not a link"},
    "no host": {"host": "-x-"},
    "neither number nor text": {"amount": True},
    "neither in an alternative": {"amounts": [1]},
    "a text against its pattern": {"amounts": "2%"},
    "too few items": {"list": []},
    "too many items": {"list": ["a", "b", "c"]},
    "a bad item": {"list": ["a", ""]},
    "a null item": {"list": [None]},
    "twice in a set": {"set": ["a", "b", "a", "a"]},
    "the same key": {"keyed": [KEY, {"name": "a"}]},
    "no key": {"keyed": [{"size": 1}]},
    "the same two keys": {"twice": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    "too many members": {"map": {"a": 1, "b": 2, "c": 3}},
    "a bad member": {"map": {"a": 0}},
    "too few members": {"few": {}},
    "a bad item in a map": {"maps": {"a": [1, "x"]}},
    "both of either": {"either": {"a": "x", "b": "y"}},
    "none of either": {"either": {}},
    "none of some": {"some": {}},
    "not all": {"both": "a"},
    "what must not be": {"not": "no"},
    "a bad known member of a free object": {"free": {"known": "x"}},
    "an object inside without a kind": {"object": {"apiVersion": "v1"}},
    "an object inside with a bad kind": {"object": {"apiVersion": "v1", "kind": "no kind"}},
    "a required member": {"items": [{"mode": "x"}]},
    "low above high": {"ruled": {"low": 2, "high": 1}},
    "a message that is worked out": {"ruled": {"low": 7}},
    "a rule that points elsewhere": {"ruled": {"low": 8}},
    "a rule with another reason": {"ruled": {"low": 9}},
    "a rule without a message": {"ruled": {"low": 10}},
    "a rule that misses a member": {"ruled": {"low": 11}},
    "a rule that misses an item": {"ruled": {"low": 12, "names": ["a"]}},
    "a rule that divides by zero": {"ruled": {"low": 13, "high": 20}},
    "a member with a reserved name": {"ruled": {"namespace": "x"}},
    "a moment too early": {"ruled": {"until": "2024-01-01T00:00:00Z"}},
    "a duration too long": {"ruled": {"pause": "2h"}},
    "a number as a double": {"ruled": {"ratio": 2}},
    "an unsorted list": {"ruled": {"names": ["b", "a"]}},
    "too much memory": {"ruled": {"memory": "2Gi"}},
    "a quantity that is none": {"ruled": {"low": 1, "memory": "x"}},
    "no https": {"ruled": {"hook": "http://example.com:443"}},
    "two wrongs": {"text": "A", "size": 0},
    "rules not asked, because the shape is wrong": {"size": "x", "ruled": {"low": 2, "high": 1}},
}


class Update(NamedTuple):
    """An object, what it is to become, and which schema it was made under."""

    old: Object
    new: Object


LAX: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""A schema that lets everything in: how bad objects come to be there before the schema gets strict."""

UPDATES: Mapping[str, Update] = {
    "steady stays": Update({"steady": "x"}, {"steady": "x", "size": 1}),
    "steady moves": Update({"steady": "x"}, {"steady": "y"}),
    "steady is new": Update({}, {"steady": "y"}),
    "a set in another order": Update({"ruled": {"names": ["a", "b"]}}, {"ruled": {"names": ["a", "b"], "low": 1}}),
    "another set": Update({"ruled": {"names": ["a", "b"]}}, {"ruled": {"names": ["a", "c"]}}),
    "a bad text stays": Update({"text": "A"}, {"text": "A", "size": 1}),
    "a bad text becomes another": Update({"text": "A"}, {"text": "B"}),
    "a bad item stays": Update({"list": ["a", "b", "c"]}, {"list": ["a", "b", "c"], "size": 1}),
    "a bad list grows": Update({"list": ["a", "b", "c"]}, {"list": ["a", "b", "c", "d"]}),
    "a bad keyed item stays, another comes": Update(
        {"keyed": [{"name": "a", "size": "x"}]}, {"keyed": [{"name": "b"}, {"name": "a", "size": "x"}]}
    ),
    "a bad keyed item changes": Update(
        {"keyed": [{"name": "a", "size": "x"}]}, {"keyed": [{"name": "a", "size": "y"}]}
    ),
    "a bad member stays": Update({"map": {"a": 0}}, {"map": {"a": 0, "b": 1}}),
    "a broken rule stays": Update({"ruled": {"low": 2, "high": 1}}, {"ruled": {"low": 2, "high": 1}, "size": 1}),
    "a broken rule is touched": Update(
        {"ruled": {"low": 2, "high": 1}}, {"ruled": {"low": 2, "high": 1, "memory": "1Mi"}}
    ),
    "what occurs twice stays": Update({"set": ["a", "a"]}, {"set": ["a", "a"], "size": 1}),
    "what occurs twice comes again": Update({"set": ["a", "a"]}, {"set": ["a", "a", "b"]}),
    "a bad alternative stays": Update({"either": {}}, {"either": {}, "size": 1}),
    "a wrong type stays": Update({"size": "x"}, {"size": "x", "text": "abc"}),
    "a wrong type stays beside a broken rule": Update({"size": "x"}, {"size": "x", "ruled": {"low": 2, "high": 1}}),
}


def whole(name: str, spec: Any) -> Object:
    """An object of the kind."""
    return {"apiVersion": "crd.kedge.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
