"""StatefulSets: all replicas available, and as many of them updated as the strategy would update.

RollingUpdate updates all but the first `partition`; OnDelete updates none by itself. Where all are to be updated, the
set must also have finished: its current revision is the one it updates to.
"""

from __future__ import annotations

from kedge.plan.availability.deployments import desired_replicas
from kedge.plan.availability.reading import Object, count, is_seen, many, name_of, text, unseen
from kedge.plan.availability.verdict import Verdict, available, not_available


def judge(obj: Object) -> Verdict:
    if not is_seen(obj):
        return not_available(unseen(obj))
    desired = desired_replicas(obj)
    to_update = _to_update(obj, desired)
    problem = _not_updated(obj, to_update) or _not_available(obj, desired) or _unfinished(obj, desired, to_update)
    if problem:
        return not_available(f"{name_of(obj)} {problem}")
    if to_update == desired:
        return available(f"{name_of(obj)} has {desired} of {desired} replicas updated and available")
    return available(f"{name_of(obj)} has {desired} of {desired} replicas available; its strategy updates {to_update}")


def _to_update(obj: Object, desired: int) -> int:
    if _is_left_alone(obj):
        return 0
    partition = count(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    return max(0, desired - partition)


def _is_left_alone(obj: Object) -> bool:
    return text(obj, "spec", "updateStrategy", "type") == "OnDelete"


def _not_updated(obj: Object, to_update: int) -> str:
    updated = count(obj, "status", "updatedReplicas")
    return f"has {updated} of {to_update} updated replicas" if updated < to_update else ""


def _not_available(obj: Object, desired: int) -> str:
    found = count(obj, "status", "availableReplicas")
    return f"has {found} of {desired} available replicas" if found != desired else ""


def _unfinished(obj: Object, desired: int, to_update: int) -> str:
    """What a set that is to be updated as a whole has still to do."""
    if _is_left_alone(obj) or to_update < desired:
        return ""
    updated, current = count(obj, "status", "updatedReplicas"), count(obj, "status", "currentReplicas")
    before, after = text(obj, "status", "currentRevision"), text(obj, "status", "updateRevision")
    if updated != desired:
        return f"has {many(updated, 'updated replica')}, and is to have {desired}"
    if before != after:
        return f"is still moving from revision {before or 'none'} to {after or 'none'}"
    return f"has {many(current, 'current replica')}, and {updated} updated" if current != updated else ""
