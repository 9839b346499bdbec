"""Wait text: what a run waits for, in sentences. The waits themselves are data, and nothing is decided on the words."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from kedge.api.reasons import APPROVED
from kedge.plan.measuring.metric import MetricCode, metric_wait_text
from kedge.plan.moving.gate import GateCode
from kedge.plan.moving.wait import Wait
from kedge.plan.text import first_few, moment


class RunCode(StrEnum):
    """What a run, a stage or a cluster of it waits for, beside time, proof and budget."""

    approval_pending = "ApprovalPending"
    approval_rejected = "ApprovalRejected"
    approval_of_other_stage = "ApprovalOfOtherStage"
    """The request of this name is about another run or stage."""
    approval_of_earlier_run = "ApprovalOfEarlierRun"
    approval_deleting = "ApprovalDeleting"
    approval_outdated = "ApprovalOutdated"
    """It was approved for another generation of the request."""
    resources_gone = "ResourcesGone"
    scheduling = "Scheduling"
    """It is not decided which clusters the placement has."""
    other_run = "OtherRun"
    """Another run moves the placement."""
    not_initialized = "NotInitialized"
    """It has not begun: something that it begins from is not there yet."""
    cluster_stuck = "ClusterStuck"
    cluster_not_cleared = "ClusterNotCleared"


def wait_texts(waits: Iterable[Wait], run: str) -> str:
    """What the first few of several waits are for."""
    return first_few(wait_text(wait, run) for wait in waits)


def wait_text(wait: Wait, run: str) -> str:
    """What one wait of a run is for."""
    stage, blocker = wait.unit, wait.blockers[0]
    match wait.code:
        case GateCode.time:
            until = moment(blocker.until) if blocker.until is not None else "later"
            return f"stage {stage} is given {blocker.reported} after its last cluster, until {until}"
        case GateCode.proof_lost:
            lost = (f"{one.key} is not available any more: {one.reported}" for one in wait.blockers)
            return f"stage {stage} is done, and {first_few(lost)}"
        case MetricCode.interval | MetricCode.under_way | MetricCode.invalid:
            return f"stage {stage} is done, and {metric_wait_text(wait)}"
        case RunCode.resources_gone:
            return f"{blocker.key} is gone, and the run cannot give them to further clusters: make a new run"
        case RunCode.scheduling:
            return f"clusters are being picked for {blocker.key}"
        case RunCode.other_run:
            return f"run {blocker.key} moves the placement: this one goes on when that has ended, is stopped or deleted"
        case RunCode.cluster_stuck:
            since = moment(blocker.since) if blocker.since is not None else "long"
            return f"{wait.unit} is not done since {since}: {blocker.reported}"
        case RunCode.cluster_not_cleared:
            return f"{wait.unit} is not cleared: {blocker.reported}"
        case _:
            return _approval_text(wait, run)


def _approval_text(wait: Wait, run: str) -> str:
    stage, request, reported = wait.unit, wait.blockers[0].key, wait.blockers[0].reported
    match wait.code:
        case RunCode.approval_rejected:
            return f"stage {stage} was not approved by {request}: {reported}"
        case RunCode.approval_of_other_stage:
            return f"approval request {request} is about {reported}: delete it, and it is made anew for this run"
        case RunCode.approval_of_earlier_run:
            return f"approval request {request} is of an earlier run of this name, and will be made anew"
        case RunCode.approval_deleting:
            return f"approval request {request} is being deleted, and will be made anew"
        case RunCode.approval_outdated:
            approved, wanted = wait.numbers.get("approved"), wait.numbers["generation"]
            what = "without an observedGeneration" if approved is None else f"for generation {approved}"
            return f"{request} was approved {what}: set observedGeneration to {wanted}"
        case _:
            how = f"set condition {APPROVED} of {request}, or `kedge approve {run} {stage}`"
            return f"stage {stage} waits for approval: {how}"
