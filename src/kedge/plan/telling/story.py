"""Story: where a placement stands, cluster by cluster and object by object, each with the reason.

    story = tell(placement, bindings, works, snapshots)

Everything is read from what the fleet's objects say of themselves; nothing is judged anew here. From the placement
alone the same is told, but for what its clusters still have of an earlier revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE, Condition, find_condition
from kedge.api.fleet import PAUSED, PINNED
from kedge.api.meta import ObjectMeta
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import (
    APPLIED,
    AVAILABLE,
    DIFF_REPORTED,
    OVERRIDDEN,
    ROLLOUT_STARTED,
    SCHEDULED,
    WORK_SYNCHRONIZED,
)
from kedge.api.rollout import RolloutStrategyType
from kedge.api.twins import Binding, Placement
from kedge.api.work import Work
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.rolling.readiness import current
from kedge.plan.rolling.why import waits_to_go
from kedge.plan.telling.state import State, state_of
from kedge.plan.telling.things import Thing, things_by_binding
from kedge.plan.telling.words import counted, natural

_STEPS = (ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE)


class Place(Struct, frozen=True):
    """A placement on one cluster."""

    cluster: str
    state: State
    index: str = ""
    """The revision it has, or is getting; empty if that is none, or not known."""
    is_up: bool = False
    """Whether what it has is available, whichever revision that is."""
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
    """The revision that is rolled out."""
    places: tuple[Place, ...] = ()
    unpicked: tuple[str, ...] = ()
    """Why further clusters were not picked."""
    pinned: str = ""
    """The revision it is held at, if it was rolled back."""
    is_paused: bool = False
    is_external: bool = False
    """Whether staged update runs move it."""
    generation: int = 0
    """Of the placement that it is told of."""
    doubt: str = ""
    """Why what is told here may not be so: the hub is not heard from, or what is selected cannot be read."""
    is_readable: bool = True
    """Whether what is selected can be read; if not, looking for longer does not help."""

    @property
    def path(self) -> str:
        """What to call it by: its name, in a namespace after that."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.path}"

    @property
    def done(self) -> int:
        """How many clusters have the revision that is rolled out, and have it available."""
        return sum(place.state is State.available for place in self.places)

    @property
    def updated(self) -> int:
        """How many clusters have that revision, or are getting it."""
        return sum(bool(self.index) and place.index == self.index for place in self._wanted)

    @property
    def up(self) -> int:
        """How many clusters have something available, whichever revision."""
        return sum(place.is_up for place in self._wanted)

    @property
    def wanted(self) -> int:
        """How many clusters are to have it."""
        return len(self._wanted) + len(self.unpicked)

    @property
    def _wanted(self) -> list[Place]:
        return [place for place in self.places if place.state is not State.leaving]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state is State.available

    @property
    def is_unknowable(self) -> bool:
        """Whether it cannot be found out if anything is left to do."""
        return bool(self.doubt) and self.state is State.unknown


def tell(
    placement: Placement,
    bindings: Sequence[Binding] = (),
    works: Iterable[Work] = (),
    snapshots: Sequence[ObjectMeta] = (),
) -> Story:
    """The story of a placement, from its status, its bindings, its Works and the metadata of its snapshots."""
    indexes = {meta.name: str(resource_index(meta)) for meta in snapshots}
    things = things_by_binding(works)
    by_cluster = {binding.spec.target_cluster: binding for binding in bindings if _is_wanted(binding)}
    statuses = placement.status.placement_statuses
    named = [status for status in statuses if status.cluster_name]
    places = [_place(status, by_cluster.get(status.cluster_name), things, indexes) for status in named]
    leaving = [_leaving(binding, indexes) for binding in bindings if not _is_wanted(binding)]
    state, why = _whole(placement, places, leaving, _wanted_index(placement, snapshots))
    return Story(
        kind=placement.resource.kind,
        namespace=placement.metadata.namespace,
        name=placement.metadata.name,
        state=state,
        why=why,
        index=placement.status.observed_resource_index or "",
        places=tuple(sorted((*places, *leaving), key=lambda place: natural(place.cluster))),
        unpicked=tuple(find_message(status.conditions, SCHEDULED) for status in statuses if not status.cluster_name),
        pinned=placement.metadata.annotations.get(PINNED, ""),
        is_paused=placement.metadata.annotations.get(PAUSED) == "true",
        is_external=is_external(placement),
        generation=placement.metadata.generation,
    )


