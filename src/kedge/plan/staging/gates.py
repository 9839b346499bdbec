"""Gates: what a run waits for before and after a stage: a person, time, or proof that was lost.

An approval counts once the run has seen it: the request is told so (ApprovalAccepted), and the run says so itself.
Taking it back before that counts, afterwards it changes nothing. What a request says of ApprovalAccepted opens nothing:
only Approved does, at the generation the request has. A wait counts from the moment the stage's last cluster was done,
whatever happened to the run since.

A wait after a stage is there to see whether a change holds, and nobody approves a stage that has fallen over since. So
a stage is over, and the next one begins, only while its clusters are available; but for those that have left the fleet
or have nothing any more, and those that cannot be reached where the strategy skips such clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.placement_kinds import Approval
from kedge.api.reasons import (
    APPROVAL_ACCEPTED,
    APPROVAL_GIVEN,
    APPROVAL_REQUESTED,
    APPROVED,
    SUCCEEDED,
    TASK_APPROVED,
    TASK_REQUESTED,
    TASK_WAIT_ELAPSED,
    WAIT_ELAPSED,
)
from kedge.api.stage import Missing, StageTask, StageTaskType
from kedge.api.staged_status import StageStatus, StageTaskStatus
from kedge.plan.moving.gate import Closed, Gate, Open, combined, timed, while_proven
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.rolling.readiness import current, has_failed
from kedge.plan.rolling.wait_text import failure_of
from kedge.plan.staging.approvals import NewApprovalRequest, When, new_approval_request, who_approved
from kedge.plan.staging.conditions import Stamp, has_condition, with_condition
from kedge.plan.staging.grouping import wait_of
from kedge.plan.staging.run_input import RunInput
from kedge.plan.staging.step_builder import STUCK_AFTER, StepBuilder
from kedge.plan.staging.wait_text import RunCode

_TO_THE_SECOND: Final = timedelta(seconds=1)  # conditions keep whole seconds: a wait is never shorter than it says
_PASSED_OVER: Final = (Proof.proven, Proof.gone, Proof.leaving, Proof.nothing)


class Gates:
    """The tasks before and after stages."""

    def __init__(self, seen: RunInput, builder: StepBuilder, at: Stamp) -> None:
        self._seen = seen
        self._builder = builder
        self._at = at

    def passed(
        self,
        stage: str,
        tasks: Sequence[StageTaskStatus],
        wanted: Sequence[StageTask],
        when: When,
        since: datetime | None = None,
    ) -> tuple[tuple[StageTaskStatus, ...], Gate]:
        """The tasks as they are now, all tried at once; and whether all are done."""
        meta = self._seen.run.metadata
        asked = new_approval_request(meta.name, stage, when, self._seen.dialect)
        approval = FoundRequest(self._seen.approvals.get(asked.name), meta.creation_timestamp)
        found = [
            try_task(task, given, asked, approval, since, self._at) for task, given in zip(tasks, wanted, strict=True)
        ]
        self._builder.request += [one.request for one in found if one.request is not None]
        self._builder.accept += [one.accept for one in found if one.accept is not None]
        self._builder.withdraw += [one.withdraw for one in found if one.withdraw is not None]
        gate = combined(one.gate for one in found)
        self._builder.timers += [gate.until] if isinstance(gate, Closed) and gate.until is not None else []
        return tuple(one.task for one in found), gate


# The tasks of a stage


class TaskResult(Struct, frozen=True):
    """What became of one task."""

    task: StageTaskStatus
    gate: Gate = Open()
    request: NewApprovalRequest | None = None
    accept: Approval | None = None
    withdraw: Approval | None = None


class FoundRequest(Struct, frozen=True):
    """The request that goes by the name of the one to be made, if there is one; and when the run was made."""

    request: Approval | None
    since: datetime | None

    @property
    def is_of_another(self) -> bool:
        """Whether a run that had this name before asked it: what was approved then was another change."""
        made = None if self.request is None else self.request.metadata.creation_timestamp
        return made is not None and self.since is not None and made < self.since


def try_task(
    task: StageTaskStatus,
    wanted: StageTask,
    asked: NewApprovalRequest,
    answer: FoundRequest,
    since: datetime | None,
    at: Stamp,
) -> TaskResult:
    """Whether one task is done now. `since` is when its stage was."""
    if task.type is StageTaskType.timed_wait:
        return _wait(task, wanted, asked, since, at)
    if has_condition(task, APPROVAL_GIVEN):
        return TaskResult(task)
    return _approval(with_condition(task, APPROVAL_REQUESTED, TRUE, TASK_REQUESTED, "", at), asked, answer, at)


def _wait(
    task: StageTaskStatus, wanted: StageTask, asked: NewApprovalRequest, since: datetime | None, at: Stamp
) -> TaskResult:
    if has_condition(task, WAIT_ELAPSED):
        return TaskResult(task)
    gate = timed(asked.stage, since or at.now, wait_of(wanted) + _TO_THE_SECOND, at.now, wanted.wait_time or "")
    if isinstance(gate, Closed):
        return TaskResult(task, gate)
    return TaskResult(with_condition(task, WAIT_ELAPSED, TRUE, TASK_WAIT_ELAPSED, "", at))


def _approval(task: StageTaskStatus, asked: NewApprovalRequest, answer: FoundRequest, at: Stamp) -> TaskResult:
    found = answer.request
    if found is None:
        return TaskResult(task, _closed(asked, RunCode.approval_pending), request=asked)
    if not asked.is_asked_by(found.spec):
        other = f"run {found.spec.parent_stage_rollout}, stage {found.spec.target_stage}"
        return TaskResult(task, _closed(asked, RunCode.approval_of_other_stage, other))
    if answer.is_of_another:
        return TaskResult(task, _closed(asked, RunCode.approval_of_earlier_run), withdraw=found)
    if found.metadata.deletion_timestamp is not None:
        return TaskResult(task, _closed(asked, RunCode.approval_deleting))
    said = find_condition(found.status.conditions, APPROVED)
    if said is not None and said.status == FALSE:
        return TaskResult(task, _closed(asked, RunCode.approval_rejected, f"{said.reason}: {said.message}"))
    if said is None or said.status != TRUE:
        return TaskResult(task, _closed(asked, RunCode.approval_pending))
    if said.observed_generation != found.metadata.generation:
        return TaskResult(task, _outdated(asked, said.observed_generation, found.metadata.generation))
    given = with_condition(
        task, APPROVAL_GIVEN, TRUE, TASK_APPROVED, who_approved(found), at
    )  # it outlives the request
    return TaskResult(given, accept=None if _is_accepted(found) else found)


def _closed(asked: NewApprovalRequest, code: RunCode, reported: str = "") -> Closed:
    return Closed((Wait(asked.stage, code, {}, (Blocker(asked.name, reported=reported),)),))


def _outdated(asked: NewApprovalRequest, approved: int | None, generation: int) -> Closed:
    numbers = {"generation": generation} if approved is None else {"generation": generation, "approved": approved}
    return Closed((Wait(asked.stage, RunCode.approval_outdated, numbers, (Blocker(asked.name),)),))


def _is_accepted(request: Approval) -> bool:
    said = find_condition(request.status.conditions, APPROVAL_ACCEPTED)
    return said is not None and said.status == TRUE


# Whether what is done still works


class LostProof(Struct, frozen=True):
    """A cluster that was done, and is not available any more."""

    unit: Unit
    cause: str

    def has_lasted(self, now: datetime) -> bool:
        """Whether it takes longer than anything should."""
        return self.unit.since is not None and now >= self.unit.since + STUCK_AFTER

    @property
    def timers(self) -> list[datetime]:
        """When time alone changes something."""
        found = (self.unit.proven_at, None if self.unit.since is None else self.unit.since + STUCK_AFTER)
        return [at for at in found if at is not None]


def lost_proofs(stage: StageStatus, seen: RunInput, builder: StepBuilder, policy: Missing) -> list[LostProof]:
    """The clusters of a stage that were done, and are not available any more."""
    done = (one.cluster_name for one in stage.clusters if has_condition(one, SUCCEEDED))
    picked = (name for name in done if seen.picked is None or name in seen.picked)
    return [one for name in picked if (one := _lost(name, seen, builder, policy)) is not None]


def _lost(name: str, seen: RunInput, builder: StepBuilder, policy: Missing) -> LostProof | None:
    found = builder.unit(name)
    if found is None or found.proof in _PASSED_OVER:
        return None
    unit = Unit(name, seen.resources, seen.resources, found.proof)
    if name in seen.unreachable:
        return None if policy is Missing.skip else LostProof(unit, seen.unreachable[name] or "it is not heard of")
    failed = next((one for one in current(found.binding) if has_failed(one)), None)
    if failed is not None:
        return LostProof(replace(unit, since=failed.last_transition_time), failure_of(found.binding))
    return LostProof(replace(unit, proven_at=found.proven_at), "its resources are being applied")


def health_gate(stage: str, lost: Sequence[LostProof]) -> Gate:
    """Open only while what is behind it is available."""
    return while_proven(stage, [one.unit for one in lost], {one.unit.key: one.cause for one in lost})
