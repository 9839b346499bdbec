"""What is counted of runs."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kedge.controllers.hub.metrics import RunMetrics
from plan.staging.making import APPROVAL, World, stage

LABELS = {"namespace": "", "name": "run"}


def test_where_a_run_stands_how_long_clusters_took_and_people() -> None:
    registry = CollectorRegistry()
    metrics = RunMetrics(registry)
    world = World({"a": "one", "b": "two"}, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))

    def step() -> None:
        before = world.run
        world.settle()
        metrics.said(before, world.run, world.now.timestamp())

    step()
    before = world.run
    world.now = world.now.replace(second=20)
    world.arrive("a")
    metrics.said(before, world.run, world.now.timestamp())
    world.now = world.now.replace(minute=10)
    world.approve("run-one")
    step()
    took = "fleet_workload_update_run_stage_cluster_updating_duration_seconds_sum"
    assert registry.get_sample_value(took, LABELS) == 20.0
    waited = "fleet_workload_update_run_approval_request_latency_seconds_sum"
    assert registry.get_sample_value(waited, {**LABELS, "taskType": "afterStage"}) == 600.0
    stands = "fleet_workload_update_run_status_last_timestamp_seconds"
    said = {"condition": "Progressing", "status": "True", "reason": "UpdateRunStarted", "failureType": ""}
    assert registry.get_sample_value(stands, {**LABELS, "state": "Run", **said}) == world.now.timestamp()
    metrics.forget(world.run)
    assert registry.get_sample_value(stands, {**LABELS, "state": "Run", **said}) is None
