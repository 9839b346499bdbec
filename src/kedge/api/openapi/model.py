"""Schema: the shape of a value, read from OpenAPI as Kubernetes writes it.

    schema = Schema(raw, definitions)       # raw: a node of a document; definitions: what its `$ref`s name
    schema.at("spec").at("containers").items.list_keys

One reading for built-in kinds (from the published definitions) and custom ones (from a CRD's `openAPIV3Schema`).
Nodes are read when first asked for, so a document costs what is used of it and may refer to itself. A schema is
shared by every server of the process: it never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import UNSET, UnsetType

Raw: TypeAlias = Mapping[str, Any]
ListType: TypeAlias = Literal["atomic", "set", "map"]
T = TypeVar("T")

_REFERENCE = "#/components/schemas/"


class Schema:
    """One node of a schema. Compared by identity: the same node is the same object."""

    def __init__(self, raw: Raw, definitions: Mapping[str, Raw] | None = None) -> None:
        self._definitions: Mapping[str, Raw] = {} if definitions is None else definitions
        self.raw: Raw = _resolved(raw, self._definitions)
        self._made: dict[Callable[[Schema], Any], Any] = {}
        self._reference = _reference(raw)

    @property
    def name(self) -> str:
        """What its definition is called (`io.k8s.api.apps.v1.Deployment`); empty if it stands for itself."""
        return self._reference

    @cached_property
    def type(self) -> str:
        """`object`, `array`, `string`, `integer`, `number` or `boolean`; empty if it can be several or any."""
        return str(self.raw.get("type", ""))

    @cached_property
    def format(self) -> str:
        return str(self.raw.get("format", ""))

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The named members, each with its schema."""
        named: Mapping[str, Raw] = self.raw.get("properties", {})
        return {name: self._node(raw) for name, raw in named.items()}

    @cached_property
    def values(self) -> Schema | None:
        """The schema of a map's values; None if it is no map."""
        found = self.raw.get("additionalProperties")
        if isinstance(found, Mapping):
            return self._node(found)
        return ANY if found is True else None

    @cached_property
    def items(self) -> Schema | None:
        """The schema of a list's items."""
        found = self.raw.get("items")
        return self._node(found) if isinstance(found, Mapping) else None

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(self.raw.get("required", ()))

    @cached_property
    def default(self) -> Any | UnsetType:
        """What stands for a member that is left out; `UNSET` if nothing does. Shared: copy before changing."""
        return self.raw.get("default", UNSET)

    @cached_property
    def nullable(self) -> bool:
        return bool(self.raw.get("nullable", False))

    @cached_property
    def int_or_string(self) -> bool:
        return bool(self.raw.get("x-kubernetes-int-or-string", self.format == "int-or-string"))

    @cached_property
    def keeps_unknown(self) -> bool:
        """Whether members it does not name are kept."""
        return bool(self.raw.get("x-kubernetes-preserve-unknown-fields", False)) or self.is_any

    @cached_property
    def is_object(self) -> bool:
        """Whether it holds a whole object: apiVersion, kind and metadata."""
        return bool(self.raw.get("x-kubernetes-embedded-resource", False))

    @cached_property
    def is_any(self) -> bool:
        """Whether it says nothing about the value, or only that it is some object."""
        return not (self.raw.keys() & {"properties", "additionalProperties", "items", "oneOf", "anyOf", "allOf"}) and (
            self.type in ("", "object") and not self.int_or_string
        )

    @cached_property
    def list_type(self) -> ListType:
        """How items of a list are told apart: not at all, by their value, or by their keys."""
        found: ListType = self.raw.get("x-kubernetes-list-type", "atomic")
        return found

    @cached_property
    def list_keys(self) -> tuple[str, ...]:
        return tuple(self.raw.get("x-kubernetes-list-map-keys", ()))

    @cached_property
    def is_atomic(self) -> bool:
        """Whether a map or struct is owned and replaced as a whole."""
        return self.raw.get("x-kubernetes-map-type") == "atomic"

    @cached_property
    def merge_key(self) -> str:
        """What a strategic merge patch tells list items apart by; empty if it does not."""
        return str(self.raw.get("x-kubernetes-patch-merge-key", ""))

    @cached_property
    def merge_strategy(self) -> tuple[str, ...]:
        """How a strategic merge patch treats it: `merge`, `replace`, `retainKeys`."""
        return tuple(part for part in str(self.raw.get("x-kubernetes-patch-strategy", "")).split(",") if part)

    @cached_property
    def rules(self) -> tuple[Raw, ...]:
        """Its `x-kubernetes-validations`."""
        return tuple(self.raw.get("x-kubernetes-validations", ()))

    def at(self, name: str) -> Schema | None:
        """The schema of a member; None if it has none of that name."""
        return self.properties.get(name, self.values)

    def once(self, make: Callable[[Schema], T]) -> T:
        """What a function makes of this node: made when first asked for, and kept with the node."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    def _node(self, raw: Raw) -> Schema:
        return Schema(raw, self._definitions)

    def __repr__(self) -> str:
        return f"Schema({self.type or 'any'}: {', '.join(self.properties) or '-'})"


def _reference(raw: Raw) -> str:
    for node in (raw, *raw.get("allOf", ())):
        if found := node.get("$ref"):
            return str(found).removeprefix(_REFERENCE)
    return ""


def _resolved(raw: Raw, definitions: Mapping[str, Raw]) -> Raw:
    """The node itself, where it is a reference, or one with words beside it (`allOf` of one, and a default)."""
    if name := raw.get("$ref"):
        return _resolved(definitions[str(name).removeprefix(_REFERENCE)], definitions)
    wrapped = raw.get("allOf", ())
    if len(wrapped) == 1 and "$ref" in wrapped[0]:
        beside = {key: value for key, value in raw.items() if key != "allOf"}
        return {**_resolved(wrapped[0], definitions), **beside}
    return raw


ANY = Schema({"x-kubernetes-preserve-unknown-fields": True})
