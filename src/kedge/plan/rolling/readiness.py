"""Readiness: what is known of a placement on one cluster, judged by the binding's own status.

Only what a status says at the binding's own generation counts. Unknown is not available: no status yet, being applied,
a cluster that is not heard of. What is being applied right now has not failed either (kubefleet.md §14 #1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, Condition
from kedge.api.reasons import (
    APPLIED,
    APPLY_IN_PROGRESS,
    APPLY_PENDING,
    AVAILABLE,
    DIFF_REPORTED,
    NOT_ALL_TRACKABLE,
    NOT_SYNCED,
    OVERRIDDEN,
    OVERRIDDEN_PENDING,
    RESOURCE_NOT_AVAILABLE,
    WORK_SYNCHRONIZED,
    WORK_UNTRACKABLE,
)
from kedge.api.twins import Binding

_STEPS: Final = frozenset((OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED))
_PROOFS: Final = frozenset((AVAILABLE, DIFF_REPORTED))
_UNDERWAY: Final = frozenset(
    (
        *(APPLY_IN_PROGRESS, APPLY_PENDING, OVERRIDDEN_PENDING, NOT_SYNCED, RESOURCE_NOT_AVAILABLE),
        "DiffReportInProgress",
    )
)
_UNTRACKABLE: Final = frozenset((WORK_UNTRACKABLE, NOT_ALL_TRACKABLE))


class Readiness(Enum):
    """What is known of a placement on one cluster. The order is how much it tells of why a rollout stands still."""

    broken = 0
    """Its own status says that it does not work."""
    unreachable = 1
    gone = 2
    """The cluster is no member any more."""
    unproven = 3
    """It cannot be seen whether it works, and the time to wait instead is not over."""
    underway = 4
    """It has no status of its newest resources yet."""
    leaving = 5
    """It is being removed, or the cluster is leaving the fleet."""
    empty = 6
    """It was never given resources."""
    available = 7


_FREE: Final = (Readiness.broken, Readiness.gone, Readiness.empty)


class Around(Struct, frozen=True):
    """What readiness depends on beside the binding."""

    now: datetime
    period: timedelta
    unreachable: Mapping[str, str] = {}
    gone: Set[str] = frozenset()
    parting: Set[str] = frozenset()


class Unit(Struct, frozen=True, gc=False):
    """One binding, and what is known of it."""

    binding: Binding
    name: str
    cluster: str
    state: str
    is_deleting: bool
    readiness: Readiness
    proven_at: datetime | None = None
    """When waiting will have proven it, if that is what it takes."""

    @property
    def is_available(self) -> bool:
        return self.readiness is Readiness.available

    @property
    def is_picked(self) -> bool:
        """Whether the cluster is one of those wanted."""
        return self.state != BindingState.unscheduled

    @property
    def holds(self) -> bool:
        """Whether there may be resources on the cluster: until the last trace of a binding is gone, there may."""
        return self.is_deleting or self.state != BindingState.scheduled

    @property
    def is_free(self) -> bool:
        """Whether nobody loses anything if it is changed or removed: it is known not to work."""
        return self.readiness in _FREE

    @property
    def has_works(self) -> bool:
        """Whether its resources have been sent on their way, or could not be."""
        return any(one.type == WORK_SYNCHRONIZED and one.status in (TRUE, FALSE) for one in self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.binding.status.conditions


def judge(binding: Binding, around: Around) -> Unit:
    """What is known of one binding."""
    meta, spec = binding.metadata, binding.spec
    readiness, proven_at = _judged(binding, around)
    is_deleting = meta.deletion_timestamp is not None
    return Unit(binding, meta.name, spec.target_cluster, spec.state, is_deleting, readiness, proven_at)


def _judged(binding: Binding, around: Around) -> tuple[Readiness, datetime | None]:
    readiness = _apart_from_status(binding, around)
    if readiness is not None:
        return readiness, None
    proof: Condition | None = None
    generation = binding.metadata.generation
    for said in binding.status.conditions:  # as in `current`; spelled out, since there may be thousands to look at
        if said.observed_generation != generation or said.type not in _STEPS:
            continue
        if said.status == FALSE and has_failed(said):
            return Readiness.broken, None
        if said.status == TRUE and proof is None and said.type in _PROOFS:
            proof = said
    if proof is None:
        return Readiness.underway, None
    if proof.reason in _UNTRACKABLE and (at := proof.last_transition_time + around.period) > around.now:
        return Readiness.unproven, at
    return Readiness.available, None


def _apart_from_status(binding: Binding, around: Around) -> Readiness | None:
    cluster = binding.spec.target_cluster
    if binding.metadata.deletion_timestamp is not None or cluster in around.parting:
        return Readiness.leaving
    if not binding.spec.resource_snapshot_name:
        return Readiness.empty
    if cluster in around.gone:
        return Readiness.gone
    return Readiness.unreachable if cluster in around.unreachable else None


def current(binding: Binding) -> list[Condition]:
    """What the status says of the binding as it is now, beside the rollout's own condition."""
    generation = binding.metadata.generation
    return [one for one in binding.status.conditions if one.observed_generation == generation and one.type in _STEPS]


def has_failed(condition: Condition) -> bool:
    """Whether a condition says no, and not only: not yet."""
    return condition.status == FALSE and condition.reason not in _UNDERWAY


def heads(units: Iterable[Unit]) -> dict[str, Unit]:
    """The one binding that speaks for each cluster, should there be several: the one that has been there longest."""
    found: dict[str, Unit] = {}
    for unit in units:
        other = found.get(unit.cluster)
        if other is None or _seniority(unit) < _seniority(other):
            found[unit.cluster] = unit
    return found


def _seniority(unit: Unit) -> tuple[bool, bool, float, str]:
    made = unit.binding.metadata.creation_timestamp
    return (not unit.is_deleting, not unit.holds, made.timestamp() if made else 0.0, unit.name)
