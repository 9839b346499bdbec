"""Initializing: what a run works out before it moves anything: its clusters in their stages, and the resources to move.

    begun = initialize(seen, now)

It ends in a status that says so, in a failure that says why, or is not possible yet. What will come by itself is waited
for: a placement that is made after its run, clusters being picked, resources being written down. What only a user can
mend is a failure, which is final: the spec of a run cannot change. The order of the checks decides which of several
mistakes is told (kubefleet.md §5.2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, UNKNOWN, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, PolicySnapshot, Run, Strategy
from kedge.api.reasons import INITIALIZED, RUN_INITIALIZED, RUN_NOT_INITIALIZED, RUN_WAITING, SCHEDULED
from kedge.api.rollout import ApplyStrategy, RolloutStrategyType
from kedge.api.stage import Missing, Stage, StageTaskType, StrategySpec
from kedge.api.staged_status import DELETE_STAGE, RunStatus, StageStatus, StageTaskStatus
from kedge.plan.revisions import is_master, newest_policy, policy_index, resource_index
from kedge.plan.staging.approvals import When, new_approval_request
from kedge.plan.staging.conditions import Stamp, at_generation, unstarted, with_condition
from kedge.plan.staging.grouping import BadStages, Grouped, grouped
from kedge.plan.staging.run_input import Labels
from kedge.plan.staging.stage_metrics import stage_metrics_problem

_SHOWN: Final = 10
_INDEX: Final = re.compile("[0-9]{1,18}")


class Cannot(ValueError):
    """A run that can never begin; says why."""


class NotYet(ValueError):
    """A run that cannot begin yet; says what it waits for."""


class Newest(Struct, frozen=True):
    """The newest resources, if they are known to be as the hub has them; else what they wait for."""

    index: int | None = None
    pending: str = ""


class InitializationInput(Struct, frozen=True):
    """Everything the beginning of a run depends on but the time."""

    run: Run
    placement: Placement | None
    strategy: Strategy | None
    policies: Sequence[PolicySnapshot]
    snapshots: Sequence[ObjectMeta]
    """Of the placement's resources."""
    bindings: Sequence[Binding]
    labels: Mapping[str, Labels]
    """Of the members."""
    newest: Newest = Newest()
    """For a run that does not say which resources it moves, or names some that are not there."""
    only: Set[str] | None = None
    """The clusters to which the run is confined, if it is."""
    dialect: Dialect = Dialect.seed


class Picked(Struct, frozen=True):
    """The clusters a placement's newest policy picked, and those that are to be cleared."""

    policy: PolicySnapshot
    clusters: frozenset[str]
    leaving: tuple[str, ...]


def initialize(seen: InitializationInput, now: datetime) -> RunStatus:
    """The status of a run that has worked out its stages; or of one that could not, or not yet."""
    at, kind = Stamp(now, seen.run.metadata.generation), seen.run.resource.kind
    before = at_generation(seen.run.status, at.generation)
    try:
        status = _initialized(seen)
    except Cannot as error:
        return with_condition(before, INITIALIZED, FALSE, RUN_NOT_INITIALIZED, str(error), at)
    except NotYet as error:
        return with_condition(before, INITIALIZED, UNKNOWN, RUN_WAITING, f"{seen.run.metadata.name} waits: {error}", at)
    status = replace(status, conditions=before.conditions)
    return with_condition(status, INITIALIZED, TRUE, RUN_INITIALIZED, f"{kind} initialized successfully", at)


def needs_newest(run: Run) -> bool:
    """Whether a run moves whatever is the newest when it begins."""
    return not run.spec.resource_snapshot_index


def may_need_newest(run: Run, snapshots: Iterable[ObjectMeta], dialect: Dialect) -> bool:
    """Whether a run moves the newest resources, or names some that are not there, and may be in a moment.

    Changes are collected before they are written down. Today's KubeFleet writes nothing down until a run asks for it.
    """
    if needs_newest(run):
        return True
    asked = _asked_index(run)
    return dialect is Dialect.seed and asked is not None and asked not in _indexes(snapshots)


def lacks_resources(seen: InitializationInput) -> bool:
    """Whether a run could begin, if only the newest resources were known."""
    try:
        _grouped(seen)
    except (Cannot, NotYet):
        return False
    return may_need_newest(seen.run, seen.snapshots, seen.dialect) and seen.newest.index is None


def _grouped(seen: InitializationInput) -> tuple[Placement, Picked, StrategySpec, Grouped]:
    placement = external(seen)
    found = picked(placement, seen.policies, seen.bindings)
    strategy = _strategy(seen)
    return placement, found, strategy, _groups(seen, strategy, found)


