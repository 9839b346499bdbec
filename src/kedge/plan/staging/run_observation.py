"""Run observation: what a run's next step depends on, from the objects of a hub; and what it waits for, as data.

The hub and the command line observe in the same way, so that both know the same waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.condition import condition_message
from kedge.api.dialect import Dialect
from kedge.api.fleet import resource_snapshot_name
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Approval, Binding, Placement, PolicySnapshot, Run
from kedge.api.reasons import INITIALIZED
from kedge.api.staged_status import DELETE_STAGE
from kedge.plan.membership import unreachable_message
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.staging.approvals import When, new_approval_request
from kedge.plan.staging.conditions import has_ended, is_initialized
from kedge.plan.staging.initializing import observed_policy, selected_by
from kedge.plan.staging.run_input import RunInput
from kedge.plan.staging.step import ahead_of, step
from kedge.plan.staging.wait_text import RunCode

_SHOWN: Final = 10


class RunObjects(Struct, frozen=True):
    """The objects that a run has to do with."""

    placement: Placement | None
    bindings: tuple[Binding, ...]
    policies: tuple[PolicySnapshot, ...]
    snapshot: ObjectMeta | None
    """The first snapshot of the resources that it moves."""
    approvals: tuple[Approval, ...]
    """The requests that go by the names of the run's, whoever made them."""
    members: Mapping[str, MemberCluster] | None
    """By name; None if they may not be read."""
    runs: tuple[Run, ...]
    """All runs of the placement, those first that were made first."""


def observe_run(run: Run, objects: RunObjects, dialect: Dialect = Dialect.seed) -> RunInput:
    """Everything the next step of a run depends on."""
    placement, members = objects.placement, objects.members or {}
    clusters = {one.spec.target_cluster: members.get(one.spec.target_cluster) for one in objects.bindings}
    policy = observed_policy(placement, objects.policies) if placement is not None else None
    snapshot = objects.snapshot
    return RunInput(
        run=run,
        placement=placement,
        bindings=objects.bindings,
        approvals={one.metadata.name: one for one in objects.approvals},
        resources=resources_of(run),
        is_kept=snapshot is not None and snapshot.deletion_timestamp is None,
        picked=None if policy is None else selected_by(policy),
        labels={name: one.metadata.labels for name, one in clusters.items() if one is not None},
        unreachable={name: said for name, one in clusters.items() if (said := unreachable_message(one))},
        gone={name for name, one in clusters.items() if one is None and objects.members is not None},
        parting={name for name, one in clusters.items() if one and one.metadata.deletion_timestamp},
        ahead=ahead_of(run, objects.runs, dialect),
        dialect=dialect,
    )


def resources_of(run: Run) -> str:
    """What a run moves, by the name of its first snapshot."""
    return resource_snapshot_name(run.spec.placement_name, int(run.status.resource_snapshot_index_used or 0))


def approval_names(run: Run, dialect: Dialect = Dialect.seed) -> Iterable[str]:
    """What the requests for approval of a run are called."""
    for stage in run.status.stages_status:
        for task in (*stage.before_stage_task_status, *stage.after_stage_task_status):
            if task.approval_request_name:
                yield task.approval_request_name
    yield new_approval_request(run.metadata.name, DELETE_STAGE, When.before, dialect).name


def run_waits(seen: RunInput, now: datetime) -> tuple[Wait, ...]:
    """What a run waits for now, with the first few blockers; empty if it has ended, moves, or is stopped."""
    run = seen.run
    if has_ended(run.status):
        return ()
    if not is_initialized(run.status):
        told = condition_message(run.status.conditions, INITIALIZED)
        blocker = Blocker(run.spec.placement_name, reported=told)
        return (Wait(run.metadata.name, RunCode.not_initialized, {}, (blocker,)),)
    return tuple(map(_shortened, step(seen, now).waits))


def _shortened(wait: Wait) -> Wait:
    numbers = {**wait.numbers, "blockers": len(wait.blockers)}
    return replace(wait, numbers=numbers, blockers=wait.blockers[:_SHOWN])
