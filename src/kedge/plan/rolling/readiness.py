"""Readiness: what is known of a placement on one cluster, judged by the binding's own status.

Only what a status says at the binding's own generation counts. Unknown is not available: no status yet, being applied,
a cluster that is not heard of. What is being applied right now has not failed either (kubefleet.md §14 #1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, Condition
from kedge.api.placement_kinds import Binding
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
from kedge.plan.moving.unit import Proof

_STEPS: Final = frozenset((OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED))
_PROOFS: Final = frozenset((AVAILABLE, DIFF_REPORTED))
_UNDERWAY: Final = frozenset(
    (
        *(APPLY_IN_PROGRESS, APPLY_PENDING, OVERRIDDEN_PENDING, NOT_SYNCED, RESOURCE_NOT_AVAILABLE),
        "DiffReportInProgress",
    )
)
_UNTRACKABLE: Final = frozenset((WORK_UNTRACKABLE, NOT_ALL_TRACKABLE))


class FleetFacts(Struct, frozen=True):
    """What the proof of a binding depends on beside the binding."""

    now: datetime
    period: timedelta
    unreachable: Mapping[str, str] = {}
    gone: Set[str] = frozenset()
    parting: Set[str] = frozenset()


class BindingFacts(Struct, frozen=True, gc=False):
    """One binding, and what is known of it."""

    binding: Binding
    name: str
    cluster: str
    state: str
    is_deleting: bool
    proof: Proof
    proven_at: datetime | None = None
    """When waiting will have proven it, if that is what it takes."""

    @property
    def is_available(self) -> bool:
        return self.proof is Proof.proven

    @property
    def is_picked(self) -> bool:
        """Whether the cluster is one of those wanted."""
        return self.state != BindingState.unscheduled

    @property
    def holds(self) -> bool:
        """Whether there may be resources on the cluster: until the last trace of a binding is gone, there may."""
        return self.is_deleting or self.state != BindingState.scheduled

    @property
    def has_works(self) -> bool:
        """Whether its resources have been sent on their way, or could not be."""
        return any(one.type == WORK_SYNCHRONIZED and one.status in (TRUE, FALSE) for one in self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.binding.status.conditions


def judge(binding: Binding, fleet: FleetFacts) -> BindingFacts:
    """What is known of one binding."""
    meta, spec = binding.metadata, binding.spec
    proof, proven_at = _judged(binding, fleet)
    is_deleting = meta.deletion_timestamp is not None
    return BindingFacts(binding, meta.name, spec.target_cluster, spec.state, is_deleting, proof, proven_at)


def _judged(binding: Binding, fleet: FleetFacts) -> tuple[Proof, datetime | None]:
    proof = _apart_from_status(binding, fleet)
    if proof is not None:
        return proof, None
    works: Condition | None = None
    generation = binding.metadata.generation
    for said in binding.status.conditions:  # as in `current`; spelled out, since there may be thousands to look at
        if said.observed_generation != generation or said.type not in _STEPS:
            continue
        if said.status == FALSE and has_failed(said):
            return Proof.failed, None
        if said.status == TRUE and works is None and said.type in _PROOFS:
            works = said
    if works is None:
        return Proof.pending, None
    if works.reason in _UNTRACKABLE and (at := works.last_transition_time + fleet.period) > fleet.now:
        return Proof.untracked, at
    return Proof.proven, None


def _apart_from_status(binding: Binding, fleet: FleetFacts) -> Proof | None:
    cluster = binding.spec.target_cluster
    if binding.metadata.deletion_timestamp is not None or cluster in fleet.parting:
        return Proof.leaving
    if not binding.spec.resource_snapshot_name:
        return Proof.nothing
    if cluster in fleet.gone:
        return Proof.gone
    return Proof.unknown if cluster in fleet.unreachable else None


def current(binding: Binding) -> list[Condition]:
    """What the status says of the binding as it is now, beside the rollout's own condition."""
    generation = binding.metadata.generation
    return [one for one in binding.status.conditions if one.observed_generation == generation and one.type in _STEPS]


def has_failed(condition: Condition) -> bool:
    """Whether a condition says no, and not only: not yet."""
    return condition.status == FALSE and condition.reason not in _UNDERWAY


def one_binding_per_cluster(bindings: Iterable[BindingFacts]) -> dict[str, BindingFacts]:
    """The binding that counts for each cluster, should there be several: the one that has been there longest."""
    found: dict[str, BindingFacts] = {}
    for one in bindings:
        other = found.get(one.cluster)
        if other is None or _order_of_age(one) < _order_of_age(other):
            found[one.cluster] = one
    return found


def _order_of_age(one: BindingFacts) -> tuple[bool, bool, float, str]:
    created = one.binding.metadata.creation_timestamp
    return (not one.is_deleting, not one.holds, created.timestamp() if created else 0.0, one.name)
