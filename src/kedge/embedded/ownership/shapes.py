"""Shapes: how the parts of a value can be owned, as its schema says.

A map or struct is owned member by member, or as a whole (atomic); a list as a whole, or item by item, where items are
told apart by their value (a set) or by some of their members (a map). What a schema does not describe is taken as it
comes: maps member by member, lists as a whole. Where a schema allows several types, the value decides.

Made from a `Schema` once and shared; parts are made when first asked for, as a schema may contain itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

from kedge.api.openapi.model import Schema
from kedge.embedded.ownership import fields
from kedge.embedded.ownership.fields import Fields

Json: TypeAlias = Any
Form: TypeAlias = Literal["map", "list", "scalar"]

_RAW_EXTENSION = "runtime.RawExtension"
_EVERY_FORM: tuple[Form, ...] = ("map", "scalar", "list")  # where the value does not tell, the first counts


class Unkeyed(ValueError):
    """A list item without what tells it apart from others."""


class Parts(NamedTuple):
    """What a map or a list consists of."""

    members: Mapping[str, Shape] = {}  # those with a name in the schema
    rest: Shape | None = None  # any other member; None if there can be no other
    item: Shape | None = None


class Shape:
    """How one value can be owned."""

    def __init__(
        self,
        forms: tuple[Form, ...],
        parts: Callable[[], Parts] = Parts,
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
    def _parts(self) -> Parts:
        return self._read()

    @cached_property
    def members(self) -> Mapping[str, Shape]:
        return self._parts.members

    @cached_property
    def rest(self) -> Shape | None:
        return self._parts.rest

    @cached_property
    def item(self) -> Shape:
        return self._parts.item or WHOLE

    def form(self, value: Json) -> Form:
        """What the value is taken for."""
        found: Form = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
        return found if value is not None and found in self.forms else self.forms[0]

    def at(self, name: str) -> Shape:
        """A member. One that cannot be there is taken as it comes."""
        return self.members.get(name) or self.rest or DEDUCED

    def step(self, item: Json) -> str:
        """What leads to this item of the list. Raises `Unkeyed`."""
        if self.keys:
            return fields.key_step(self._keys_of(item))
        if item is None or isinstance(item, dict | list):
            raise Unkeyed(_NOT_IN_A_SET["null" if item is None else type(item).__name__])
        return fields.value_step(item)

    def _keys_of(self, item: Json) -> dict[str, Json]:
        assert self.keys
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise Unkeyed(f"associative list with keys may not have {what}")
        found = {name: item[name] if name in item else self._key_default(name) for name in self.keys}
        told = {name: value for name, value in found.items() if value is not None or name in item}
        if not told:
            names = " ".join(f'"{name}"' for name in self.keys)
            why = "(and doesn't have default values for any key fields)"
            raise Unkeyed(f"associative list with keys has an element that omits all key fields [{names}] {why}")
        return told

    def _key_default(self, name: str) -> Json:
        found = self.item.members.get(name)
        return found.default if found else None


def of_object(schema: Schema | None, *, custom: bool) -> Shape:
    """The shape of a whole object; metadata is the same for all."""
    if schema is None:
        return Shape(("map",), lambda: Parts(_OBJECT, DEDUCED))
    found = of(schema, custom=custom)
    members = {**found.members, **_OBJECT}
    return Shape(("map",), lambda: Parts(members, found.rest), required=found.required, exact=custom)


def of(schema: Schema, *, custom: bool, open_: bool = False, default: Json = None) -> Shape:
    """The shape of a value; an open one may have members that it does not name, and so may its parts."""
    if schema.name.endswith(_RAW_EXTENSION):
        return WHOLE
    opened = open_ or bool(schema.raw.get("x-kubernetes-preserve-unknown-fields"))
    return Shape(
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


def _parts(schema: Schema, *, custom: bool, open_: bool) -> Parts:
    part = partial(of, custom=custom, open_=open_)
    members = {name: part(member, default=member.raw.get("default")) for name, member in schema.properties.items()}
    if schema.is_object:
        members |= _OBJECT
    item = part(schema.items) if schema.items else None
    return Parts(members, _rest(schema, part, open_=open_), item)


def _rest(schema: Schema, part: Callable[[Schema], Shape], *, open_: bool) -> Shape | None:
    said = schema.raw.get("additionalProperties")
    if isinstance(said, Mapping) and schema.values:
        return part(schema.values)
    if said is None:
        return DEDUCED if open_ or not schema.properties else None
    return DEDUCED if said else None


def blank(shape: Shape) -> dict[str, Json]:
    """What an object of a built-in kind is before anything is known of it: parts that are always there, empty."""
    found = {name: _blank(part) for name, part in shape.members.items() if part.default == {}}
    return found | {name: _ZERO.get(shape.at(name).scalar) for name in shape.required if name not in found}


def _blank(shape: Shape) -> Json:
    return blank(shape) if shape.forms == ("map",) and not shape.whole else {}


def fitted(shape: Shape, owned: Fields) -> Fields:
    """What was owned by a schema of the past, as it is owned now: parts that became one whole are owned as one."""
    found: Fields = {}
    for step, place in owned.items():
        part = (shape.members.get(step[2:]) or shape.rest) if step.startswith("f:") else shape.item
        if step == fields.HERE or part is None or not place:
            found[step] = place
        else:
            found[step] = fields.LEAF if _is_one(part) else fitted(part, place)
    return found


def _is_one(shape: Shape) -> bool:
    return shape.whole if shape.forms[0] == "map" else shape.keys is None and "list" in shape.forms


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

TEXT = Shape(("scalar",), scalar="string")
SCALAR = Shape(("scalar",))
WHOLE: Shape = Shape(_EVERY_FORM, lambda: Parts(rest=WHOLE), whole=True)  # whatever it is, it is owned as one
DEDUCED: Shape = Shape(_EVERY_FORM, lambda: Parts(rest=DEDUCED))

_TEXTS = Shape(("map",), lambda: Parts(rest=TEXT))
_NUMBER = Shape(("scalar",), scalar="integer")
_TRUTH = Shape(("scalar",), scalar="boolean")
_OWNER_MEMBERS = {
    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), TEXT),
    **dict.fromkeys(("blockOwnerDeletion", "controller"), _TRUTH),
}
_OWNER = Shape(("map",), lambda: Parts(_OWNER_MEMBERS), whole=True)
_METADATA_MEMBERS = {
    **dict.fromkeys(("generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"), TEXT),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), SCALAR),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), _NUMBER),
    **dict.fromkeys(("annotations", "labels"), _TEXTS),
    "finalizers": Shape(("list",), lambda: Parts(item=TEXT), keys=()),
    "managedFields": Shape(("list",)),
    "ownerReferences": Shape(("list",), lambda: Parts(item=_OWNER), keys=("uid",)),
}
_METADATA = Shape(("map",), lambda: Parts(_METADATA_MEMBERS))
_OBJECT: dict[str, Shape] = {"apiVersion": TEXT, "kind": TEXT, "metadata": _METADATA}
