"""Story: where a placement stands, cluster by cluster and object by object, each with the reason.

    story = tell(placement, bindings, works, snapshots, policies=policies, members=members, now=now)

All parts come from one observation, by the functions with which the hub decides. What the hub has written into the
placement's status, which is a moment older, is needed for one thing alone: nothing is done before the hub says so, too.
From the placement alone (`tell(placement)`) its status is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.condition import TRUE, condition_message, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import PINNED
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, PolicySnapshot, Run
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import AVAILABLE, DIFF_REPORTED, SCHEDULED
from kedge.api.work import Work
from kedge.plan.explaining.cluster_places import (
    STEPS,
    ClusterPlace,
    Observed,
    leaving_places,
    not_picked,
    passed_over,
    picked_places,
)
from kedge.plan.explaining.overall import observed_whole, reported_whole, wanted_index
from kedge.plan.placements import is_external, is_paused
from kedge.plan.state import State, state_of
from kedge.plan.text import natural, path_of


class Story(Struct, frozen=True):
    """Where a placement stands."""

    kind: str
    namespace: str | None
    name: str
    state: State
    why: str
    index: str
    """The revision that is rolled out."""
    places: tuple[ClusterPlace, ...] = ()
    unpicked: tuple[str, ...] = ()
    """Why further clusters were not picked."""
    passed_over: tuple[str, ...] = ()
    """Why no cluster was picked, where all that fit are wanted."""
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
        return path_of(self.namespace, self.name)

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
    def _wanted(self) -> list[ClusterPlace]:
        return [place for place in self.places if place.state is not State.leaving]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state is State.available

    @property
    def is_unknowable(self) -> bool:
        """Whether it cannot be found out if anything is left to do."""
        return bool(self.doubt) and self.state is State.unknown


@overload
def tell(placement: Placement) -> Story: ...
@overload
def tell(
    placement: Placement,
    bindings: Iterable[Binding],
    works: Iterable[Work],
    snapshots: Iterable[ObjectMeta],
    *,
    now: datetime,
    policies: Iterable[PolicySnapshot] = (),
    members: Mapping[str, MemberCluster] | None = None,
    runs: Iterable[Run] = (),
    dialect: Dialect = Dialect.seed,
) -> Story: ...


def tell(
    placement: Placement,
    bindings: Iterable[Binding] | None = None,
    works: Iterable[Work] = (),
    snapshots: Iterable[ObjectMeta] = (),
    *,
    now: datetime | None = None,
    policies: Iterable[PolicySnapshot] = (),
    members: Mapping[str, MemberCluster] | None = None,
    runs: Iterable[Run] = (),
    dialect: Dialect = Dialect.seed,
) -> Story:
    """The story of a placement, from all that was read of it and of the members; or from its status alone."""
    if bindings is None or now is None:
        return _as_reported(placement)
    return _as_observed(
        Observed(
            placement=placement,
            bindings=tuple(bindings),
            works=tuple(works),
            snapshots=tuple(snapshots),
            policies=tuple(policies),
            members=members,
            runs=tuple(runs),
            now=now,
            dialect=dialect,
        )
    )


def _story(
    placement: Placement, places: Sequence[ClusterPlace], unpicked: Sequence[str], state: State, why: str
) -> Story:
    return Story(
        kind=placement.resource.kind,
        namespace=placement.metadata.namespace,
        name=placement.metadata.name,
        state=state,
        why=why,
        index=placement.status.observed_resource_index or "",
        places=tuple(sorted(places, key=lambda place: natural(place.cluster))),
        unpicked=tuple(unpicked),
        pinned=placement.metadata.annotations.get(PINNED, ""),
        is_paused=is_paused(placement),
        is_external=is_external(placement),
        generation=placement.metadata.generation,
    )


# As the hub reported it


def _as_reported(placement: Placement) -> Story:
    statuses = placement.status.placement_statuses
    places = [_reported(status) for status in statuses if status.cluster_name]
    unpicked = [condition_message(status.conditions, SCHEDULED) for status in statuses if not status.cluster_name]
    state, why = reported_whole(placement, len(places))
    return _story(placement, places, unpicked, state, why)


def _reported(status: ClusterPlacementStatus) -> ClusterPlace:
    state, why = _where(status)
    if status.failed_placements and state is not State.waiting:
        why = status.failed_placements[0].condition.message or why
    index = "" if state is State.waiting else status.observed_resource_index or ""
    return ClusterPlace(status.cluster_name, state, index, is_up=state is State.available, why=why)


def _where(status: ClusterPlacementStatus) -> tuple[State, str]:
    stopped = next((one for one in status.conditions if one.type in STEPS and one.status != TRUE), None)
    if stopped is not None:
        return state_of(stopped), stopped.message.removeprefix(f"{status.cluster_name} waits: ")
    last = find_condition(status.conditions, AVAILABLE) or find_condition(status.conditions, DIFF_REPORTED)
    if last is None:
        return State.moving, "nothing has been reported yet"
    return State.available, last.message if last.status == TRUE else ""


# As it is observed


def _as_observed(observed: Observed) -> Story:
    placement = observed.placement
    places, leaving = picked_places(observed), leaving_places(observed)
    wanted = wanted_index(observed)
    state, why = observed_whole(observed, places, leaving, wanted)
    story = _story(placement, [*places, *leaving], not_picked(observed), state, why)
    story = replace(story, passed_over=tuple(passed_over(observed)))
    return story if wanted is None else replace(story, index=wanted)
