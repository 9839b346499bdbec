"""History: the numbered versions of a placement's resources, and which clusters have which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from kedge.api.fleet import PINNED, RESOURCE_HASH, resource_snapshot_name
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement
from kedge.plan.revisions import is_master, newest_resources, resource_index
from kedge.plan.text import natural


class Revision(Struct, frozen=True):
    """One version of a placement's resources."""

    index: int
    made: datetime | None
    digest: str
    clusters: tuple[str, ...] = ()
    """Those that have it, or are getting it."""
    is_newest: bool = False
    is_pinned: bool = False


def revisions(placement: Placement, snapshots: Sequence[ObjectMeta], bindings: Iterable[Binding]) -> list[Revision]:
    """Every version that is kept, the newest first."""
    held = [(binding.spec.resource_snapshot_name, binding.spec.target_cluster) for binding in bindings]
    newest = newest_resources(snapshots)
    pinned = placement.metadata.annotations.get(PINNED)
    found = []
    for meta in snapshots:
        index = resource_index(meta)
        if index is None or not is_master(meta):
            continue
        name = resource_snapshot_name(placement.metadata.name, index)
        revision = Revision(
            index=index,
            made=meta.creation_timestamp,
            digest=meta.annotations.get(RESOURCE_HASH, "")[:12],
            clusters=tuple(sorted((cluster for snapshot, cluster in held if snapshot == name), key=natural)),
            is_newest=meta is newest,
            is_pinned=pinned == str(index),
        )
        found.append(revision)
    return sorted(found, key=lambda revision: -revision.index)
