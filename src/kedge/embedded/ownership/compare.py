"""Compare: what an object covers, and what changed between two, as sets of fields.

Two ways to say what a value covers. `applied` is what somebody who applies it means to own: its ends, and the items and
free members on the way, but not the structs, which are only the way there. `everything` is what comes into being with
it: every part. Neither looks into what is owned as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.ownership.fields import LEAF, Fields, node, union
from kedge.embedded.ownership.shapes import Form, Json, Shape, Unkeyed
from kedge.embedded.patching import same

Found: TypeAlias = Fields | None  # of one place, in a set: None if neither it nor anything below is in


class _Absent:
    """Nothing stands here; null is something."""


ABSENT: Final = _Absent()
SCALARS = (str, int, float, bool)  # of whatever shape, they are leaves


class Comparison(Struct, frozen=True):
    """What is new, what is different, and what is gone."""

    added: Fields = LEAF
    modified: Fields = LEAF
    removed: Fields = LEAF

    @property
    def given(self) -> Fields:
        """What has a value that it did not have before."""
        return union(self.modified, self.added)


def applied(shape: Shape, value: Json) -> Fields:
    """What is owned by applying this value."""
    return _applied(shape, value) or LEAF


def everything(shape: Shape, value: Json) -> Fields:
    """What is owned by making this value from nothing."""
    return _whole(shape, value) or LEAF


def compare(shape: Shape, old: Json, new: Json) -> Comparison:
    """What changed."""
    added: Fields = {}
    modified: Fields = {}
    removed: Fields = {}
    _Walk(added, modified, removed).part(shape, old, new)
    return Comparison(added, modified, removed)


def unchanged(shape: Shape, old: Json, new: Json) -> bool:
    """Whether two values are the same. Equal is not enough where a schema may leave the type open: 1 is not true."""
    if old is new or old != new:
        return old is new
    return not shape.exact or msgspec.json.encode(old) == msgspec.json.encode(new) or same(old, new)


def steps(shape: Shape, value: Json) -> dict[str, list[Json]]:
    """The items of a list by what leads to them. Those that cannot be told apart are left out."""
    found: dict[str, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        try:
            found.setdefault(shape.step(item), []).append(item)
        except Unkeyed:
            continue
    return found


def is_leaf(shape: Shape, form: Form, one: Json, other: Json = None) -> bool:
    """Whether it is owned as one: by its nature, or because there is nothing in it."""
    if form == "scalar":
        return True
    kind, whole = (dict, shape.whole) if form == "map" else (list, shape.keys is None)
    return whole or not ((one and isinstance(one, kind)) or (other and isinstance(other, kind)))


def _applied(shape: Shape, value: Json) -> Found:
    """What lies below; a leaf if it is one itself."""
    form = shape.form(value)
    if form == "scalar" or (form == "map" and shape.whole) or (form == "list" and shape.keys is None):
        return LEAF
    if form == "map":
        return _applied_members(shape, value) if isinstance(value, dict) else None
    return _applied_items(shape, value) or None


def _applied_members(shape: Shape, value: dict[str, Json]) -> Found:
    found: Fields = {}
    members = shape.members
    for name, part in value.items():
        if isinstance(part, SCALARS):
            found[f"f:{name}"] = LEAF
            continue
        place = _applied(shape.at(name), part)
        if part is None or part == {} or name not in members:
            place = node(True, _inside(place))
        if place is not None:
            found[f"f:{name}"] = place
    return found or None


def _applied_items(shape: Shape, value: Json) -> Fields:
    found: Fields = {}
    for step, items in steps(shape, value).items():
        place = _applied(shape.item, items[0]) if len(items) == 1 else LEAF
        found[step] = node(True, _inside(place)) or LEAF
    return found


def _whole(shape: Shape, value: Json) -> Fields:
    """Everything below, without the place itself; that is in, too."""
    form = shape.form(value)
    if is_leaf(shape, form, value):
        return LEAF
    if form == "map":
        return {
            f"f:{name}": LEAF if isinstance(part, SCALARS) else _here(_whole(shape.at(name), part))
            for name, part in value.items()
        }
    found = steps(shape, value).items()
    return {step: _here(_whole(shape.item, items[0])) if len(items) == 1 else LEAF for step, items in found}


def _here(below: Fields) -> Fields:
    return {".": LEAF, **below} if below else LEAF


def _inside(place: Found) -> Fields:
    return {step: below for step, below in place.items() if step != "."} if place else LEAF


class _Walk:
    """A comparison at one place: what it finds goes into the three sets, which are of what lies below."""

    def __init__(self, added: Fields, modified: Fields, removed: Fields) -> None:
        self.added = added
        self.modified = modified
        self.removed = removed

    def part(self, shape: Shape, old: Json, new: Json) -> bool:
        """Compare what stands here; whether it changed as a whole."""
        if unchanged(shape, old, new):
            return False
        changed = [self._as(form, shape, old, new) for form in _forms(shape, old, new)]
        return any(changed)

    def _as(self, form: Form, shape: Shape, old: Json, new: Json) -> bool:
        if is_leaf(shape, form, old, new):
            return True
        if form == "map":
            self._members(shape, old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {})
        else:
            self._items(shape, steps(shape, old), steps(shape, new))
        return False

    def _members(self, shape: Shape, old: dict[str, Json], new: dict[str, Json]) -> None:
        for name, part in old.items():
            other = new.get(name, ABSENT)
            if type(part) is type(other) and isinstance(part, SCALARS):
                if part != other:
                    self.modified[f"f:{name}"] = LEAF
            elif other is not part:
                self._step(f"f:{name}", shape.at(name), part, other)
        for name, part in new.items():
            if name not in old:
                self._step(f"f:{name}", shape.at(name), ABSENT, part)

    def _items(self, shape: Shape, old: dict[str, list[Json]], new: dict[str, list[Json]]) -> None:
        for step in dict.fromkeys((*old, *new)):
            before, after = old.get(step, []), new.get(step, [])
            if len(before) < 2 and len(after) < 2:
                self._step(step, shape.item, _only(before), _only(after))
            else:
                self._repeated(step, shape.item, before, after)

    def _repeated(self, step: str, shape: Shape, before: list[Json], after: list[Json]) -> None:
        """Items with the same keys, which Kubernetes lets pass in plain writes: they are one leaf together."""
        if len(before) > 1 and len(after) > 1:
            if before != after:
                self.modified[step] = LEAF
            return
        if len(before) > 1:
            self._step(step, shape, ABSENT, _only(after))
            self.removed[step] = LEAF
        else:
            self._step(step, shape, _only(before), ABSENT)
            self.added[step] = LEAF

    def _step(self, step: str, shape: Shape, old: Json, new: Json) -> None:
        if old is ABSENT and new is ABSENT:
            return
        if old is ABSENT:
            self.added[step] = _here(_whole(shape, new))
        elif new is ABSENT:
            self.removed[step] = _here(_whole(shape, old))
        else:
            self._below(step, shape, old, new)

    def _below(self, step: str, shape: Shape, old: Json, new: Json) -> None:
        walk = _Walk({}, {}, {})
        changed = walk.part(shape, old, new)
        if changed or walk.modified:
            self.modified[step] = node(changed, walk.modified) or LEAF
        if walk.added:
            self.added[step] = walk.added
        if walk.removed:
            self.removed[step] = walk.removed


def _forms(shape: Shape, old: Json, new: Json) -> Iterable[Form]:
    """What the two are to be compared as: null is whatever the other is."""
    if old is None or new is None:
        return (shape.form(new if old is None else old),)
    return dict.fromkeys((shape.form(old), shape.form(new)))


def _only(items: list[Json]) -> Json:
    return items[0] if items else ABSENT
