"""PodDisruptionBudgets: worked out for this generation, whether they allow a disruption or not.

A budget that allows none is available too, once it says so: its work is to refuse.
"""

from __future__ import annotations

from kedge.plan.availability.reading import Object, because, condition, count, is_seen, many, name_of, text, unseen
from kedge.plan.availability.verdict import Verdict, available, not_available

_ENOUGH = (("True", "SufficientPods"),)
_TOO_FEW = (("False", "InsufficientPods"), ("False", "InsufficientPodsReason"))  # the latter as documents name it


def judge(obj: Object) -> Verdict:
    found = condition(obj, "DisruptionAllowed")
    if text(found, "reason") == "SyncFailed":
        return not_available(f"{name_of(obj)} cannot be worked out{because(text(found, 'message'))}")
    if not is_seen(obj):
        return not_available(unseen(obj))
    return _worked_out(obj, found, count(obj, "status", "disruptionsAllowed"))


def _worked_out(obj: Object, found: Object | None, allowed: int) -> Verdict:
    sentence = f"{name_of(obj)} allows {many(allowed, 'disruption')}"
    if found is None:
        return not_available(f"{sentence}, but has no condition DisruptionAllowed yet")
    said = (text(found, "status"), text(found, "reason"))
    if said not in (_ENOUGH if allowed > 0 else _TOO_FEW):
        return not_available(f"{sentence}, but its condition DisruptionAllowed is {said[0]} ({said[1]})")
    return available(sentence)
