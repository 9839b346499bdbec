"""Bindings: how each binding of a placement counts for the scheduler (kubefleet.md §2.3).

Every list is sorted by name. If several bindings hold one cluster, only one counts. The others are surplus and are
removed: such pairs come from a write whose answer was lost together with the process that waited for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.fleet import PREVIOUS_STATE
from kedge.api.placement_kinds import Binding

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ClassifiedBindings(Struct, frozen=True):
    """The bindings of one placement, by how they count."""

    deleting: tuple[Binding, ...] = ()
    """Being deleted."""
    unscheduled: tuple[Binding, ...] = ()
    """Unscheduled, and to be removed by a rollout."""
    dangling: tuple[Binding, ...] = ()
    """On a cluster that is no longer a member."""
    surplus: tuple[Binding, ...] = ()
    """On a cluster for which another binding counts."""
    obsolete: tuple[Binding, ...] = ()
    """Picked by an earlier policy."""
    present: tuple[Binding, ...] = ()
    """Picked by this policy."""

    @property
    def scheduled(self) -> tuple[Binding, ...]:
        """Picked by this policy, with nothing placed yet."""
        return tuple(each for each in self.present if each.spec.state != BindingState.bound)


def classify_bindings(bindings: Iterable[Binding], policy: str, members: Collection[str]) -> ClassifiedBindings:
    """How each binding counts under this policy snapshot. `members` exist and are not leaving."""
    ordered = sorted(bindings, key=lambda each: each.metadata.name)
    going = [each for each in ordered if each.metadata.deletion_timestamp is not None]
    alive = [each for each in ordered if each.metadata.deletion_timestamp is None]
    given_up = [each for each in alive if each.spec.state == BindingState.unscheduled]
    held = [each for each in alive if each.spec.state != BindingState.unscheduled]
    placed = [each for each in held if each.spec.target_cluster in members]
    counting = {each.metadata.name for each in _one_per_cluster(placed, policy).values()}
    picked = [each for each in placed if each.metadata.name in counting]
    return ClassifiedBindings(
        deleting=tuple(going),
        unscheduled=tuple(given_up),
        dangling=tuple(each for each in held if each.spec.target_cluster not in members),
        surplus=tuple(each for each in placed if each.metadata.name not in counting),
        obsolete=tuple(each for each in picked if each.spec.scheduling_policy_snapshot_name != policy),
        present=tuple(each for each in picked if each.spec.scheduling_policy_snapshot_name == policy),
    )


def by_cluster(bindings: Iterable[Binding]) -> Mapping[str, Binding]:
    """A binding for each cluster: the last one of several."""
    return {each.spec.target_cluster: each for each in bindings}


def state_before_unscheduling(binding: Binding) -> BindingState:
    """The state of a binding before it was unscheduled. One with resources was bound."""
    earlier = binding.metadata.annotations.get(PREVIOUS_STATE)
    if earlier in (BindingState.scheduled, BindingState.bound):
        return BindingState(earlier)
    return BindingState.bound if binding.spec.resource_snapshot_name else BindingState.scheduled


def _one_per_cluster(bindings: Sequence[Binding], policy: str) -> Mapping[str, Binding]:
    """The binding that counts for each cluster: one with resources before one without, then the older."""

    def weight(each: Binding) -> tuple[bool, bool, datetime, str]:
        bound = each.spec.state == BindingState.bound
        current = each.spec.scheduling_policy_snapshot_name == policy
        return not bound, not current, each.metadata.creation_timestamp or _LONG_AGO, each.metadata.name

    return by_cluster(sorted(bindings, key=weight, reverse=True))


B = TypeVar("B", bound=Binding)


def remaining_bindings(bindings: Iterable[B]) -> list[B]:
    """Those that are not being removed. Of two for one cluster the one with resources comes last."""
    return sorted(
        (one for one in bindings if not is_being_removed(one)),
        key=lambda one: (one.spec.state == BindingState.bound, one.metadata.name),
    )


def is_being_removed(binding: Binding) -> bool:
    """Whether its cluster is no longer picked, but still has what was placed."""
    return binding.metadata.deletion_timestamp is not None or binding.spec.state == BindingState.unscheduled
