"""Gates: what a run waits for before and after a stage: a person, or time.

An approval counts once the run has seen it: the request is told so (ApprovalAccepted), and the run says so itself.
Taking it back before that counts, afterwards it changes nothing. What a request says of ApprovalAccepted opens nothing:
only Approved does, at the generation the request has. A wait counts from the moment the stage's last cluster was done,
whatever happened to the run since.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.reasons import (
    APPROVAL_ACCEPTED,
    APPROVAL_GIVEN,
    APPROVAL_REQUESTED,
    APPROVED,
    TASK_APPROVED,
    TASK_REQUESTED,
    TASK_WAIT_ELAPSED,
    WAIT_ELAPSED,
)
from kedge.api.stage import StageTask, StageTaskType
from kedge.api.staged_status import StageTaskStatus
from kedge.api.twins import Approval
from kedge.plan.staging.approvers import who_approved
from kedge.plan.staging.grouping import wait_of
from kedge.plan.staging.naming import Ask
from kedge.plan.staging.saying import At, say, says
from kedge.plan.text import moment

_TO_THE_SECOND: Final = timedelta(seconds=1)  # conditions keep whole seconds: a wait is never shorter than it says


class Passed(Struct, frozen=True):
    """What became of one task."""

    task: StageTaskStatus
    waits: str = ""
    """What it waits for; empty if it is done."""
    ask: Ask | None = None
    accept: Approval | None = None
    withdraw: Approval | None = None
    until: datetime | None = None
    """When waiting alone will be enough."""


class Answer(Struct, frozen=True):
    """The request that goes by the name of the one to be made, if there is one; and when the run was made."""

    request: Approval | None
    since: datetime | None

    @property
    def is_of_another(self) -> bool:
        """Whether a run that had this name before asked it: what was approved then was another change."""
        made = None if self.request is None else self.request.metadata.creation_timestamp
        return made is not None and self.since is not None and made < self.since


def attempt(
    task: StageTaskStatus,
    wanted: StageTask,
    asked: Ask,
    answer: Answer,
    since: datetime | None,
    at: At,
) -> Passed:
    """Whether one task is done now. `since` is when its stage was."""
    if task.type is StageTaskType.timed_wait:
        return _wait(task, wanted, asked, since, at)
    if says(task, APPROVAL_GIVEN):
        return Passed(task)
    return _approval(say(task, APPROVAL_REQUESTED, TRUE, TASK_REQUESTED, "", at), asked, answer, at)


def _wait(task: StageTaskStatus, wanted: StageTask, asked: Ask, since: datetime | None, at: At) -> Passed:
    if says(task, WAIT_ELAPSED):
        return Passed(task)
    until = (since or at.now) + wait_of(wanted) + _TO_THE_SECOND
    if at.now >= until:
        return Passed(say(task, WAIT_ELAPSED, TRUE, TASK_WAIT_ELAPSED, "", at))
    waits = f"stage {asked.stage} is given {wanted.wait_time} after its last cluster, until {moment(until)}"
    return Passed(task, waits, until=until)


def _approval(task: StageTaskStatus, asked: Ask, answer: Answer, at: At) -> Passed:
    found = answer.request
    if found is None:
        return Passed(task, f"stage {asked.stage} {_asks(asked)}", ask=asked)
    if not asked.is_asked_by(found.spec):
        other = f"run {found.spec.parent_stage_rollout}, stage {found.spec.target_stage}"
        return Passed(
            task, f"approval request {asked.name} is about {other}: delete it, and it is made anew for this run"
        )
    if answer.is_of_another:
        waits = f"approval request {asked.name} is of an earlier run of this name, and will be made anew"
        return Passed(task, waits, withdraw=found)
    if found.metadata.deletion_timestamp is not None:
        return Passed(task, f"approval request {asked.name} is being deleted, and will be made anew")
    said = find_condition(found.status.conditions, APPROVED)
    if said is not None and said.status == FALSE:
        return Passed(task, f"stage {asked.stage} was not approved by {asked.name}: {said.reason}: {said.message}")
    if said is None or said.status != TRUE:
        return Passed(task, f"stage {asked.stage} {_asks(asked)}")
    if said.observed_generation != found.metadata.generation:
        wanted = f"set observedGeneration to {found.metadata.generation}"
        return Passed(task, f"{asked.name} was approved for generation {said.observed_generation}: {wanted}")
    given = say(task, APPROVAL_GIVEN, TRUE, TASK_APPROVED, who_approved(found), at)  # it outlives the request
    return Passed(given, accept=None if _is_accepted(found) else found)


def _is_accepted(request: Approval) -> bool:
    said = find_condition(request.status.conditions, APPROVAL_ACCEPTED)
    return said is not None and said.status == TRUE


def _asks(asked: Ask) -> str:
    return f"waits for approval: set condition {APPROVED} of {asked.name}, or `kedge approve {asked.run} {asked.stage}`"
