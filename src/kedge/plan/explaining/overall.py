"""Overall: where a placement stands as a whole, from where it stands on its clusters; or from its status alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kedge.api.condition import TRUE, Condition, condition_message
from kedge.api.fleet import PINNED
from kedge.api.placement_kinds import Placement
from kedge.api.reasons import AVAILABLE, ROLLOUT_STARTED, SCHEDULED
from kedge.plan.explaining.cluster_places import ClusterPlace, Observed
from kedge.plan.placements import is_external, is_paused
from kedge.plan.placing.policies import wants_no_cluster
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.state import State, state_of
from kedge.plan.text import counted, listed, natural

_IN_ORDER = (State.waiting, State.failed, State.next, State.moving, State.unknown)
"""What is said of the whole is what is said of the first of these clusters."""
_DOES = {
    State.waiting: ("waits", "wait"),
    State.failed: ("has failed", "have failed"),
    State.next: ("is next", "are next"),
    State.moving: ("is not available yet", "are not available yet"),
    State.unknown: ("may not be available", "may not be available"),
}
"""Of one cluster, and of several."""
_PAUSED = "it is paused: `kedge resume` lets it go on"
_NOT_NOTED = "every cluster has it, and the hub has not noted that yet"


def reported_whole(placement: Placement, clusters: int) -> tuple[State, str]:
    """As the hub reported it."""
    conditions = placement.status.conditions
    early = _before_clusters(placement, clusters)
    if early is not None:
        return early
    stopped, behind = _stopped(conditions), _behind(placement, None)
    if is_paused(placement) and (stopped or behind):
        return State.paused, _PAUSED
    if behind and (stopped is None or not stopped.type.endswith((SCHEDULED, ROLLOUT_STARTED))):
        return State.moving, behind
    if stopped is not None:
        return state_of(stopped, placement.resource.kind), stopped.message
    if not clusters and not wants_no_cluster(placement.spec.policy):
        return State.waiting, "no cluster was picked"
    return State.available, condition_message(conditions, f"{placement.resource.kind}{AVAILABLE}")


def wanted_index(observed: Observed) -> str | None:
    """The revision that is to be rolled out; None if that cannot be known, or staged runs decide it."""
    if is_external(observed.placement):
        return None
    newest = newest_resources(observed.snapshots)
    pinned = observed.placement.metadata.annotations.get(PINNED)
    return pinned or (str(resource_index(newest)) if newest is not None else None)


def observed_whole(
    observed: Observed, places: Sequence[ClusterPlace], leaving: Sequence[ClusterPlace], wanted: str | None
) -> tuple[State, str]:
    """As it is observed; done only if the hub has reported that, too."""
    placement = observed.placement
    early = _before_clusters(placement, len(places) + len(leaving))
    if early is not None:
        return early
    stopped, behind = _stopped(placement.status.conditions), _behind(placement, wanted)
    first = next((one for state in _IN_ORDER for one in places if one.state is state), None)
    if is_paused(placement) and (stopped or behind or first):
        return State.paused, _PAUSED
    if stopped is not None and stopped.type.endswith(SCHEDULED):
        return state_of(stopped, placement.resource.kind), stopped.message
    if first is not None:
        return first.state, _said_of(first, places)
    if behind or leaving:
        return State.moving, behind or _still(len(leaving), "has to be cleared")
    if not places and not wants_no_cluster(placement.spec.policy):
        return State.waiting, _on_none(observed)
    if stopped is not None:
        return State.moving, _moved_outside(places) if is_external(placement) else _NOT_NOTED
    return State.available, condition_message(placement.status.conditions, f"{placement.resource.kind}{AVAILABLE}")


def _on_none(observed: Observed) -> str:
    """Why it is on no cluster; of each, the policy says more."""
    if observed.members is None:
        return "no cluster was picked"
    number = len(observed.members)
    return f"none of {counted(number, 'member')} was picked" if number else "the fleet has no members"


def _said_of(first: ClusterPlace, places: Sequence[ClusterPlace]) -> str:
    """What is said of the clusters that stand as this one does."""
    same = sorted((one.cluster for one in places if (one.state, one.why) == (first.state, first.why)), key=natural)
    does = f"{len(same)} of {counted(len(places), 'cluster')} {_DOES[first.state][len(same) > 1]}"
    return ": ".join(part for part in (does, listed(same), first.why) if part)


def _moved_outside(places: Iterable[ClusterPlace]) -> str:
    """What is said while staged runs decide which cluster has what."""
    have = listed(sorted({place.index for place in places if place.index}, key=natural))
    return f"staged update runs move it from cluster to cluster, and clusters have revision {have}"


def _before_clusters(placement: Placement, clusters: int) -> tuple[State, str] | None:
    """How it stands if that does not depend on its clusters."""
    if placement.metadata.deletion_timestamp is not None:
        return State.leaving, f"it is being deleted: {_still(clusters, 'has resources')}"
    return None if placement.status.conditions else (State.moving, "the hub has not looked at it yet")


def _stopped(conditions: Iterable[Condition]) -> Condition | None:
    return next((one for one in conditions if one.status != TRUE), None)


def _behind(placement: Placement, wanted: str | None) -> str:
    """What its status does not speak of yet; empty if it speaks of what is."""
    generation, status = placement.metadata.generation, placement.status
    if any(one.observed_generation != generation for one in status.conditions):
        return "it was changed, and the hub has not caught up yet"
    if wanted is not None and status.observed_resource_index != wanted:
        return f"revision {wanted} is next, and the hub has not caught up yet"
    return ""


def _still(clusters: int, does: str) -> str:
    words = does if clusters == 1 else does.replace("has", "have", 1)
    return f"{counted(clusters, 'cluster')} still {words}"
