"""Stage metrics: metrics that have to be in their range after a stage, before the next one begins.

They are measured from the moment the stage's last cluster was done, while its tasks are waited for. One that fails
fails the run. The strategy of a run cannot be corrected once it has begun, so a metric that cannot be measured keeps a
run from beginning.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from kedge.api.stage import Stage, StrategySpec
from kedge.api.staged_status import RunStatus, StageStatus
from kedge.plan.measuring.measurement import Measurement, metrics_problem
from kedge.plan.measuring.metric import next_measurement, recorded, under_way
from kedge.plan.moving.gate import Closed, Gate, Open
from kedge.plan.staging.conditions import Stamp
from kedge.plan.staging.run_input import StageMeasurement
from kedge.plan.staging.step_builder import RunFailure, StepBuilder

_ONLY = 0  # results are of batches, and a stage is one


def metrics_gate(stage: StageStatus, wanted: Stage, since: datetime, builder: StepBuilder, at: Stamp) -> Gate:
    """Open once all metrics of a stage have passed. Raises `RunFailure` if one has failed."""
    name = stage.stage_name
    found = next_measurement(wanted.metrics, stage.metrics, _ONLY, since, at.now, unit=name)
    if found.failed:
        raise RunFailure(f"stage {name}: {found.failed}", stage)
    if found.query is not None:
        builder.measure.append(StageMeasurement(name, found.query, since))
        return Closed((under_way(found.query, name),))
    if found.wait is None:
        return Open()
    builder.timers += [found.until] if found.until is not None else []
    return Closed((found.wait,), found.until)


def with_measurement(status: RunStatus, asked: StageMeasurement, found: Measurement, now: datetime) -> RunStatus:
    """The status of a run with one more measurement of a stage."""
    return replace(status, stages_status=tuple(_measured(one, asked, found, now) for one in status.stages_status))


def _measured(stage: StageStatus, asked: StageMeasurement, found: Measurement, now: datetime) -> StageStatus:
    if stage.stage_name != asked.stage:
        return stage
    return replace(stage, metrics=recorded(stage.metrics, asked.metric, _ONLY, found, asked.since, now))


def stage_metrics_problem(strategy: StrategySpec, namespace: str | None) -> str:
    """Why the metrics of a strategy cannot be measured; empty if they can. `namespace` is that of the run."""
    for stage in strategy.stages:
        problem = metrics_problem(stage.metrics) or _namespace_problem(stage, namespace)
        if problem:
            return f"stage {stage.name}: {problem}"
    return ""


def _namespace_problem(stage: Stage, namespace: str | None) -> str:
    for metric in stage.metrics:
        if not namespace and metric.template_ref is not None and not metric.template_ref.namespace:
            return f"metric {metric.name}: templateRef has no namespace, and neither has the run"
    return ""
