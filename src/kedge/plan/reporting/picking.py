"""Picking: how many clusters are asked for, and which bindings speak for those that are picked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kedge.api.binding import BindingState
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.api.twins import Binding

B = TypeVar("B", bound=Binding)


def live(bindings: Iterable[B]) -> list[B]:
    """Those that stay. Of two for one cluster the one that has resources comes last."""
    return sorted(
        (one for one in bindings if not goes(one)),
        key=lambda one: (one.spec.state == BindingState.bound, one.metadata.name),
    )


def goes(binding: Binding) -> bool:
    """Whether its cluster is no longer picked, and still holds what was placed."""
    return binding.metadata.deletion_timestamp is not None or binding.spec.state == BindingState.unscheduled


def asked_for(policy: PlacementPolicy | None) -> int:
    """How many clusters a policy asks for; none in particular, if it takes all that match."""
    if policy is None or policy.placement_type == PlacementType.pick_all:
        return 0
    if policy.placement_type == PlacementType.pick_n:
        return policy.number_of_clusters or 0
    return len(policy.cluster_names)


def asks_for_none(policy: PlacementPolicy | None) -> bool:
    """Whether a policy wants no cluster at all."""
    takes_all = policy is None or policy.placement_type == PlacementType.pick_all
    return not takes_all and not asked_for(policy)