def _is_wanted(binding: Binding) -> bool:
    return binding.metadata.deletion_timestamp is None and binding.spec.state != BindingState.unscheduled


def is_external(placement: Placement) -> bool:
    """Whether staged update runs move a placement."""
    strategy = placement.spec.strategy
    return strategy is not None and strategy.type is RolloutStrategyType.external


def _wanted_index(placement: Placement, snapshots: Sequence[ObjectMeta]) -> str | None:
    """The revision that is to be rolled out; None if that cannot be known, or staged runs decide it."""
    if is_external(placement):
        return None
    newest = newest_resources(snapshots)
    return placement.metadata.annotations.get(PINNED) or (str(resource_index(newest)) if newest is not None else None)


# The whole


def _whole(
    placement: Placement, places: Sequence[Place], leaving: Sequence[Place], wanted: str | None
) -> tuple[State, str]:
    prefix, conditions = placement.resource.kind, placement.status.conditions
    if placement.metadata.deletion_timestamp is not None:
        return State.leaving, f"it is being deleted: {_still(len(places) + len(leaving), 'has resources')}"
    if not conditions:
        return State.moving, "the hub has not looked at it yet"
    stopped = next((one for one in conditions if one.status != TRUE), None)
    behind = _behind(placement, wanted)
    if placement.metadata.annotations.get(PAUSED) == "true" and (stopped or behind):
        return State.paused, "it is paused: `kedge resume` lets it go on"
    if behind and (stopped is None or not stopped.type.endswith((SCHEDULED, ROLLOUT_STARTED))):
        return State.moving, behind
    if stopped is not None:
        return state_of(stopped, prefix), stopped.message
    if leaving:
        return State.moving, _still(len(leaving), "has to be cleared")
    return State.available, find_message(conditions, f"{prefix}{AVAILABLE}")


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


# One cluster


def _place(
    status: ClusterPlacementStatus,
    binding: Binding | None,
    things: Mapping[str, tuple[Thing, ...]],
    indexes: Mapping[str, str],
) -> Place:
    state, why = _where(status)
    if status.failed_placements and state is not State.waiting:
        why = status.failed_placements[0].condition.message or why
    if binding is None:
        index = "" if state is State.waiting else status.observed_resource_index or ""
        return Place(status.cluster_name, state, index, is_up=state is State.available, why=why)
    return Place(
        cluster=status.cluster_name,
        state=state,
        index=indexes.get(binding.spec.resource_snapshot_name, ""),
        is_up=state is not State.unknown and _is_available(binding),
        why=why,
        things=things.get(binding.metadata.name, ()),
    )


def _where(status: ClusterPlacementStatus) -> tuple[State, str]:
    stopped = next((one for one in status.conditions if one.type in _STEPS and one.status != TRUE), None)
    if stopped is not None:
        return state_of(stopped), stopped.message.removeprefix(f"{status.cluster_name} waits: ")
    last = find_condition(status.conditions, AVAILABLE) or find_condition(status.conditions, DIFF_REPORTED)
    if last is None:
        return State.moving, "nothing has been reported yet"
    return State.available, last.message if last.status == TRUE else ""


def _is_available(binding: Binding) -> bool:
    return any(one.type in (AVAILABLE, DIFF_REPORTED) and one.status == TRUE for one in current(binding))


def _leaving(binding: Binding, indexes: Mapping[str, str]) -> Place:
    if binding.metadata.deletion_timestamp is not None:
        why = "what was placed is being removed"
    else:
        why = waits_to_go(binding) or "it is no longer picked"
    cluster, index = binding.spec.target_cluster, indexes.get(binding.spec.resource_snapshot_name, "")
    return Place(cluster=cluster, state=State.leaving, index=index, is_up=_is_available(binding), why=why)


def find_message(conditions: Iterable[Condition], type_: str) -> str:
    """What the condition of a type says; empty if there is none."""
    found = find_condition(conditions, type_)
    return found.message if found is not None else ""
