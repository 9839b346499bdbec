"""Approvers: who approved a request, when and why, as far as the request knows.

`kedge approve` signs what it says. Of anybody else the API server knows the name of the program that wrote it, such as
kubectl-patch, and when: a better witness than the time its user typed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from kedge.api.condition import Condition, find_condition
from kedge.api.meta import FieldsOwner
from kedge.api.reasons import APPROVED
from kedge.api.twins import Approval
from kedge.plan.text import moment

_SIGNED: Final = re.compile(r"by ([^:]+)(?:: (.*))?", re.DOTALL)
_OURS: Final = re.compile(r"(Cluster)?ApprovalRequestApproved")  # the reason that `kedge approve` gives
_ITSELF: Final = f'k:{{"type":"{APPROVED}"}}'
_EARLY: Final = datetime.min.replace(tzinfo=UTC)


def signed(user: str, message: str) -> str:
    """What a user's approval says, and that it is theirs."""
    return f"by {user}" + (f": {message}" if message else "")


def who_approved(request: Approval) -> str:
    """`approved by kubectl-patch at 2025-03-12T06:15:21Z: tested as OK: lgtm`; empty if nobody has."""
    said = find_condition(request.status.conditions, APPROVED)
    if said is None:
        return ""
    owner = _owner(request.metadata.managed_fields)
    user, why = _as_signed(said)
    who = user or (owner.manager if owner is not None else "")
    at = owner.time if owner is not None and owner.time is not None else said.last_transition_time
    return ": ".join(part for part in (f"approved{f' by {who}' if who else ''} at {moment(at)}", *why) if part)


def _as_signed(said: Condition) -> tuple[str, tuple[str, ...]]:
    """Who says they did it, if anybody, and the reasons they give."""
    found = _SIGNED.fullmatch(said.message) if _OURS.fullmatch(said.reason) else None
    return (found[1], (found[2],)) if found is not None else ("", (said.reason, said.message))


def _owner(entries: tuple[FieldsOwner, ...]) -> FieldsOwner | None:
    """Who wrote the approval last."""
    owners = [one for one in entries if _owns_it(one)]
    return max(owners, key=lambda one: one.time or _EARLY, default=None)


def _owns_it(entry: FieldsOwner) -> bool:
    conditions = entry.fields_v1.get("f:status", {}).get("f:conditions", {})
    return "f:status" in conditions.get(_ITSELF, {})
