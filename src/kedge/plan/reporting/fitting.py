"""Fitting: a status that a server can store, however many clusters a placement has.

An object of more than about a megabyte and a half is refused as a whole. So what is said least is left out first: the
words of what went well, then of each cluster all but the first of the objects that failed, then the words altogether.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kedge.api.condition import TRUE
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus

LARGEST: Final = 1_200_000  # bytes; the rest of the object needs some, too
Shorten: TypeAlias = Callable[[ClusterPlacementStatus], ClusterPlacementStatus]


def fitting(status: PlacementStatus, largest: int = LARGEST) -> PlacementStatus:
    """The status, or as much of it as fits."""
    for shorten in _SHORTER:
        if _size(status) <= largest:
            return status
        status = replace(status, placement_statuses=tuple(shorten(one) for one in status.placement_statuses))
    return status


def _size(status: PlacementStatus) -> int:
    return len(msgspec.json.encode(status))


def _without_good_words(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    conditions = tuple(replace(one, message="") if one.status == TRUE else one for one in cluster.conditions)
    return replace(cluster, conditions=conditions)


def _with_one_of_each(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    return replace(
        cluster,
        failed_placements=cluster.failed_placements[:1],
        drifted_placements=cluster.drifted_placements[:1],
        diffed_placements=cluster.diffed_placements[:1],
    )


def _with_few_words(cluster: ClusterPlacementStatus) -> ClusterPlacementStatus:
    conditions = tuple(replace(one, message=one.message[:100]) for one in cluster.conditions)
    return replace(cluster, conditions=conditions, failed_placements=(), drifted_placements=(), diffed_placements=())


_SHORTER: Final[tuple[Shorten, ...]] = (_without_good_words, _with_one_of_each, _with_few_words)
