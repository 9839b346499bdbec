"""Deployments: all replicas updated and available, none left that is not, and the status of this generation.

That none is left unavailable matters with one replica and a bad image: the new pod counts as updated, the old one as
available, and only the number of unavailable ones tells.
"""

from __future__ import annotations

from kedge.plan.availability.reading import (
    Object,
    at,
    because,
    condition,
    count,
    is_seen,
    many,
    name_of,
    says,
    text,
    unseen,
    whole,
)
from kedge.plan.availability.verdict import Verdict, available, not_available


def judge(obj: Object) -> Verdict:
    if not is_seen(obj):
        return not_available(unseen(obj))
    desired = desired_replicas(obj)
    problem = _problem(obj, desired)
    if problem:
        return not_available(f"{name_of(obj)} {problem}{_cause(obj)}")
    return available(f"{name_of(obj)} has {desired} of {desired} replicas updated and available")


def desired_replicas(obj: Object) -> int:
    """How many it asks for: 1 unless it says."""
    found = whole(obj, "spec", "replicas")
    return 1 if found is None else found


def _problem(obj: Object, desired: int) -> str:
    updated, ready = count(obj, "status", "updatedReplicas"), count(obj, "status", "availableReplicas")
    if updated != desired:
        return f"has {updated} of {desired} updated replicas"
    if ready > desired:
        return f"has {many(ready - desired, 'replica')} too many"
    if ready != desired:
        return f"has {ready} of {desired} available replicas"
    if left := count(obj, "status", "unavailableReplicas"):
        return f"has {many(left, 'unavailable replica')} beside {ready} available"
    return ""


def _cause(obj: Object) -> str:
    """What the Deployment itself says of why it does not get on."""
    if at(obj, "spec", "paused") is True:
        return ": it is paused"
    if says(obj, "ReplicaFailure", "True"):
        return because(text(condition(obj, "ReplicaFailure"), "message"))
    if says(obj, "Progressing", "False"):
        return because(text(condition(obj, "Progressing"), "message"))
    return ""