def _initialized(seen: InitializationInput) -> RunStatus:
    placement, found, strategy, groups = _grouped(seen)
    index = _index(seen)
    return RunStatus(
        policy_snapshot_index_used=str(policy_index(found.policy.metadata)),
        policy_observed_cluster_count=len(found.clusters),
        resource_snapshot_index_used=str(index),
        previous_resource_snapshot_index=_previous(seen, found, index),
        applied_strategy=apply_strategy(placement),
        staged_update_strategy_snapshot=strategy,
        stages_status=tuple(_stage(seen, stage, groups.stages[stage.name]) for stage in strategy.stages),
        deletion_stage_status=StageStatus(stage_name=DELETE_STAGE, clusters=unstarted(found.leaving)),
    )


def _stage(seen: InitializationInput, stage: Stage, clusters: Sequence[str]) -> StageStatus:
    def tasks(given: Sequence[StageTaskType], when: When) -> tuple[StageTaskStatus, ...]:
        name = new_approval_request(seen.run.metadata.name, stage.name, when, seen.dialect).name
        return tuple(
            StageTaskStatus(type=kind, approval_request_name=name if kind is StageTaskType.approval else None)
            for kind in given
        )

    return StageStatus(
        stage_name=stage.name,
        clusters=unstarted(clusters),
        before_stage_task_status=tasks([task.type for task in stage.before_stage_tasks], When.before),
        after_stage_task_status=tasks([task.type for task in stage.after_stage_tasks], When.after),
    )


# The placement


def external(seen: InitializationInput) -> Placement:
    """The placement of a run, which has to leave it to runs to move it. Raises `Cannot`, or `NotYet` before it is made.

    For the peer a run without a placement has failed.
    """
    placement, name = seen.placement, seen.run.spec.placement_name
    if not name:
        raise Cannot("parent placement not found: spec.placementName is empty: make a new run that names a placement")
    is_going = placement is not None and placement.metadata.deletion_timestamp is not None
    if placement is None or is_going:
        missing = f"{name} is being deleted" if is_going else f"there is no placement {name}"
        if seen.dialect is Dialect.kubefleet:
            raise Cannot(f"parent placement not found: {missing}")
        raise NotYet(f"{missing}: the run begins when there is one")
    strategy = placement.spec.strategy
    kind = strategy.type if strategy is not None else RolloutStrategyType.rolling_update
    if kind is not RolloutStrategyType.external:
        raise Cannot(
            f"parent placement does not have an external rollout strategy, current strategy: {kind.value}: "
            f"set spec.strategy.type of {name} to External, and make a new run"
        )
    return placement


def apply_strategy(placement: Placement) -> ApplyStrategy:
    """How a placement has objects written to its members."""
    strategy = placement.spec.strategy
    return (strategy.apply_strategy if strategy is not None else None) or ApplyStrategy()


# Its clusters


def picked(placement: Placement, policies: Sequence[PolicySnapshot], bindings: Sequence[Binding]) -> Picked:
    """The clusters of a placement as it is now. Raises `NotYet` while they are being picked; `Cannot`, if none are."""
    policy = decided(placement, policies)
    if policy is None:
        raise NotYet(f"clusters are being picked for {placement.metadata.name}")
    chosen = selected_by(policy)
    live = [one for one in bindings if one.metadata.deletion_timestamp is None]
    bound = [one for one in live if one.spec.state != BindingState.unscheduled]
    leaving = {one.spec.target_cluster for one in live if one.spec.state == BindingState.unscheduled}
    current = {
        one.spec.target_cluster for one in bound if one.spec.scheduling_policy_snapshot_name == policy.metadata.name
    }
    if current != chosen or len(bound) != len(current):
        raise NotYet(f"clusters are being picked for {placement.metadata.name}: their bindings are not as decided yet")
    if not chosen and not leaving:
        raise Cannot(
            f"no scheduled or to-be-deleted clusterResourceBindings found for the latest policy snapshot "
            f"`{policy.metadata.name}`: {placement.metadata.name} picks no cluster"
        )
    return Picked(policy, frozenset(chosen), tuple(sorted(leaving - current)))


def decided(placement: Placement, policies: Sequence[PolicySnapshot]) -> PolicySnapshot | None:
    """The policy of a placement as it is now, once its clusters are picked; None until then. Raises `Cannot`."""
    policy = observed_policy(placement, policies)
    said = find_condition(policy.status.conditions, SCHEDULED) if policy is not None and policy.status else None
    if policy is not None and said is not None and said.status == FALSE:
        raise Cannot(f"policy snapshot `{policy.metadata.name}` not fully scheduled yet: {said.message}")
    return policy


