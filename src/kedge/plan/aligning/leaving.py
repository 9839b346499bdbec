"""Leaving: what a cluster that is being deleted waits for, in words.

It stays until nothing runs there. What is scheduled moves by itself; what names the cluster by hand, or fits nowhere
else, stays until somebody changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work
from kedge.api.meta import controller_of
from kedge.plan.aligning.assigning import SCHEDULED, is_scheduled_here
from kedge.plan.aligning.observed import AnyBinding, cluster_of
from kedge.plan.text import first_few, listed, object_name

LEAVING: Final = "Leaving"


class LeavingReason(StrEnum):
    """What a cluster waits for."""

    bindings_remain = "BindingsRemain"
    """Somebody has to change bindings, or to delete Works."""
    replicas_move = "ReplicasMove"
    """What runs here is on its way to other clusters."""


class Remaining(Struct, frozen=True):
    """A Work of a cluster, and the binding it is of; None if there is none."""

    work: Work
    binding: AnyBinding | None


def leaving_condition(cluster: Cluster, remaining: Iterable[Remaining], now: datetime) -> Condition:
    """What a cluster that is being deleted waits for: first what nobody moves unless somebody changes it."""
    found = sorted(remaining, key=_name)
    stuck = [words for one in found if (words := _stuck(one))]
    moving = f"{listed(map(_name, found), 3)}: their conditions Aligned and Scheduled say what they wait for"
    reason = LeavingReason.bindings_remain if stuck else LeavingReason.replicas_move
    return new_condition(
        LEAVING,
        status=TRUE,
        reason=reason,
        message=f"It stays until nothing runs here: {first_few(stuck) or moving}",
        generation=cluster.metadata.generation,
        now=now,
    )


def _stuck(one: Remaining) -> str:
    """Why a Work stays until somebody changes something, and what; empty if it is on its way."""
    binding = one.binding
    if one.work.metadata.deletion_timestamp is not None:
        return ""  # its agent is taking it away
    if binding is None:
        return f"{_name(one)} is of no binding: delete it"
    is_named = any(target.name == cluster_of(one.work) for target in binding.spec.clusters)
    if not is_named or binding.metadata.deletion_timestamp is not None:
        return ""
    if not is_scheduled_here(binding):
        return f"{_name(one)} names it in spec.clusters: take it out there"
    scheduled = find_condition(binding.status.conditions, SCHEDULED)
    if scheduled is None or scheduled.status != FALSE:
        return ""
    return f"{_name(one)} has no other cluster: its condition Scheduled says why"


def _name(one: Remaining) -> str:
    """What somebody has to change: the binding, or the one of the proposal that it stands for, or else the Work."""
    binding, work = one.binding, one.work
    if binding is None:
        return object_name("Work", work.metadata.namespace, work.metadata.name)
    title = object_name(binding.resource.kind, binding.metadata.namespace, binding.metadata.name)
    owner, proposed = controller_of(binding.metadata), ProposedBinding.resource
    is_proposed = owner is not None and (owner.api_version, owner.kind) == (proposed.api_version, proposed.kind)
    return f"{title} of {proposed.group}" if is_proposed else title
