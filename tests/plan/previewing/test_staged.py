"""Stages, as a run's status tells them in the end."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from kedge.api.staged_status import RunStatus
from kedge.plan.previewing.course import Stage, Wait
from kedge.plan.previewing.staged import stages_of

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


def test_stages_are_told_with_their_clusters_times_and_waits() -> None:
    said = {"status": "True", "reason": "Said", "message": ""}
    asked = {**said, "type": "ApprovalRequestCreated", "lastTransitionTime": "2030-01-01T00:01:00Z"}
    given = {**said, "type": "ApprovalRequestApproved", "lastTransitionTime": "2030-01-01T01:00:00Z"}
    body = {
        "stagesStatus": [
            {
                "stageName": "canary",
                "clusters": [{"clusterName": "cluster-2"}],
                "startTime": "2030-01-01T00:00:10Z",
                "endTime": "2030-01-01T01:00:00Z",
                "afterStageTaskStatus": [{"type": "Approval", "conditions": [asked, given]}, {"type": "TimedWait"}],
            },
            {"stageName": "rest", "clusters": [{"clusterName": "cluster-1"}]},
        ],
        "deletionStageStatus": {"stageName": "kubernetes-fleet.io/deleteStage", "clusters": []},
    }
    waits = (Wait("Approval after", 60.0, 3600.0), Wait("TimedWait after"))
    waited = {**said, "type": "WaitTimeElapsed", "lastTransitionTime": "2030-01-01T00:02:00Z"}
    guarded = {
        "stageName": "guarded",
        "clusters": [],
        "beforeStageTaskStatus": [{"type": "Approval", "conditions": [asked]}],
        "afterStageTaskStatus": [{"type": "TimedWait", "conditions": [waited]}],
    }
    deleting = {"stageName": "kubernetes-fleet.io/deleteStage", "clusters": [{"clusterName": "cluster-3"}]}
    other = msgspec.convert({"stagesStatus": [guarded], "deletionStageStatus": deleting}, RunStatus)
    assert stages_of(other, BEGAN) == (
        Stage("guarded", (), waits=(Wait("Approval before", 60.0), Wait("TimedWait after", None, 120.0))),
        Stage("kubernetes-fleet.io/deleteStage", ("cluster-3",)),
    )
    assert stages_of(RunStatus(), BEGAN) == ()
    assert stages_of(msgspec.convert(body, RunStatus), BEGAN) == (
        Stage("canary", ("cluster-2",), 10.0, 3600.0, waits),
        Stage("rest", ("cluster-1",)),
    )
