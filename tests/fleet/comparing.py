"""Comparing: what differs between a recorded fleet and one of ours, in a form people can read.

Every recorded object has to be there, and be the same after masking; of the kinds that are ours alone to make, there
may be no others. Tables have to print the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from fleet.masks import masked, masked_name, masked_table
from fleet.traces import Fleet, Found, Table, Untyped

NOT_THERE = "(not there)"
THERE = "(there)"
COMPLETE = {
    *("ClusterResourcePlacement", "ClusterSchedulingPolicySnapshot", "ClusterResourceSnapshot"),
    *("ClusterResourceBinding", "Work"),
}
"""Kinds of which a trace shows all there are, if it shows any; of others it shows some."""


class Difference(Struct, frozen=True):
    """One place where the two are not the same; of a table, the command is the kind and the row's name the name."""

    where: str
    kind: str
    name: str
    path: str
    recorded: Any
    ours: Any

    def __str__(self) -> str:
        place = f"{self.where}: {self.kind} {self.name}" + (f", {self.path}" if self.path else "")
        return f"{place}\n    recorded: {self.recorded}\n    ours:     {self.ours}"


def compare(recorded: Fleet, ours: Fleet) -> list[Difference]:
    """Every difference, objects first."""
    theirs, mine = _generations(recorded), _generations(ours)
    paired = [difference for them, us in _pairs(recorded, ours) for difference in _one(them, us, theirs, mine)]
    printed = [
        difference
        for command, table in recorded.tables.items()
        for difference in _printed(command, table, ours.tables.get(command))
    ]
    return paired + printed


def report(differences: Iterable[Difference]) -> str:
    return "\n".join(map(str, differences))


def _generations(fleet: Fleet) -> Mapping[str, int]:
    return {
        placement["metadata"]["name"]: placement["metadata"]["generation"]
        for placement in fleet.of("ClusterResourcePlacement")
    }


def _pairs(recorded: Fleet, ours: Fleet) -> Iterator[tuple[Found | None, Found | None]]:
    """Each recorded object with ours; then ours that nobody recorded, of the kinds that are shown whole."""
    left = list(ours.objects)
    for them in recorded.objects:
        us = min(
            (one for one in left if _identity(one) == _identity(them)),
            key=lambda one: one.is_going != them.is_going,
            default=None,
        )
        if us is not None:
            left.remove(us)
        yield them, us
    whole = {(found.where, found.kind) for found in recorded.objects} & {("hub", kind) for kind in COMPLETE}
    yield from ((None, us) for us in left if (us.where, us.kind) in whole)


def _identity(found: Found) -> tuple[str, ...]:
    group = found.obj["apiVersion"].rpartition("/")[0]
    return found.where, group, found.kind, found.namespace, masked_name(found.kind, found.name)


def _one(
    them: Found | None, us: Found | None, theirs: Mapping[str, int], mine: Mapping[str, int]
) -> Iterator[Difference]:
    found = them or us
    assert found is not None
    name = "/".join(filter(None, (found.namespace, masked_name(found.kind, found.name))))
    if them is None or us is None:
        yield Difference(found.where, found.kind, name, "", _presence(them), _presence(us))
        return
    for path, before, after in _values("", masked(them, theirs), masked(us, mine)):
        yield Difference(found.where, found.kind, name, path, before, after)


def _presence(found: Found | None) -> str:
    return NOT_THERE if found is None else "(there, being deleted)" if found.is_going else THERE


def _values(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _maps(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(path, before, after)
    elif before != after:
        yield path, before, after


def _maps(path: str, before: Untyped, after: Untyped) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted(before.keys() | after.keys()):
        inner = f"{path}.{key}" if path else key
        yield from _values(inner, before.get(key, NOT_THERE), after.get(key, NOT_THERE))


def _lists(path: str, before: list[Any], after: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Conditions by their type, and whether they come in the same order; anything else by its place."""
    if all(isinstance(one, dict) and "type" in one and "status" in one for one in (*before, *after)):
        yield from _maps(path, {one["type"]: one for one in before}, {one["type"]: one for one in after})
        orders = [[one["type"] for one in side] for side in (before, after)]
        if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
            yield f"{path} (order)", orders[0], orders[1]
        return
    if len(before) != len(after):
        yield f"{path} (length)", before, after
        return
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        yield from _values(f"{path}[{number}]", one, other)


def _printed(command: str, recorded: Table, ours: Table | None) -> Iterator[Difference]:
    if ours is None:
        yield Difference("printed", command, "", "", THERE, NOT_THERE)
        return
    before, after = masked_table(command, recorded), masked_table(command, ours)
    if before.columns != after.columns:
        yield Difference("printed", command, "", "columns", before.columns, after.columns)
        return
    first = 2 if before.columns[0] == "NAMESPACE" else 1
    rows = [{"/".join(row[:first]): row for row in table.rows} for table in (before, after)]
    for name in [*rows[0], *(name for name in rows[1] if name not in rows[0])]:
        one, other = rows[0].get(name), rows[1].get(name)
        if one is None or other is None:
            yield Difference("printed", command, name, "", one or NOT_THERE, other or NOT_THERE)
            continue
        for column, cell, our_cell in zip(before.columns, one, other, strict=True):
            if cell != our_cell:
                yield Difference("printed", command, name, column, cell, our_cell)
