"""Story: where a placement stands, cluster by cluster and object by object, each with the reason.

    story = tell(placement, bindings, works)

Everything is read from what the fleet's objects say of themselves; nothing is judged anew here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.fleet import PARENT_BINDING, PAUSED, PINNED
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import (
    APPLIED,
    AVAILABLE,
    DIFF_REPORTED,
    MANIFEST_NOT_TRACKABLE,
    OVERRIDDEN,
    ROLLOUT_STARTED,
    SCHEDULED,
    WORK_SYNCHRONIZED,
)
from kedge.api.twins import Binding, Placement
from kedge.api.work import ManifestCondition, Work

_STEPS = (ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE)


class State(StrEnum):
    """Where something stands."""

    available = "available"
    moving = "moving"
    waiting = "waiting"
    failed = "failed"
    unknown = "unknown"
    leaving = "leaving"
    paused = "paused"


class Thing(Struct, frozen=True):
    """One placed object on one cluster."""

    what: str
    state: State
    why: str = ""


class Place(Struct, frozen=True):
    """A placement on one cluster."""

    cluster: str
    state: State
    index: str = ""
    """The number of the resources it has, or is getting."""
    why: str = ""
    things: tuple[Thing, ...] = ()


class Story(Struct, frozen=True):
    """Where a placement stands."""

    kind: str
    namespace: str | None
    name: str
    state: State
    why: str
    index: str
    """The number of the resources its status speaks of."""
    places: tuple[Place, ...] = ()
    unpicked: tuple[str, ...] = ()
    """Why further clusters were not picked."""
    pinned: str = ""

    @property
    def available(self) -> int:
        return sum(place.state is State.available for place in self.places)

    @property
    def wanted(self) -> int:
        return sum(place.state is not State.leaving for place in self.places) + len(self.unpicked)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state is State.available


def tell(placement: Placement, bindings: Sequence[Binding] = (), works: Iterable[Work] = ()) -> Story:
    """The story of a placement, from its status, its bindings and its Works."""
    statuses = [status for status in placement.status.placement_statuses if status.cluster_name]
    things = _things_by_binding(works)
    by_cluster = {binding.spec.target_cluster: binding for binding in bindings if _is_wanted(binding)}
    places = [_place(status, things, by_cluster.get(status.cluster_name)) for status in statuses]
    leaving = [_leaving(binding) for binding in bindings if not _is_wanted(binding)]
    unpicked = [
        find_message(status.conditions, SCHEDULED)
        for status in placement.status.placement_statuses
        if not status.cluster_name
    ]
    state, why = _whole(placement, places, leaving)
    return Story(
        kind=placement.resource.kind,
        namespace=placement.metadata.namespace,
        name=placement.metadata.name,
        state=state,
        why=why,
        index=placement.status.observed_resource_index or "",
        places=tuple(sorted((*places, *leaving), key=lambda place: place.cluster)),
        unpicked=tuple(unpicked),
        pinned=placement.metadata.annotations.get(PINNED, ""),
    )


def _is_wanted(binding: Binding) -> bool:
    return binding.metadata.deletion_timestamp is None and binding.spec.state != BindingState.unscheduled


def _whole(placement: Placement, places: Sequence[Place], leaving: Sequence[Place]) -> tuple[State, str]:
    prefix, generation = placement.resource.kind, placement.metadata.generation
    conditions = placement.status.conditions
    if placement.metadata.deletion_timestamp is not None:
        return State.leaving, f"being deleted; {len(places) + len(leaving)} clusters still have resources"
    if not conditions:
        return State.moving, "the hub has not looked at it yet"
    stale = next((one for one in conditions if one.observed_generation != generation), None)
    stopped = next((one for one in conditions if one.status != TRUE), None)
    if placement.metadata.annotations.get(PAUSED) == "true" and (stopped or stale):
        return State.paused, "paused: `kedge resume` lets it go on"
    if stale is not None:
        return State.moving, "it was changed, and the hub has not caught up yet"
    if stopped is not None:
        return _state_of(stopped, prefix), stopped.message
    if leaving:
        return State.moving, f"{len(leaving)} clusters are still being cleared"
    return State.available, find_message(conditions, f"{prefix}{AVAILABLE}")


def _state_of(stopped: Condition, prefix: str = "") -> State:
    """Where something stands whose first condition that does not hold is this one."""
    step = stopped.type.removeprefix(prefix)
    if stopped.status == UNKNOWN:
        return State.unknown if step == AVAILABLE else State.moving
    if step in (SCHEDULED, ROLLOUT_STARTED):
        return State.waiting
    if step == AVAILABLE or stopped.reason.endswith(("InProgress", "Pending", "NotSynchronizedYet")):
        return State.moving
    return State.failed


def _place(status: ClusterPlacementStatus, things: Mapping[str, tuple[Thing, ...]], binding: Binding | None) -> Place:
    stopped = next((one for one in status.conditions if one.type in _STEPS and one.status != TRUE), None)
    last = find_condition(status.conditions, AVAILABLE) or find_condition(status.conditions, DIFF_REPORTED)
    if stopped is not None:
        state, why = _state_of(stopped), stopped.message
    elif last is not None:
        state, why = State.available, last.message if last.status == TRUE else ""
    else:
        state, why = State.moving, "nothing has been reported yet"
    if status.failed_placements and state is not State.waiting:
        why = status.failed_placements[0].condition.message or why
    return Place(
        cluster=status.cluster_name,
        state=state,
        index=status.observed_resource_index or "",
        why=why,
        things=things.get(binding.metadata.name, ()) if binding is not None else (),
    )


def _leaving(binding: Binding) -> Place:
    waits = find_condition(binding.status.conditions, ROLLOUT_STARTED)
    if binding.metadata.deletion_timestamp is not None:
        why = "what was placed is being removed"
    else:
        why = waits.message if waits is not None and waits.status == FALSE else "is no longer picked"
    return Place(cluster=binding.spec.target_cluster, state=State.leaving, why=why)


def _things_by_binding(works: Iterable[Work]) -> dict[str, tuple[Thing, ...]]:
    found: dict[str, tuple[Thing, ...]] = {}
    for work in sorted(works, key=lambda one: one.metadata.name):
        binding = work.metadata.labels.get(PARENT_BINDING, "")
        found[binding] = (*found.get(binding, ()), *map(_thing, work.status.manifest_conditions))
    return found


def _thing(one: ManifestCondition) -> Thing:
    applied, available = find_condition(one.conditions, APPLIED), find_condition(one.conditions, AVAILABLE)
    about = one.identifier
    what = f"{about.kind} {about.namespace}/{about.name}" if about.namespace else f"{about.kind} {about.name}"
    if applied is None or applied.status != TRUE:
        return Thing(what, State.failed if applied else State.moving, applied.message if applied else "")
    if available is None or available.status != TRUE:
        return Thing(what, State.moving, available.message if available else "")
    return Thing(what, State.available, "cannot be tracked" if available.reason == MANIFEST_NOT_TRACKABLE else "")


def find_message(conditions: Iterable[Condition], type_: str) -> str:
    """What the condition of a type says; empty if there is none."""
    found = find_condition(conditions, type_)
    return found.message if found is not None else ""
