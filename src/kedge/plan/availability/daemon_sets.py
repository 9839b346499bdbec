"""DaemonSets: an updated and available pod on every node that is to have one; with OnDelete any available pod."""

from __future__ import annotations

from kedge.plan.availability.reading import Object, count, is_seen, many, name_of, text, unseen
from kedge.plan.availability.verdict import Verdict, available, not_available


def judge(obj: Object) -> Verdict:
    if not is_seen(obj):
        return not_available(unseen(obj))
    desired = count(obj, "status", "desiredNumberScheduled")
    problem = _not_updated(obj, desired) or _not_available(obj, desired)
    if problem:
        return not_available(f"{name_of(obj)} {problem}")
    return available(f"{name_of(obj)} has available pods on {desired} of {desired} nodes")


def _not_updated(obj: Object, desired: int) -> str:
    if text(obj, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    updated, current = count(obj, "status", "updatedNumberScheduled"), count(obj, "status", "currentNumberScheduled")
    if updated != desired:
        return f"has updated pods on {updated} of {desired} nodes"
    return f"has pods on {many(current, 'node')}, and updated ones on {updated}" if current != updated else ""


def _not_available(obj: Object, desired: int) -> str:
    found = count(obj, "status", "numberAvailable")
    return f"has available pods on {found} of {desired} nodes" if found != desired else ""
