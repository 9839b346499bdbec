"""Merge schema: how the parts of a value are owned and merged, as its schema says.

A map or struct is owned member by member, or as a whole (atomic). A list is atomic, or owned item by item, where items
are identified by their value (a set) or by some of their members (a map). Without a schema, maps are owned member by
member and lists are atomic. Where a schema allows several types, the value decides.

Made from a `Schema` once and shared; parts are made when first needed, as a schema may contain itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

from kedge.api.openapi.model import Schema
from kedge.embedded.ownership import field_set
from kedge.embedded.ownership.field_set import FieldSet

Json: TypeAlias = Any
Form: TypeAlias = Literal["map", "list", "scalar"]

_RAW_EXTENSION = "runtime.RawExtension"
_EVERY_FORM: tuple[Form, ...] = ("map", "scalar", "list")  # where the value does not tell, the first counts


class MissingKeys(ValueError):
    """A list item without the keys of its list."""


class MergeParts(NamedTuple):
    """What a map or a list consists of."""

    members: Mapping[str, MergeSchema] = {}  # those with a name in the schema
    rest: MergeSchema | None = None  # any other member; None if there can be no other
    item: MergeSchema | None = None


class MergeSchema:
    """How one value is owned and merged."""

    def __init__(
        self,
        forms: tuple[Form, ...],
        parts: Callable[[], MergeParts] = MergeParts,
        *,
        whole: bool = False,
        keys: tuple[str, ...] | None = None,
        default: Json = None,
        scalar: str = "",
        nullable: bool = False,
        required: tuple[str, ...] = (),
        exact: bool = False,
    ) -> None:
        self.forms = forms
        self.whole = whole  # a map that is owned as one
        self.keys = keys  # of a list whose items are owned one by one: none if it is a set; None if it is owned as one
        self.default = default  # what stands for a member that is left out
        self.scalar = scalar  # the type a scalar has to be of; empty if any will do
        self.nullable = nullable
        self.required = required
        self.exact = exact or len(forms) > 1  # equal may not be the same here: to Python 1 is True
        self._read = parts

    @cached_property
    def _parts(self) -> MergeParts:
        return self._read()

    @cached_property
    def members(self) -> Mapping[str, MergeSchema]:
        return self._parts.members

    @cached_property
    def rest(self) -> MergeSchema | None:
        return self._parts.rest

    @cached_property
    def item(self) -> MergeSchema:
        return self._parts.item or ATOMIC

    def form(self, value: Json) -> Form:
        """What the value is taken for."""
        found: Form = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
        return found if value is not None and found in self.forms else self.forms[0]

    def at(self, name: str) -> MergeSchema:
        """A member. One that cannot be there is taken as it comes."""
        return self.members.get(name) or self.rest or DEDUCED

    def step(self, item: Json) -> str:
        """What leads to this item of the list. Raises `MissingKeys`."""
        if self.keys:
            return field_set.key_step(self._keys_of(item))
        if item is None or isinstance(item, dict | list):
            raise MissingKeys(_NOT_IN_A_SET["null" if item is None else type(item).__name__])
        return field_set.value_step(item)

    def _keys_of(self, item: Json) -> dict[str, Json]:
        assert self.keys
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise MissingKeys(f"associative list with keys may not have {what}")
        found = {name: item[name] if name in item else self._key_default(name) for name in self.keys}
        told = {name: value for name, value in found.items() if value is not None or name in item}
        if not told:
            names = " ".join(f'"{name}"' for name in self.keys)
            why = "(and doesn't have default values for any key fields)"
            raise MissingKeys(f"associative list with keys has an element that omits all key fields [{names}] {why}")
        return told

    def _key_default(self, name: str) -> Json:
        found = self.item.members.get(name)
        return found.default if found else None


def object_merge_schema(schema: Schema | None, *, custom: bool) -> MergeSchema:
    """The merge schema of a whole object; metadata is the same for all."""
    if schema is None:
        return MergeSchema(("map",), lambda: MergeParts(_OBJECT, DEDUCED))
    found = merge_schema_of(schema, custom=custom)
    members = {**found.members, **_OBJECT}
    return MergeSchema(("map",), lambda: MergeParts(members, found.rest), required=found.required, exact=custom)


def merge_schema_of(schema: Schema, *, custom: bool, open_: bool = False, default: Json = None) -> MergeSchema:
    """The merge schema of a value; an open one may have members that it does not name, and so may its parts."""
    if schema.name.endswith(_RAW_EXTENSION):
        return ATOMIC
    opened = open_ or bool(schema.raw.get("x-kubernetes-preserve-unknown-fields"))
    return MergeSchema(
        _forms(schema),
        lambda: _parts(schema, custom=custom, open_=opened),
        whole=schema.is_atomic,
        keys=_list_keys(schema),
        default=default,
        scalar=_scalar(schema),
        nullable=schema.nullable,
        required=schema.required,
        exact=custom,  # which may leave anything untyped, at any depth
    )


def _parts(schema: Schema, *, custom: bool, open_: bool) -> MergeParts:
    part = partial(merge_schema_of, custom=custom, open_=open_)
    members = {name: part(member, default=member.raw.get("default")) for name, member in schema.properties.items()}
    if schema.is_object:
        members |= _OBJECT
    item = part(schema.items) if schema.items else None
    return MergeParts(members, _rest(schema, part, open_=open_), item)


def _rest(schema: Schema, part: Callable[[Schema], MergeSchema], *, open_: bool) -> MergeSchema | None:
    said = schema.raw.get("additionalProperties")
    if isinstance(said, Mapping) and schema.values:
        return part(schema.values)
    if said is None:
        return DEDUCED if open_ or not schema.properties else None
    return DEDUCED if said else None


def empty_object(schema: MergeSchema) -> dict[str, Json]:
    """An object of a built-in kind with only the parts that always exist, empty."""
    found = {name: _empty_object(part) for name, part in schema.members.items() if part.default == {}}
    return found | {name: _ZERO.get(schema.at(name).scalar) for name in schema.required if name not in found}


def _empty_object(schema: MergeSchema) -> Json:
    return empty_object(schema) if schema.forms == ("map",) and not schema.whole else {}


def adapted(schema: MergeSchema, owned: FieldSet) -> FieldSet:
    """A field set of an older schema, adapted to this one: parts that became atomic are owned as a whole."""
    found: FieldSet = {}
    for step, place in owned.items():
        part = (schema.members.get(step[2:]) or schema.rest) if step.startswith("f:") else schema.item
        if step == field_set.HERE or part is None or not place:
            found[step] = place
        else:
            found[step] = field_set.LEAF if _is_atomic(part) else adapted(part, place)
    return found


def _is_atomic(schema: MergeSchema) -> bool:
    return schema.whole if schema.forms[0] == "map" else schema.keys is None and "list" in schema.forms


def _forms(schema: Schema) -> tuple[Form, ...]:
    match schema.type:
        case "":
            return _EVERY_FORM
        case "object":
            return ("map",)
        case "array":
            return ("list",)
    return ("scalar",)


def _list_keys(schema: Schema) -> tuple[str, ...] | None:
    """The list type where it is given; else what a strategic merge patch would go by."""
    match schema.raw.get("x-kubernetes-list-type"):
        case "set":
            return ()
        case "map":
            return schema.list_keys
        case None if "merge" in schema.merge_strategy:
            return (schema.merge_key,) if schema.merge_key else ()
    return None


def _scalar(schema: Schema) -> str:
    return "string" if schema.type == "string" and schema.format in ("", "byte") else schema.type.replace("string", "")


_NOT_IN_A_SET = {
    "null": "associative list without keys has an element that's an explicit null",
    "dict": "associative list without keys has an element that's a map type",
    "list": "not supported: associative list with lists as elements",
}
_ZERO: dict[str, Json] = {"string": "", "boolean": False, "integer": 0, "number": 0}

TEXT = MergeSchema(("scalar",), scalar="string")
SCALAR = MergeSchema(("scalar",))
ATOMIC: MergeSchema = MergeSchema(
    _EVERY_FORM, lambda: MergeParts(rest=ATOMIC), whole=True
)  # whatever it is, it is owned as one
DEDUCED: MergeSchema = MergeSchema(_EVERY_FORM, lambda: MergeParts(rest=DEDUCED))

_TEXTS = MergeSchema(("map",), lambda: MergeParts(rest=TEXT))
_NUMBER = MergeSchema(("scalar",), scalar="integer")
_TRUTH = MergeSchema(("scalar",), scalar="boolean")
_OWNER_MEMBERS = {
    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), TEXT),
    **dict.fromkeys(("blockOwnerDeletion", "controller"), _TRUTH),
}
_OWNER = MergeSchema(("map",), lambda: MergeParts(_OWNER_MEMBERS), whole=True)
_METADATA_MEMBERS = {
    **dict.fromkeys(("generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"), TEXT),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), SCALAR),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), _NUMBER),
    **dict.fromkeys(("annotations", "labels"), _TEXTS),
    "finalizers": MergeSchema(("list",), lambda: MergeParts(item=TEXT), keys=()),
    "managedFields": MergeSchema(("list",)),
    "ownerReferences": MergeSchema(("list",), lambda: MergeParts(item=_OWNER), keys=("uid",)),
}
_METADATA = MergeSchema(("map",), lambda: MergeParts(_METADATA_MEMBERS))
_OBJECT: dict[str, MergeSchema] = {"apiVersion": TEXT, "kind": TEXT, "metadata": _METADATA}
