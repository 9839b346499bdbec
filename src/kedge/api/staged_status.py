"""Staged status: how far a run has got, stage by stage and cluster by cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.dialect import Dialect
from kedge.api.markers import Schema
from kedge.api.meta import Value
from kedge.api.oam.rollout_status import MetricResult
from kedge.api.placement_status import NamespacedName
from kedge.api.rollout import ApplyStrategy
from kedge.api.stage import StageTaskType, StrategySpec

DELETE_STAGE: Final = "kubernetes-fleet.io/deleteStage"
"""The name of the last stage, in which clusters that are no longer picked are cleared."""
_NOT_IN_ALPHA = Schema(absent=True, versions=("v1alpha1",))


class StageTaskStatus(Value, frozen=True, gc=False):
    """How far one task of a stage is."""

    type: StageTaskType
    """What is waited for."""
    approval_request_name: str | None = None
    """The request to approve, for an approval."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether approval was asked for and given, or the time has passed."""


class ClusterUpdateStatus(Value, frozen=True, gc=False):
    """How far a run is on one cluster."""

    cluster_name: str
    """Which cluster."""
    resource_override_snapshots: tuple[NamespacedName, ...] = ()
    """Overrides of namespaced resources that hold here."""
    cluster_resource_override_snapshots: tuple[str, ...] = ()
    """Overrides of cluster-wide resources that hold here."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether the cluster's update has started, and succeeded."""


class StageStatus(Value, frozen=True, gc=False):
    """How far a run is in one stage."""

    stage_name: str
    """Which stage."""
    clusters: tuple[ClusterUpdateStatus, ...]
    """The stage's clusters, in the order they are updated."""
    after_stage_task_status: Annotated[tuple[StageTaskStatus, ...], Schema(max_items=2)] = ()
    """How far the tasks after the stage are."""
    before_stage_task_status: Annotated[
        tuple[StageTaskStatus, ...],
        Schema(max_items=1, dialect=Dialect.kubefleet),
        Schema(max_items=2, dialect=Dialect.seed),  # the last stage may have both
        _NOT_IN_ALPHA,
    ] = ()
    """How far the tasks before the stage are."""
    metrics: Annotated[tuple[MetricResult, ...], _NOT_IN_ALPHA, Schema(absent=True, dialect=Dialect.kubefleet)] = ()
    """What was measured after the stage."""
    start_time: datetime | None = None
    """When the stage began."""
    end_time: datetime | None = None
    """When the stage ended."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether the stage is moving, and has succeeded."""


class RunStatus(Value, frozen=True, gc=False):
    """How far a run has got, and what it goes by."""

    policy_snapshot_index_used: str | None = None
    """The index of the policy by which the clusters were picked."""
    policy_observed_cluster_count: int | None = None
    """How many clusters the policy picked."""
    resource_snapshot_index_used: Annotated[str | None, _NOT_IN_ALPHA] = None
    """The index of the resources that move."""
    previous_resource_snapshot_index: Annotated[
        str | None, _NOT_IN_ALPHA, Schema(absent=True, dialect=Dialect.kubefleet)
    ] = None
    """The index of the resources that most of the clusters had before; what a rollback brings back."""
    applied_strategy: ApplyStrategy | None = None
    """How objects are written to a member, as the placement said when the run began."""
    staged_update_strategy_snapshot: StrategySpec | None = None
    """The stages, as the strategy had them when the run began."""
    stages_status: tuple[StageStatus, ...] = ()
    """How far the run is in each stage."""
    deletion_stage_status: StageStatus | None = None
    """How far the run is in clearing clusters that are no longer picked."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether the run is initialized, moving, and has succeeded."""
