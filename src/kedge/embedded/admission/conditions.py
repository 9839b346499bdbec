"""Conditions: the matchConditions of a webhook, evaluated on a write.

A condition that is false excludes the write, whatever the others are. One that cannot be evaluated counts as a failure
of the webhook: by its failurePolicy the write is refused, or the webhook is not asked.
"""

from __future__ import annotations

from kedge.api.cel import BadExpression
from kedge.api.cel_budget import Failed
from kedge.embedded.admission.webhook import MatchCondition, Webhook
from kedge.embedded.builtin.match_conditions import compiled
from kedge.kube.codec import Untyped


class ConditionFailed(Exception):
    """A condition that cannot be evaluated, of a webhook that must not be passed over."""


def conditions_hold(hook: Webhook, request: Untyped) -> bool:
    """Whether all conditions hold of the `request` of an AdmissionReview."""
    failures: list[str] = []
    data = {"object": request["object"], "oldObject": request["oldObject"], "request": request}
    for condition in hook.match_conditions:
        try:
            if not _value(condition, data):
                return False
        except (Failed, BadExpression) as error:
            failures.append(f"expression '{condition.expression}' resulted in error: {error}")
    if failures and not hook.ignores_failures:
        raise ConditionFailed(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return not failures


def _value(condition: MatchCondition, data: Untyped) -> bool:
    found = compiled(condition.expression).value(data)
    if not isinstance(found, bool):
        raise Failed(f"cel expression evaluated to {type(found).__name__}, not to a bool")
    return found
