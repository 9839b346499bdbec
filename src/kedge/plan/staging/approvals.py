"""Approvals: what a run's requests for approval are called, and who approved one.

The seed's run asks once for a stage, after it, and calls the request `<run>-<stage>`; today's KubeFleet has tasks
before a stage too, and calls it `<run>-after-<stage>`.

`kedge approve` signs what it says. Of anybody else the API server knows the name of the program that wrote it, such as
kubectl-patch, and when: a better witness than the time its user typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kedge.api.condition import Condition, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST_APPROVAL, TARGET_RUN, TARGET_STAGE, TASK_TYPE
from kedge.api.meta import FieldsOwner
from kedge.api.placement_kinds import Approval
from kedge.api.reasons import APPROVED
from kedge.api.staged import ApprovalSpec
from kedge.api.staged_status import DELETE_STAGE
from kedge.plan.text import moment

_DELETING: Final = "delete-stage"  # no stage of a user's can be called that
_SIGNED: Final = re.compile(r"by ([^:]+)(?:: (.*))?", re.DOTALL)
_OURS: Final = re.compile(r"(Cluster)?ApprovalRequestApproved")  # the reason that `kedge approve` gives
_ITSELF: Final = f'k:{{"type":"{APPROVED}"}}'
_EARLY: Final = datetime.min.replace(tzinfo=UTC)


class When(StrEnum):
    """On which side of a stage a task is."""

    before = "beforeStage"
    after = "afterStage"


class NewApprovalRequest(Struct, frozen=True):
    """A request for approval that is to be made."""

    name: str
    run: str
    stage: str
    when: When

    @property
    def body(self) -> Mapping[str, Any]:
        """The request, without its namespace."""
        stage = stage_label(self.stage)
        labels = {TARGET_RUN: self.run, TARGET_STAGE: stage, TASK_TYPE: self.when.value, IS_LATEST_APPROVAL: "true"}
        spec = {"parentStageRollout": self.run, "targetStage": stage}
        return {"metadata": {"name": self.name, "labels": labels}, "spec": spec}

    def is_asked_by(self, spec: ApprovalSpec) -> bool:
        """Whether a request of this name is this one."""
        return (spec.parent_stage_rollout, spec.target_stage) == (self.run, stage_label(self.stage))


def new_approval_request(run: str, stage: str, when: When, dialect: Dialect) -> NewApprovalRequest:
    """The request that a run makes before or after a stage."""
    middle = "-before" if when is When.before else "-after" if dialect is Dialect.kubefleet else ""
    return NewApprovalRequest(f"{run}{middle}-{stage_label(stage)}", run, stage, when)


def stage_label(stage: str) -> str:
    """A stage as it can be part of a name or a label."""
    return _DELETING if stage == DELETE_STAGE else stage


# Who approved


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
