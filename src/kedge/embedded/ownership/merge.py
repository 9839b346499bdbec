"""Merge: an applied configuration merged into an object, and removal of what its owner no longer applies.

Pure functions of JSON values; what does not change is shared between old and new.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from kedge.embedded.ownership.compare import ABSENT, SCALARS, is_leaf, items_by_step
from kedge.embedded.ownership.field_set import LEAF, FieldSet, is_member, is_superset
from kedge.embedded.ownership.merge_schema import Json, MergeSchema, MissingKeys


def merge_applied(schema: MergeSchema, live: Json, config: Json) -> Json:
    """What is applied over what is there: leaves are replaced, all else is merged part by part.

    Null replaces a scalar or what is owned as one, and takes nothing out of a map or list.
    """
    if config is ABSENT or config is live:
        return live
    form = schema.form(config)
    if live is ABSENT or is_leaf(schema, form, live, config):
        return config
    if form == "map":
        return _merged_members(schema, live if isinstance(live, dict) else {}, config or {})
    return list(_merged_items(schema, live if isinstance(live, list) else [], config or []))


def _merged_members(schema: MergeSchema, live: dict[str, Json], config: dict[str, Json]) -> dict[str, Json]:
    laid = {
        name: part if isinstance(part, SCALARS) else merge_applied(schema.at(name), live.get(name, ABSENT), part)
        for name, part in config.items()
    }
    return {**live, **laid}


def _merged_items(schema: MergeSchema, live: list[Json], config: list[Json]) -> Iterator[Json]:
    """Items in the order they are applied in; those only there stay behind the neighbour they stood behind."""
    theirs, ours = items_by_step(schema, config), items_by_step(schema, live)
    for step, item in _in_order(schema, live, list(theirs), ours):
        if step in theirs:
            there = ours.get(step, [])
            yield merge_applied(schema.item, there[0] if len(there) == 1 else ABSENT, theirs[step][0])
        else:
            yield item


def _in_order(
    schema: MergeSchema, live: list[Json], wanted: list[str], there: dict[str, list[Json]]
) -> Iterator[tuple[str, Json]]:
    """Walk both lists at once. Of an item in both, the applied list decides when its turn is."""
    asked, done = set(wanted), set[str]()
    turn = [step for step in wanted if step in there]  # the items in both, in the order they are to come
    waiting = list(wanted)
    for item in live:
        step = _step(schema, item)
        if step not in asked:
            yield step, item
            continue
        while step not in done and turn and turn[0] == step:
            # Its turn: first what is to come before it and is not there yet.
            following = waiting.pop(0)
            done.add(following)
            if following == step:
                turn.pop(0)
            yield following, None
    for step in waiting:
        yield step, None


def _step(schema: MergeSchema, item: Json) -> str:
    try:
        return schema.step(item)
    except MissingKeys:
        return ""  # what cannot be told apart was not applied by anybody


class _PruneContext(NamedTuple):
    """A place in the object, and who has to do with it."""

    schema: MergeSchema
    last: FieldSet  # what the applier owned so far, below here
    owned: FieldSet  # what anybody owns now, below here
    given_up: bool = False  # the applier owned it, or something it is part of
    gone: bool = False  # and nobody owns that now


def remove_unapplied(schema: MergeSchema, value: Json, last: FieldSet, owned: FieldSet) -> Json:
    """The value without what its applier owned and applies no longer, where nobody else owns it either.

    `last` is what the applier owned, `owned` what anybody owns now, the applier with what it applies included.
    """
    if is_superset(owned, last):
        return value
    return _pruned(value, _PruneContext(schema, last, owned))


def _pruned(value: Json, ground: _PruneContext) -> Json:
    schema = ground.schema
    form = schema.form(value)
    if not ground.last or is_leaf(schema, form, value):
        return value
    if form == "map":
        kept = {name: _part(part, f"f:{name}", ground) for name, part in value.items()}
        return {name: part for name, part in kept.items() if part is not ABSENT} or None
    items = [_part(item, _step(schema, item), ground) for item in value]
    return [item for item in items if item is not ABSENT] or None


def _part(value: Json, step: str, ground: _PruneContext) -> Json:
    """What is left of a member or an item."""
    named = step.startswith("f:") and step[2:] in ground.schema.members
    schema = ground.schema.at(step[2:]) if step.startswith("f:") else ground.schema.item
    last, owned = ground.last.get(step), ground.owned.get(step)
    given_up = ground.given_up or _counts(last, named)
    gone = ground.gone or (given_up and not _counts(owned, named) and _is_something(schema, value, named))
    if gone and _counts(last, named):
        return ABSENT
    if not last:
        return value
    return _pruned(value, _PruneContext(schema, last, owned or LEAF, given_up, gone))


def _counts(place: FieldSet | None, named: bool) -> bool:
    """Whether somebody owns a place; a named member is owned with anything in it."""
    return place is not None and (named or is_member(place))


def _is_something(schema: MergeSchema, value: Json, named: bool) -> bool:
    """Whether it can be owned at all: an empty list whose items are owned one by one cannot."""
    return not named or not (schema.form(value) == "list" and schema.keys is not None and value == [])


def without_nulls(schema: MergeSchema, value: Json) -> Json:
    """A value of a built-in kind as the server reads it: null is nothing, and in a map the empty text.

    Those of custom kinds keep theirs: where the schema has a default they get that, elsewhere they are refused.
    """
    return value if b"null" not in msgspec.json.encode(value) else _settled(schema, value)


def _settled(schema: MergeSchema, value: Json) -> Json:
    if isinstance(value, dict):
        return {
            name: "" if part is None else _settled(schema.at(name), part)
            for name, part in value.items()
            if part is not None or (name not in schema.members and schema.at(name).scalar == "string")
        }
    if isinstance(value, list):
        return [_settled(schema.item, item) for item in value]
    return value
