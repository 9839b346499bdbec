"""Merge: an applied configuration laid over an object, and what its owner no longer applies taken out.

Pure functions of JSON values; what does not change is shared between old and new.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from kedge.embedded.ownership.compare import ABSENT, SCALARS, is_leaf, steps
from kedge.embedded.ownership.fields import LEAF, Fields, covers, is_in
from kedge.embedded.ownership.shapes import Json, Shape, Unkeyed


def merged(shape: Shape, live: Json, config: Json) -> Json:
    """What is applied over what is there: leaves are replaced, all else is merged part by part.

    Null replaces a scalar or what is owned as one, and takes nothing out of a map or list.
    """
    if config is ABSENT or config is live:
        return live
    form = shape.form(config)
    if live is ABSENT or is_leaf(shape, form, live, config):
        return config
    if form == "map":
        return _merged_members(shape, live if isinstance(live, dict) else {}, config or {})
    return list(_merged_items(shape, live if isinstance(live, list) else [], config or []))


def _merged_members(shape: Shape, live: dict[str, Json], config: dict[str, Json]) -> dict[str, Json]:
    laid = {
        name: part if isinstance(part, SCALARS) else merged(shape.at(name), live.get(name, ABSENT), part)
        for name, part in config.items()
    }
    return {**live, **laid}


def _merged_items(shape: Shape, live: list[Json], config: list[Json]) -> Iterator[Json]:
    """Items in the order they are applied in; those only there stay behind the neighbour they stood behind."""
    theirs, ours = steps(shape, config), steps(shape, live)
    for step, item in _in_order(shape, live, list(theirs), ours):
        if step in theirs:
            there = ours.get(step, [])
            yield merged(shape.item, there[0] if len(there) == 1 else ABSENT, theirs[step][0])
        else:
            yield item


def _in_order(
    shape: Shape, live: list[Json], wanted: list[str], there: dict[str, list[Json]]
) -> Iterator[tuple[str, Json]]:
    """Walk both lists at once. Of an item in both, the applied list decides when its turn is."""
    asked, done = set(wanted), set[str]()
    turn = [step for step in wanted if step in there]  # the items in both, in the order they are to come
    waiting = list(wanted)
    for item in live:
        step = _step(shape, item)
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


def _step(shape: Shape, item: Json) -> str:
    try:
        return shape.step(item)
    except Unkeyed:
        return ""  # what cannot be told apart was not applied by anybody


class _Ground(NamedTuple):
    """A place in the object, and who has to do with it."""

    shape: Shape
    last: Fields  # what the applier owned so far, below here
    owned: Fields  # what anybody owns now, below here
    given_up: bool = False  # the applier owned it, or something it is part of
    gone: bool = False  # and nobody owns that now


def pruned(shape: Shape, value: Json, last: Fields, owned: Fields) -> Json:
    """The value without what its applier owned and applies no longer, where nobody else owns it either.

    `last` is what the applier owned, `owned` what anybody owns now, the applier with what it applies included.
    """
    if covers(owned, last):
        return value
    return _pruned(value, _Ground(shape, last, owned))


def _pruned(value: Json, ground: _Ground) -> Json:
    shape = ground.shape
    form = shape.form(value)
    if not ground.last or is_leaf(shape, form, value):
        return value
    if form == "map":
        kept = {name: _part(part, f"f:{name}", ground) for name, part in value.items()}
        return {name: part for name, part in kept.items() if part is not ABSENT} or None
    items = [_part(item, _step(shape, item), ground) for item in value]
    return [item for item in items if item is not ABSENT] or None


def _part(value: Json, step: str, ground: _Ground) -> Json:
    """What is left of a member or an item."""
    named = step.startswith("f:") and step[2:] in ground.shape.members
    shape = ground.shape.at(step[2:]) if step.startswith("f:") else ground.shape.item
    last, owned = ground.last.get(step), ground.owned.get(step)
    given_up = ground.given_up or _counts(last, named)
    gone = ground.gone or (given_up and not _counts(owned, named) and _is_something(shape, value, named))
    if gone and _counts(last, named):
        return ABSENT
    if not last:
        return value
    return _pruned(value, _Ground(shape, last, owned or LEAF, given_up, gone))


def _counts(place: Fields | None, named: bool) -> bool:
    """Whether somebody owns a place; a named member is owned with anything in it."""
    return place is not None and (named or is_in(place))


def _is_something(shape: Shape, value: Json, named: bool) -> bool:
    """Whether it can be owned at all: an empty list whose items are owned one by one cannot."""
    return not named or not (shape.form(value) == "list" and shape.keys is not None and value == [])


def settled(shape: Shape, value: Json) -> Json:
    """A value of a built-in kind as the server reads it: null is nothing, and in a map the empty text.

    Those of custom kinds keep theirs: where the schema has a default they get that, elsewhere they are refused.
    """
    return value if b"null" not in msgspec.json.encode(value) else _settled(shape, value)


def _settled(shape: Shape, value: Json) -> Json:
    if isinstance(value, dict):
        return {
            name: "" if part is None else _settled(shape.at(name), part)
            for name, part in value.items()
            if part is not None or (name not in shape.members and shape.at(name).scalar == "string")
        }
    if isinstance(value, list):
        return [_settled(shape.item, item) for item in value]
    return value