def observed_policy(placement: Placement, policies: Sequence[PolicySnapshot]) -> PolicySnapshot | None:
    """The policy of a placement as it is now, once it says which clusters there are, were they enough or not."""
    newest = newest_policy([one.metadata for one in policies])
    policy = next((one for one in policies if newest is not None and one.metadata.name == newest.name), None)
    if policy is None or policy.status is None:
        return None
    generation = placement.metadata.generation
    is_told = policy.metadata.annotations.get(PLACEMENT_GENERATION) == str(generation)
    said = find_condition(policy.status.conditions, SCHEDULED)
    is_known = said is not None and said.status != UNKNOWN and said.observed_generation == policy.metadata.generation
    return policy if is_told and is_known and policy.status.observed_crp_generation >= generation else None


def selected_by(policy: PolicySnapshot) -> set[str]:
    """The clusters a policy picked."""
    decisions = policy.status.target_clusters if policy.status is not None else ()
    return {one.cluster_name for one in decisions if one.selected}


# Its stages


def _strategy(seen: InitializationInput) -> StrategySpec:
    if seen.strategy is None:
        name = seen.run.spec.staged_rollout_strategy_name
        raise Cannot(f"referenced updateStrategy not found: there is no strategy {name}")
    if problem := stage_metrics_problem(seen.strategy.spec, seen.run.metadata.namespace):
        raise Cannot(problem)
    return seen.strategy.spec


def _groups(seen: InitializationInput, strategy: StrategySpec, found: Picked) -> Grouped:
    if missing := sorted(found.clusters - seen.labels.keys()):
        raise NotYet(f"{missing[0]} is picked, and is no member of the fleet: clusters are being picked anew")
    try:
        wanted = found.clusters if seen.only is None else found.clusters & seen.only
        groups = grouped(strategy, {name: seen.labels[name] for name in wanted}, seen.dialect)
    except BadStages as error:
        raise Cannot(str(error)) from error
    if groups.unmatched and strategy.unmatched_clusters is not Missing.skip:
        shown = ", ".join(groups.unmatched[:_SHOWN])
        total = f"total {len(groups.unmatched)}, showing up to {_SHOWN}: {shown}"
        problem = NotYet if strategy.unmatched_clusters is Missing.wait else Cannot
        raise problem(f"some clusters are not placed in any stage, {total}")
    return groups


# Its resources


def _index(seen: InitializationInput) -> int:
    newest = seen.newest
    if needs_newest(seen.run):
        if newest.index is None:
            raise NotYet(newest.pending or "the placement's resources are being written down")
        return newest.index
    asked = _asked_index(seen.run)
    if asked is None:
        given = seen.run.spec.resource_snapshot_index
        raise Cannot(f"invalid resource snapshot index `{given}` provided, expected an integer >= 0")
    there = _indexes(seen.snapshots)
    if asked in there or asked == newest.index:
        return asked
    if newest.pending:
        raise NotYet(f"there are no resources {asked} yet: {newest.pending}")
    known = ", ".join(map(str, sorted(there)))
    name = seen.run.spec.placement_name
    raise Cannot(f"no resourceSnapshots with index `{asked}` found for placement `{name}`: there are {known or 'none'}")


def _asked_index(run: Run) -> int | None:
    """The index that a run names; None if it names none, or what it names is no index."""
    asked = run.spec.resource_snapshot_index or ""
    return int(asked) if _INDEX.fullmatch(asked) else None


def _indexes(snapshots: Iterable[ObjectMeta]) -> set[int]:
    """The resources that are there."""
    masters = (meta for meta in snapshots if is_master(meta) and meta.deletion_timestamp is None)
    return {index for meta in masters if (index := resource_index(meta)) is not None}


def _previous(seen: InitializationInput, found: Picked, index: int) -> str | None:
    """The resources that most of the clusters have, if they are others than those that come; the newer of two.

    A status of the peer has no place for it.
    """
    if seen.dialect is Dialect.kubefleet:
        return None
    indexes = {meta.name: resource_index(meta) for meta in seen.snapshots}
    bound = (one for one in seen.bindings if one.spec.target_cluster in found.clusters)
    had = [indexes.get(one.spec.resource_snapshot_name) for one in bound]
    counted = Counter(one for one in had if one is not None and one != index)
    return str(max(counted, key=lambda one: (counted[one], one))) if counted else None
