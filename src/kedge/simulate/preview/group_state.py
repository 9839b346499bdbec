"""Group state: the objects of a rollout group that a preview starts from, as of one moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property

import msgspec
from msgspec import Struct

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.kube.codec import Untyped
from kedge.plan.previewing.durations import MeasuredDuration
from kedge.plan.previewing.group_preview import measured_pods


class GroupState(Struct, frozen=True, dict=True):
    """A group's StatefulSets with their pods and revisions, and what they depend on."""

    taken: datetime
    namespace: str
    name: str
    sets: tuple[Untyped, ...] = ()
    pods: tuple[Untyped, ...] = ()
    revisions: tuple[Untyped, ...] = ()
    """Their ControllerRevisions, as far as they may be read."""
    others: tuple[Untyped, ...] = ()
    """Disruption budgets, and what StatefulSets mirror."""
    neighbours: tuple[Untyped, ...] = ()
    """StatefulSets outside of the group that a disruption budget of the group selects as well."""

    @property
    def all_sets(self) -> tuple[Untyped, ...]:
        return (*self.sets, *self.neighbours)

    @cached_property
    def measured(self) -> dict[str, MeasuredDuration]:
        """How long its pods took to become ready."""
        return measured_pods(msgspec.convert(one, Pod) for one in self.pods)


def is_stateful_set(obj: Untyped) -> bool:
    return (obj["apiVersion"], obj["kind"]) == (StatefulSet.resource.api_version, StatefulSet.resource.kind)


def controlled(objects: Iterable[Untyped], uids: frozenset[str]) -> tuple[Untyped, ...]:
    """The objects that one of these controls."""
    return tuple(one for one in objects if controller_uid(one) in uids)


def controller_uid(obj: Untyped) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), "")
