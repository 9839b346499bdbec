"""Compare: which fields a value has, and which changed between two values, as field sets.

There are two ways to say what a value has. `applied_fields` is what somebody who applies it owns: its leaves, and the
items and free members on the way, but not the structs. `all_fields` is every part. Neither looks into atomic values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.json_patch import same_json
from kedge.embedded.ownership.field_set import LEAF, FieldSet, set_node, union
from kedge.embedded.ownership.merge_schema import Form, Json, MergeSchema, MissingKeys

Found: TypeAlias = FieldSet | None  # of one place, in a set: None if neither it nor anything below is in


class _Absent:
    """No value; null is a value."""


ABSENT: Final = _Absent()
SCALARS = (str, int, float, bool)  # of whatever schema, they are leaves


class Comparison(Struct, frozen=True):
    """Added, modified and removed fields."""

    added: FieldSet = LEAF
    modified: FieldSet = LEAF
    removed: FieldSet = LEAF

    @property
    def given(self) -> FieldSet:
        """Fields with a new value: added or modified."""
        return union(self.modified, self.added)


def applied_fields(schema: MergeSchema, value: Json) -> FieldSet:
    """The fields that are owned by applying this value."""
    return _applied(schema, value) or LEAF


def all_fields(schema: MergeSchema, value: Json) -> FieldSet:
    """All fields of this value."""
    return _whole(schema, value) or LEAF


def compare(schema: MergeSchema, old: Json, new: Json) -> Comparison:
    """The fields that changed."""
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    _Walk(added, modified, removed).part(schema, old, new)
    return Comparison(added, modified, removed)


def unchanged(schema: MergeSchema, old: Json, new: Json) -> bool:
    """Whether two values are the same. Equal is not enough where a schema may leave the type open: 1 is not true."""
    if old is new or old != new:
        return old is new
    return not schema.exact or msgspec.json.encode(old) == msgspec.json.encode(new) or same_json(old, new)


def items_by_step(schema: MergeSchema, value: Json) -> dict[str, list[Json]]:
    """The items of a list by their step. Items with duplicate keys are left out."""
    found: dict[str, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        try:
            found.setdefault(schema.step(item), []).append(item)
        except MissingKeys:
            continue
    return found


def is_leaf(schema: MergeSchema, form: Form, one: Json, other: Json = None) -> bool:
    """Whether it is owned as a whole: atomic, a scalar, or empty."""
    if form == "scalar":
        return True
    kind, whole = (dict, schema.whole) if form == "map" else (list, schema.keys is None)
    return whole or not ((one and isinstance(one, kind)) or (other and isinstance(other, kind)))


def _applied(schema: MergeSchema, value: Json) -> Found:
    """What lies below; a leaf if it is one itself."""
    form = schema.form(value)
    if form == "scalar" or (form == "map" and schema.whole) or (form == "list" and schema.keys is None):
        return LEAF
    if form == "map":
        return _applied_members(schema, value) if isinstance(value, dict) else None
    return _applied_items(schema, value) or None


def _applied_members(schema: MergeSchema, value: dict[str, Json]) -> Found:
    found: FieldSet = {}
    members = schema.members
    for name, part in value.items():
        if isinstance(part, SCALARS):
            found[f"f:{name}"] = LEAF
            continue
        place = _applied(schema.at(name), part)
        if part is None or part == {} or name not in members:
            place = set_node(True, _inside(place))
        if place is not None:
            found[f"f:{name}"] = place
    return found or None


def _applied_items(schema: MergeSchema, value: Json) -> FieldSet:
    found: FieldSet = {}
    for step, items in items_by_step(schema, value).items():
        place = _applied(schema.item, items[0]) if len(items) == 1 else LEAF
        found[step] = set_node(True, _inside(place)) or LEAF
    return found


def _whole(schema: MergeSchema, value: Json) -> FieldSet:
    """Everything below, without the place itself; that is in, too."""
    form = schema.form(value)
    if is_leaf(schema, form, value):
        return LEAF
    if form == "map":
        return {
            f"f:{name}": LEAF if isinstance(part, SCALARS) else _here(_whole(schema.at(name), part))
            for name, part in value.items()
        }
    found = items_by_step(schema, value).items()
    return {step: _here(_whole(schema.item, items[0])) if len(items) == 1 else LEAF for step, items in found}


def _here(below: FieldSet) -> FieldSet:
    return {".": LEAF, **below} if below else LEAF


def _inside(place: Found) -> FieldSet:
    return {step: below for step, below in place.items() if step != "."} if place else LEAF


class _Walk:
    """A comparison at one node: what it finds goes into the three sets, relative to the node."""

    def __init__(self, added: FieldSet, modified: FieldSet, removed: FieldSet) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed

    def part(self, schema: MergeSchema, old: Json, new: Json) -> bool:
        """Compare the values here; gives whether they changed as a whole."""
        if unchanged(schema, old, new):
            return False
        changed = [self._as(form, schema, old, new) for form in _forms(schema, old, new)]
        return any(changed)

    def _as(self, form: Form, schema: MergeSchema, old: Json, new: Json) -> bool:
        if is_leaf(schema, form, old, new):
            return True
        if form == "map":
            self._members(schema, old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {})
        else:
            self._items(schema, items_by_step(schema, old), items_by_step(schema, new))
        return False

    def _members(self, schema: MergeSchema, old: dict[str, Json], new: dict[str, Json]) -> None:
        for name, part in old.items():
            other = new.get(name, ABSENT)
            if type(part) is type(other) and isinstance(part, SCALARS):
                if part != other:
                    self.modified[f"f:{name}"] = LEAF
            elif other is not part:
                self._step(f"f:{name}", schema.at(name), part, other)
        for name, part in new.items():
            if name not in old:
                self._step(f"f:{name}", schema.at(name), ABSENT, part)

    def _items(self, schema: MergeSchema, old: dict[str, list[Json]], new: dict[str, list[Json]]) -> None:
        for step in dict.fromkeys((*old, *new)):
            before, after = old.get(step, []), new.get(step, [])
            if len(before) < 2 and len(after) < 2:
                self._step(step, schema.item, _only(before), _only(after))
            else:
                self._repeated(step, schema.item, before, after)

    def _repeated(self, step: str, schema: MergeSchema, before: list[Json], after: list[Json]) -> None:
        """Items with the same keys, which Kubernetes lets pass in plain writes: they are one leaf together."""
        if len(before) > 1 and len(after) > 1:
            if before != after:
                self.modified[step] = LEAF
            return
        if len(before) > 1:
            self._step(step, schema, ABSENT, _only(after))
            self.removed[step] = LEAF
        else:
            self._step(step, schema, _only(before), ABSENT)
            self.added[step] = LEAF

    def _step(self, step: str, schema: MergeSchema, old: Json, new: Json) -> None:
        if old is ABSENT and new is ABSENT:
            return
        if old is ABSENT:
            self.added[step] = _here(_whole(schema, new))
        elif new is ABSENT:
            self.removed[step] = _here(_whole(schema, old))
        else:
            self._below(step, schema, old, new)

    def _below(self, step: str, schema: MergeSchema, old: Json, new: Json) -> None:
        walk = _Walk({}, {}, {})
        changed = walk.part(schema, old, new)
        if changed or walk.modified:
            self.modified[step] = set_node(changed, walk.modified) or LEAF
        if walk.added:
            self.added[step] = walk.added
        if walk.removed:
            self.removed[step] = walk.removed


def _forms(schema: MergeSchema, old: Json, new: Json) -> Iterable[Form]:
    """What the two are to be compared as: null is whatever the other is."""
    if old is None or new is None:
        return (schema.form(new if old is None else old),)
    return dict.fromkeys((schema.form(old), schema.form(new)))


def _only(items: list[Json]) -> Json:
    return items[0] if items else ABSENT
