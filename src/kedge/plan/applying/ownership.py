"""Ownership: whose an object on a member is, and whether it may be written.

What a Work placed is owned by its AppliedWork, so that it is deleted with it. An object that another Work placed is
never changed. One that somebody else created is taken over, shared or left alone, as the apply strategy says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kedge.api import reasons
from kedge.api.placement import GROUP
from kedge.api.rollout import ApplyStrategy, WhenToTakeOver
from kedge.api.work import AppliedWork

Reference: TypeAlias = Mapping[str, Any]

KIND: Final = AppliedWork.resource.kind


class Refusal(Struct, frozen=True):
    """Why an object is not written: a reason for programs, a message for people. `unsure`: it may have been written."""

    reason: str
    message: str
    unsure: bool = False


class WorkOwner(Struct, frozen=True):
    """The AppliedWork that owns what a Work placed."""

    name: str
    uid: str

    @property
    def reference(self) -> dict[str, Any]:
        """The owner reference to it."""
        return {
            "apiVersion": AppliedWork.resource.api_version,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "blockOwnerDeletion": True,
        }

    def owns(self, reference: Reference) -> bool:
        """Whether a reference names this owner, or one that had its name before."""
        return is_applied_work(reference) and reference.get("name") == self.name

    def among(self, references: Iterable[Reference]) -> list[Reference]:
        """The owner references with this owner, which keeps its place."""
        owners, placed = [], False
        for reference in references:
            if not self.owns(reference):
                owners.append(reference)
            elif not placed:
                owners.append(self.reference)
                placed = True
        return owners if placed else [*owners, self.reference]

    def without(self, references: Iterable[Reference]) -> list[Reference]:
        """The owner references without this owner."""
        return [reference for reference in references if not self.owns(reference)]


def is_applied_work(reference: Reference) -> bool:
    """Whether an object was placed by a Work."""
    return reference.get("kind") == KIND and str(reference.get("apiVersion", "")).partition("/")[0] == GROUP


def refusal(references: Iterable[Reference], owner: WorkOwner, strategy: ApplyStrategy) -> Refusal | None:
    """Why an object that is there must not be written; None if it may be."""
    owners = owner.without(references := tuple(references))
    ours = len(owners) < len(references)
    if not ours and strategy.when_to_take_over is WhenToTakeOver.never:
        message = "it was there before, and applyStrategy.whenToTakeOver is Never: delete it, or allow it to be taken"
        return Refusal(reasons.NOT_TAKEN_OVER, message)
    reason = reasons.MANIFEST_APPLY_FAILED if ours else reasons.FAILED_TO_TAKE_OVER
    if others := [other for other in owners if is_applied_work(other)]:
        placed_by = others[0].get("name")
        return Refusal(reason, f"AppliedWork {placed_by} owns it on the member: place it with one placement only")
    if owners and not strategy.allow_co_ownership:
        named = f"{owners[0].get('kind')} {owners[0].get('name')}"
        return Refusal(reason, f"{named} owns it on the member, and applyStrategy.allowCoOwnership is not set")
    if not ours and strategy.when_to_take_over is WhenToTakeOver.if_no_diff:
        message = (
            "it was there before, and applyStrategy.whenToTakeOver IfNoDiff is not supported yet: use Always or Never"
        )
        return Refusal(reason, message)
    return None


def unsupported(strategy: ApplyStrategy) -> Refusal | None:
    """Why nothing at all can be written in this way; None if it can."""
    if strategy.type == "ReportDiff":
        message = "applyStrategy.type ReportDiff is not supported yet, and nothing was written: use ClientSideApply"
        return Refusal(reasons.MANIFEST_APPLY_FAILED, message)
    if strategy.when_to_apply == "IfNotDrifted":
        message = "applyStrategy.whenToApply IfNotDrifted is not supported yet, and nothing was written: use Always"
        return Refusal(reasons.MANIFEST_APPLY_FAILED, message)
    return None


def cannot_own(applied: AppliedWork, work_namespace: str | None) -> Refusal | None:
    """Why an AppliedWork cannot own what a Work of its name in this namespace of the hub places; None if it can."""
    meta = applied.metadata
    if applied.spec.work_namespace != work_namespace:
        message = f"AppliedWork {meta.name} on the member is that of another hub's {applied.spec.work_namespace}"
        return Refusal(reasons.MANIFEST_APPLY_FAILED, message)
    if meta.deletion_timestamp is not None:
        message = f"AppliedWork {meta.name} is being deleted on the member with all it owns: it starts anew after that"
        return Refusal(reasons.MANIFEST_APPLY_FAILED, message)
    return None
