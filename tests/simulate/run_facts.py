"""Facts of runs and requests, read from nothing but the objects themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kedge.api.binding import BindingState
from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import resource_snapshot_name
from kedge.api.reasons import APPROVAL_ACCEPTED, APPROVED
from kedge.api.stage import StrategySpec
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, RunState
from kedge.api.staged_status import ClusterUpdateStatus, StageStatus
from kedge.plan.staging.approvals import stage_label
from kedge.plan.staging.conditions import has_ended
from simulate.promises import Binding

Run = ClusterStagedUpdateRun
Request = ClusterApprovalRequest


def stages_of(run: Run) -> list[StageStatus]:
    last = run.status.deletion_stage_status
    return [*run.status.stages_status, *([last] if last is not None else [])]


def stage_of(run: Run, name: str) -> StageStatus:
    found = (stage for stage in stages_of(run) if stage.stage_name == name)
    return next(found, StageStatus(stage_name=name, clusters=()))


def stages_before(run: Run, stage: StageStatus) -> Iterator[StageStatus]:
    for one in run.status.stages_status:
        if one.stage_name == stage.stage_name:
            return
        yield one


def strategy_of(run: Run) -> StrategySpec:
    return run.status.staged_update_strategy_snapshot or StrategySpec(stages=())


def resources_of(run: Run) -> str:
    return resource_snapshot_name(run.spec.placement_name, int(run.status.resource_snapshot_index_used or 0))


def newly(
    before: Run, now: Run, is_so: Callable[[ClusterUpdateStatus], bool]
) -> Iterator[tuple[StageStatus, list[ClusterUpdateStatus]]]:
    """The stages of which clusters are so now, and were not before; with those."""
    for stage in stages_of(now):
        were = {one.cluster_name for one in stage_of(before, stage.stage_name).clusters if is_so(one)}
        new = [one for one in stage.clusters if is_so(one) and one.cluster_name not in were]
        if new:
            yield stage, new


def makes_room(run: Run) -> bool:
    return run.spec.state is RunState.stop or has_ended(run.status) or run.metadata.deletion_timestamp is not None


def has_resources_of(binding: Binding, run: Run) -> bool:
    return binding.spec.state == BindingState.bound and binding.spec.resource_snapshot_name == resources_of(run)


def is_about(request: Request, run: Run, stage: str) -> bool:
    return (request.spec.parent_stage_rollout, request.spec.target_stage) == (run.metadata.name, stage_label(stage))


def is_approved(request: Request) -> bool:
    said = find_condition(request.status.conditions, APPROVED)
    return said is not None and said.status == TRUE and said.observed_generation == request.metadata.generation


def is_accepted(request: Request) -> bool:
    said = find_condition(request.status.conditions, APPROVAL_ACCEPTED)
    return said is not None and said.status == TRUE


def names(clusters: Iterable[ClusterUpdateStatus]) -> str:
    return ", ".join(one.cluster_name for one in clusters) or "none"
