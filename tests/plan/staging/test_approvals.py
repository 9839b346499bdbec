"""Who approved a request, when and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.meta import FieldsOwner
from kedge.api.reasons import APPROVED
from kedge.api.staged import ApprovalCondition, ApprovalStatus, ClusterApprovalRequest
from kedge.plan.staging.approvals import signed, who_approved
from plan.staging.making import NOW, approval

WHOLE: dict[str, Any] = {".": {}, "f:status": {}, "f:reason": {}, "f:message": {}, "f:type": {}}
PATCHED: dict[str, Any] = {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Approved"}': WHOLE}}}
ACCEPTED: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"ApprovalAccepted"}': WHOLE}}}
REWORDED: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"Approved"}': {"f:message": {}}}}}


def owner(manager: str, fields: dict[str, Any], minutes: float = 1) -> FieldsOwner:
    return FieldsOwner(manager=manager, time=NOW + timedelta(minutes=minutes), subresource="status", fields_v1=fields)


RUNS = owner("kedge-staged-runs", ACCEPTED, 2)
MADE = owner("kedge-staged-runs", {"f:spec": {"f:targetStage": {}}}, 0)
KUBECTL = owner("kubectl-patch", PATCHED)
KEDGE = owner("kedge-cli", PATCHED)
OURS = "ClusterApprovalRequestApproved"

# Who wrote what; reason and message; who it was, how many minutes after noon, and why
TABLE: dict[str, tuple[tuple[FieldsOwner, ...], tuple[str, str], tuple[str, int, str]]] = {
    "kubectl": ((MADE, KUBECTL), ("tested as OK", "lgtm"), ("kubectl-patch", 1, "tested as OK: lgtm")),
    "and accepted": ((MADE, KUBECTL, RUNS), ("ok", ""), ("kubectl-patch", 1, "ok")),
    "kedge": ((MADE, KEDGE), (OURS, signed("jane", "fine: all")), ("jane", 1, "fine: all")),
    "kedge, without a word": ((KEDGE,), (OURS, signed("user 1000", "")), ("user 1000", 1, "")),
    "kedge's reason, others' words": ((KUBECTL,), (OURS, "fine"), ("kubectl-patch", 1, f"{OURS}: fine")),
    "words that look signed": ((KUBECTL,), ("ok", "by all means"), ("kubectl-patch", 1, "ok: by all means")),
    "no owners known": ((), ("tested as OK", "lgtm"), ("", 0, "tested as OK: lgtm")),
    "only others'": ((MADE, RUNS), ("ok", "lgtm"), ("", 0, "ok: lgtm")),
    "the last of two": ((owner("a", PATCHED, 3), KUBECTL), ("ok", "lgtm"), ("a", 3, "ok: lgtm")),
    "the last of two, in another order": ((KUBECTL, owner("a", PATCHED, 3)), ("ok", "x"), ("a", 3, "ok: x")),
    "who only reworded it": ((owner("a", REWORDED, 3), KUBECTL), ("ok", "x"), ("kubectl-patch", 1, "ok: x")),
    "no time known": ((replace(KUBECTL, time=None),), ("ok", "x"), ("kubectl-patch", 0, "ok: x")),
}


def approved(owners: tuple[FieldsOwner, ...], reason: str, message: str) -> ClusterApprovalRequest:
    said = ApprovalCondition(
        type=APPROVED, status="True", reason=reason, message=message, last_transition_time=NOW, observed_generation=1
    )
    request = approval("run-one", "one")
    meta = replace(request.metadata, managed_fields=owners)
    return replace(request, metadata=meta, status=ApprovalStatus(conditions=(said,)))


@pytest.mark.parametrize(("owners", "said", "told"), TABLE.values(), ids=TABLE)
def test_it_is_told_who_approved_when_and_why(
    owners: tuple[FieldsOwner, ...], said: tuple[str, str], told: tuple[str, int, str]
) -> None:
    who, minutes, why = told
    words = f"approved{' by ' * bool(who)}{who} at 2030-01-01T12:0{minutes}:00Z{': ' * bool(why)}{why}"
    assert who_approved(approved(owners, *said)) == words


def test_nobody_is_named_where_nobody_approved() -> None:
    assert who_approved(approval("run-one", "one")) == ""
