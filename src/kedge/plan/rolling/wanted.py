"""Wanted: which resources a placement rolls out: the newest, or those it is pinned to (`kedge rollback`)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kedge.api.fleet import PINNED
from kedge.api.meta import ObjectMeta
from kedge.plan.revisions import is_master, newest_resources, resource_index


class Wanted(Struct, frozen=True):
    """The resources to roll out, by the name of their first snapshot; empty if there are none."""

    name: str = ""
    problem: str = ""
    """Why what is asked for cannot be had; empty if it can, or nothing is there yet."""


def wanted(placement: ObjectMeta, snapshots: Iterable[ObjectMeta]) -> Wanted:
    """What a placement with these annotations rolls out, of these snapshots."""
    asked = placement.annotations.get(PINNED)
    if asked is not None:
        return _pinned(asked, [meta for meta in snapshots if is_master(meta)])
    newest = newest_resources(snapshots)
    return Wanted(newest.name) if newest is not None else Wanted()


def _pinned(asked: str, masters: list[ObjectMeta]) -> Wanted:
    for meta in masters:
        if str(resource_index(meta)) == asked.strip():
            return Wanted(meta.name)
    known = sorted(index for meta in masters if (index := resource_index(meta)) is not None)
    there = f"there are {', '.join(map(str, known))}" if known else "there are none at all"
    return Wanted(problem=f"annotation {PINNED} asks for resources {asked!r}, and {there}: change or remove it")
