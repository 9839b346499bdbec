"""Stages, as a run's status tells them in the end."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.rollout import RolloutStrategy, RolloutStrategyType
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.staged_status import RunStatus
from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.previewing.placement_preview import StagePreview, StageTaskPreview, stage_previews, why_not_updated
from kedge.plan.state import State

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_stage_preview_has_clusters_times_and_tasks() -> None:
    true = {"status": "True", "reason": "Said", "message": ""}
    asked = {**true, "type": "ApprovalRequestCreated", "lastTransitionTime": "2030-01-01T00:01:00Z"}
    given = {**true, "type": "ApprovalRequestApproved", "lastTransitionTime": "2030-01-01T01:00:00Z"}
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
    waits = (StageTaskPreview("Approval after", 60.0, 3600.0), StageTaskPreview("TimedWait after"))
    waited = {**true, "type": "WaitTimeElapsed", "lastTransitionTime": "2030-01-01T00:02:00Z"}
    guarded = {
        "stageName": "guarded",
        "clusters": [],
        "beforeStageTaskStatus": [{"type": "Approval", "conditions": [asked]}],
        "afterStageTaskStatus": [{"type": "TimedWait", "conditions": [waited]}],
    }
    deleting = {"stageName": "kubernetes-fleet.io/deleteStage", "clusters": [{"clusterName": "cluster-3"}]}
    other = msgspec.convert({"stagesStatus": [guarded], "deletionStageStatus": deleting}, RunStatus)
    assert stage_previews(other, BEGAN) == (
        StagePreview(
            "guarded",
            (),
            waits=(StageTaskPreview("Approval before", 60.0), StageTaskPreview("TimedWait after", None, 120.0)),
        ),
        StagePreview("kubernetes-fleet.io/deleteStage", ("cluster-3",)),
    )
    assert stage_previews(RunStatus(), BEGAN) == ()
    assert stage_previews(msgspec.convert(body, RunStatus), BEGAN) == (
        StagePreview("canary", ("cluster-2",), 10.0, 3600.0, waits),
        StagePreview("rest", ("cluster-1",)),
    )


# What staged runs do not bring


EXTERNAL = ClusterResourcePlacement(
    PlacementSpec(resource_selectors=(), strategy=RolloutStrategy(type=RolloutStrategyType.external))
)
ROLLING = ClusterResourcePlacement(PlacementSpec(resource_selectors=()))
PLACED = ClusterPlace("cluster-1", State.available, "0", is_up=True)
EMPTY = ClusterPlace("cluster-2", State.waiting)
BROKEN = ClusterPlace("cluster-2", State.moving, "0", is_down=True)


def said(run: str, kind: str, status: str, reason: str, message: str) -> ClusterStagedUpdateRun:
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    return msgspec.convert(
        {
            "metadata": {"name": run},
            "spec": {"placementName": "crp", "stagedRolloutStrategyName": "careful"},
            "status": {"conditions": [{**condition, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        },
        ClusterStagedUpdateRun,
    )


GOOD = said("good", "Succeeded", "True", "UpdateRunSucceeded", "done")
BAD = said("bad", "Initialized", "False", "UpdateRunInitializedFailed", "the placement is not External")


@pytest.mark.parametrize(
    ("placement", "places", "runs", "news", "why"),
    [
        (EXTERNAL, (PLACED,), (), "", ""),
        (EXTERNAL, (PLACED, EMPTY), (), "", "no staged update run brings it anything"),
        (EXTERNAL, (PLACED,), (), "1", "no staged update run brings it revision 1"),
        (EXTERNAL, (PLACED,), (GOOD,), "1", ""),
        (EXTERNAL, (PLACED, BROKEN), (), "", "cluster-2: not available, and no staged update run changes that"),
        (EXTERNAL, (PLACED,), (GOOD, BAD), "", "run bad: the placement is not External"),
        (ROLLING, (PLACED,), (BAD,), "", "run bad: the placement is not External"),
        (ROLLING, (PLACED, EMPTY), (), "1", ""),
    ],
)
def test_why_runs_do_not_update_a_placement(
    placement: ClusterResourcePlacement,
    places: tuple[ClusterPlace, ...],
    runs: tuple[ClusterStagedUpdateRun, ...],
    news: str,
    why: str,
) -> None:
    assert why_not_updated(placement, places, runs, news) == why
