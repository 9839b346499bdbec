"""Version schema: defaults, pruning and validation of the objects of one version of a custom kind.

    version = VersionSchema(schema, scale=…)
    version.with_defaults(obj)                    # defaults, after pruning
    version.problems(obj, old)               # causes, in kube-apiserver's order; `old` for an update
    version.status_problems(obj, old)        # of a write to /status

Pure, made once per schema and shared by every server of the process. Metadata is validated elsewhere; what was found
there decides whether CEL rules can still be evaluated, so it is passed in as `already`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kedge.api.openapi.model import Schema
from kedge.embedded.custom import cel_rules, defaults, embedded_resources, go_causes
from kedge.embedded.custom.ratcheting import NO_OLD_VALUE
from kedge.embedded.custom.schema_validation import SchemaValidator
from kedge.embedded.go_text import go_json
from kedge.embedded.kind import ScalePaths, value_at
from kedge.embedded.naming import is_finalizer
from kedge.embedded.schema import pruning
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

_MOST_REPLICAS = 2**31 - 1
_GO_TYPES = {bool: "bool", dict: "map[string]interface {}", float: "float64", list: "[]interface {}", str: "string"}


class VersionSchema:
    """One version of one custom kind."""

    def __init__(self, schema: Schema, *, scale: ScalePaths | None = None) -> None:
        self.schema = schema
        self._scale = scale
        self._validator = SchemaValidator(schema)
        status = schema.properties.get("status")
        self._status = SchemaValidator(status) if status is not None else None

    def with_defaults(self, obj: Untyped, known: Untyped | None = None) -> Untyped:
        """The object with the defaults of its schema; the same object if nothing was missing.

        `known` is one that is complete, whose members need no second look where the object has the very same.
        """
        found: Untyped = defaults.with_schema_defaults(self.schema, obj, known)
        return found

    def pruned(self, obj: Untyped) -> Untyped:
        """The object without fields that its schema does not have."""
        found: Untyped = pruning.pruned(self.schema, obj).obj
        return found

    def problems(self, obj: Untyped, old: Untyped | None = None, *, already: Sequence[Cause] = ()) -> list[Cause]:
        """What is wrong with an object beside its metadata; unchanged problems are let pass."""
        was = NO_OLD_VALUE if old is None else old
        found = self._validator.problems(obj, was)
        found += [*self._scale_problems(obj, "spec"), *self._scale_problems(obj, "status")]
        found += embedded_resources.embedded_problems(self.schema, obj)
        found += self._duplicates(obj, old)
        return [*found, *self._rule_problems(obj, was, [*already, *found])]

    def status_problems(self, obj: Untyped, old: Untyped, *, already: Sequence[Cause] = ()) -> list[Cause]:
        """What is wrong with an object after a write to its status."""
        found: list[Cause] = []
        if "status" in obj and self._status is not None:
            found = self._status.problems(obj["status"], old.get("status", NO_OLD_VALUE), field="status")
        found += self._scale_problems(obj, "status")
        found += self._duplicates(obj, old)
        return [*found, *self._rule_problems(obj, old, [*already, *found])]

    def warnings(self, obj: Untyped, old: Untyped | None = None) -> Iterator[str]:
        """Warnings about new finalizers without a domain."""
        known = (old or {"metadata": {}})["metadata"].get("finalizers", ())
        for name in sorted({*obj["metadata"].get("finalizers", ())} - {*known}):
            if not is_finalizer(name):
                how = " including a path (/)" if "." in name else ""
                said = (
                    f"prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer"
                )
                yield f'metadata.finalizers: "{name}": {said} writers'

    def _duplicates(self, obj: Untyped, old: Untyped | None) -> list[Cause]:
        found = list(list_duplicates(self.schema, obj))
        if found and old is not None and any(list_duplicates(self.schema, old)):
            return []
        return found

    def _rule_problems(self, obj: Untyped, old: Any, found: Sequence[Cause]) -> list[Cause]:
        if not self.schema.once(cel_rules.has_rules):
            return []
        if any(map(go_causes.blocks_rules, found)):
            return [go_causes.invalid_value("", None, go_causes.RULES_NOT_CHECKED)]
        return cel_rules.rule_problems(self.schema, obj, old)

    def _scale_problems(self, obj: Untyped, part: str) -> Iterator[Cause]:
        if self._scale is None:
            return
        path = self._scale.spec_replicas if part == "spec" else self._scale.status_replicas
        value = value_at(obj, path)
        if value is None:
            return
        if type(value) is not int:
            shown = value if isinstance(value, str) else go_json(value)
            kind = _GO_TYPES.get(type(value), "nil")
            why = f".{path} accessor error: {shown} is of the type {kind}, expected int64"
            yield go_causes.invalid_value(f".{path}", 0, why)
        elif value < 0:
            yield go_causes.invalid_value(f".{path}", value, "should be a non-negative integer")
        elif value > _MOST_REPLICAS:
            yield go_causes.invalid_value(f".{path}", value, f"should be less than or equal to {_MOST_REPLICAS}")


def list_duplicates(schema: Schema | None, value: Any, path: str = "") -> Iterator[Cause]:
    """Duplicates in lists that are sets or have keys; the second occurrence is reported, as in kube-apiserver."""
    if schema is None or not schema.once(_has_keyed_lists):
        return
    if isinstance(value, list):
        yield from _list_of_type(schema, value, path)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in schema.properties:
                yield from list_duplicates(schema.properties[key], one, f"{path}.{key}".removeprefix("."))
            elif schema.values is not None:
                yield from list_duplicates(schema.values, one, f"{path}[{key}]")


def _list_of_type(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    match schema.list_type:
        case "set":
            yield from (
                go_causes.duplicate_value(f"{path}[{index}]", value[index]) for index in _second_occurrences(value)
            )
        case "map":
            yield from _list_with_keys(schema, value, path)
        case _:
            pass
    for index, one in enumerate(value):
        yield from list_duplicates(schema.items, one, f"{path}[{index}]")


def _list_with_keys(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    for index, one in enumerate(value):
        if one is not None and not isinstance(one, dict):
            yield go_causes.invalid_value(f"{path}[{index}]", one, "must be an object for an array of list-type map")
            return
    keys = [{key: one[key] for key in schema.list_keys if key in one} if one else {} for one in value]
    yield from (go_causes.duplicate_value(f"{path}[{index}]", keys[index]) for index in _second_occurrences(keys))


def _second_occurrences(values: Sequence[Any]) -> list[int]:
    """The indexes of second occurrences."""
    seen: dict[str, int] = {}
    found = []
    for index, value in enumerate(values):
        text = go_json(value)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            found.append(index)
    return found


def _has_keyed_lists(schema: Schema) -> bool:
    """Whether there is any such list, here or below: most nodes have none."""
    below = [*schema.properties.values(), schema.values, schema.items]
    return schema.list_type != "atomic" or any(one is not None and one.once(_has_keyed_lists) for one in below)
