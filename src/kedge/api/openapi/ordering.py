"""Ordering: a merged list in an order that respects two: that of a patch, and that of the list before.

What the patch names comes in the patch's order, the rest in the order it had; where the two meet, an item of the rest
goes first if it stood before the other, and whatever is new goes as early as the patch's order allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Any


def in_both_orders(merged: Sequence[Json], named: Sequence[Json], before: Sequence[Json], key: str = "") -> list[Json]:
    """The merged items in order; `key` names what tells maps apart, without it items are compared themselves."""
    first = [(at, item) for item in merged if (at := place(named, item, key)) is not None]
    rest = [(place(before, item, key), item) for item in merged if place(named, item, key) is None]
    patched = [item for _, item in sorted(first, key=lambda pair: pair[0])]
    others = [item for _, item in sorted(rest, key=lambda pair: len(before) if pair[0] is None else pair[0])]
    return _woven(others, patched, before, key)


def place(items: Sequence[Json], item: Json, key: str = "") -> int | None:
    """Where an item stands among others; None if it does not."""
    wanted = item.get(key) if key else item
    for index, one in enumerate(items):
        found = one.get(key) if key else one
        if type(found) is type(wanted) and found == wanted:
            return index
    return None


def _woven(others: list[Json], patched: list[Json], before: Sequence[Json], key: str) -> list[Json]:
    result: list[Json] = []
    left, right = 0, 0
    while left < len(others) and right < len(patched):
        mine, theirs = place(before, others[left], key), place(before, patched[right], key)
        if mine is not None and theirs is not None and mine < theirs:
            result.append(others[left])
            left += 1
        else:
            result.append(patched[right])
            right += 1
    return [*result, *others[left:], *patched[right:]]
