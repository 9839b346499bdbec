"""Structural schema: whether a schema is structural, which Kubernetes needs for pruning and defaulting.

Every value has its type in one place, `anyOf`, `not` and the like only restrict what is declared beside them, and
metadata is not restricted. Gives the causes kube-apiserver gives, in its order: sorted by text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kedge.api.openapi.model import Raw
from kedge.api.patterns import BadPattern, compiled
from kedge.embedded.custom import go_causes
from kedge.kube.errors import Cause

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_OUTSIDE_ONLY = {  # words that may not stand in an alternative
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def problems(schema: Raw, path: str) -> list[Cause]:
    """Why a schema is not structural."""
    found = [*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)]
    return sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")


def _invariants(schema: Raw, level: str, path: str) -> Iterator[Cause]:
    kind = schema.get("type", "")
    if kind == "array" and "items" not in schema:
        yield go_causes.required_value(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _invariants(schema["items"], "item", f"{path}.items")
    for name, one in schema.get("properties", {}).items():
        yield from _invariants(one, "field", f"{path}.properties[{name}]")
    yield from _of_map(schema, level, path)
    yield from _of_words(schema, path)
    yield from _of_type(schema, level, path)
    yield from _of_object(schema, level, path)


def _of_map(schema: Raw, level: str, path: str) -> Iterator[Cause]:
    values = schema.get("additionalProperties")
    if values is None:
        return
    if level == "root":
        yield go_causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(values, dict):
        yield from _invariants(values, "field", f"{path}.additionalProperties")
    if schema.get("x-kubernetes-embedded-resource"):
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield go_causes.forbidden(f"{path}.additionalProperties", why)


def _of_words(schema: Raw, path: str) -> Iterator[Cause]:
    if schema.get("x-kubernetes-int-or-string"):
        for word in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(word):
                yield go_causes.invalid_value(
                    f"{path}.{word}", True, "must be false if x-kubernetes-int-or-string is true"
                )
    first: Raw = next(iter(schema.get("allOf", ())), {})
    is_either = schema.get("anyOf") == _INT_OR_STRING
    yield from _alternatives(schema, path, skip=is_either, skip_first=first.get("anyOf") == _INT_OR_STRING)


def _of_type(schema: Raw, level: str, path: str) -> Iterator[Cause]:
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            go_causes.invalid_value(f"{path}.type", kind, why)
            if kind
            else go_causes.required_value(f"{path}.type", why)
        )
    elif not kind and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield go_causes.required_value(f"{path}.type", _LEVELS[level])
    if level == "root" and kind not in ("", "object"):
        yield go_causes.invalid_value(f"{path}.type", kind, "must be object at the root")


def _of_object(schema: Raw, level: str, path: str) -> Iterator[Cause]:
    """What is special about objects with metadata: the whole one, and those inside."""
    members = schema.get("properties", {})
    is_object = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
    for name in ("kind", "apiVersion"):
        if is_object and name in members and members[name].get("type", "") != "string":
            yield go_causes.invalid_value(
                f"{path}.properties[{name}].type", members[name].get("type", ""), "must be string"
            )
    if "metadata" in members:
        yield from _of_metadata(members["metadata"], is_object, level, f"{path}.properties[metadata]")
    if (
        schema.get("x-kubernetes-embedded-resource")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
        and not members
    ):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield go_causes.required_value(f"{path}.properties", why)


def _of_metadata(schema: Raw, is_object: bool, level: str, path: str) -> Iterator[Cause]:
    if is_object and schema.get("type", "") != "object":
        yield go_causes.invalid_value(f"{path}.type", schema.get("type", ""), "must be object")
    names = schema.get("properties", {}).keys()
    more = {word: value for word, value in schema.items() if word not in ("type", "default", "properties") and value}
    if level == "root" and (more or names - {"name", "generateName"}):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield go_causes.forbidden(path, why)


def _alternatives(schema: Raw, path: str, *, skip: bool = False, skip_first: bool = False) -> Iterator[Cause]:
    for word in ("anyOf", "allOf", "oneOf"):
        for index, one in enumerate(schema.get(word, ())):
            if word == "anyOf" and skip:
                continue
            yield from _nested(one, f"{path}.{word}[{index}]", skip=word == "allOf" and index == 0 and skip_first)
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")
    if schema.get("pattern"):
        yield from _of_pattern(schema["pattern"], f"{path}.pattern")


def _of_pattern(pattern: str, path: str) -> Iterator[Cause]:
    try:
        compiled(pattern)
    except BadPattern as error:
        yield go_causes.invalid_value(path, pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: Raw, path: str, *, skip: bool = False) -> Iterator[Cause]:
    """What is wrong inside an alternative."""
    yield from _alternatives(schema, path, skip=skip)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    for name, one in schema.get("properties", {}).items():
        yield from _nested(one, f"{path}.properties[{name}]")
    for word, why in _OUTSIDE_ONLY.items():
        if schema.get(word) or (word in ("additionalProperties", "default") and word in schema):
            yield go_causes.forbidden(f"{path}.{word}", why)
    if "metadata" in schema.get("properties", {}):
        yield go_causes.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(value: Raw, schema: Any, path: str, inside: str) -> Iterator[Cause]:
    """What alternatives speak of that is not there outside of them."""
    if isinstance(value.get("not"), dict):
        yield from _complete(value["not"], schema, path, f"{inside}.not")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, one in enumerate(value.get(word, ())):
            yield from _complete(one, schema, path, f"{inside}.{word}[{index}]")


def _complete(value: Raw, schema: Any, path: str, inside: str) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        yield go_causes.required_value(path, f"because it is defined in {inside}")
        return
    yield from _completeness(value, schema, path, inside)
    if isinstance(value.get("items"), dict):
        yield from _complete(value["items"], schema.get("items"), f"{path}.items", f"{inside}.items")
    for name, one in value.get("properties", {}).items():
        below = schema.get("properties", {}).get(name)
        at, said = f"{path}.properties[{name}]", f"{inside}.properties[{name}]"
        if below is None:
            yield go_causes.required_value(at, f"because it is defined in {said}")
        else:
            yield from _complete(one, below, at, said)
