"""Staged updates: a change moves through stages of clusters, with waits and approvals between them.

Each kind exists twice: for ClusterResourcePlacements, and for ResourcePlacements in the same namespace. What a run
has done so far is in `staged_status`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, REASON_PATTERN, Condition
from kedge.api.dialect import Dialect
from kedge.api.markers import AGE, Column, Definition, Rule, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, SignedMeta, Value
from kedge.api.placement import CATEGORIES, GROUP
from kedge.api.resource import Resource
from kedge.api.stage import StrategySpec
from kedge.api.staged_status import RunStatus

_ALPHA: Final = ("v1alpha1",)
_NOT_ALPHA: Final = ("v1", "v1beta1")
_CLUSTER_VERSIONS = (Version("v1"), Version("v1beta1", storage=True), Version("v1alpha1"))
_VERSIONS = (Version("v1"), Version("v1beta1", storage=True))


class ClusterStagedUpdateStrategy(Value, frozen=True, gc=False):
    """Stages that a change to a ClusterResourcePlacement moves through; for many runs to use."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterStagedUpdateStrategy", "clusterstagedupdatestrategies", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_CLUSTER_VERSIONS, short_names=("csus",), categories=CATEGORIES, status=True
    )
    spec: StrategySpec
    """The stages."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class StagedUpdateStrategy(Value, frozen=True, gc=False):
    """Stages that a change to a ResourcePlacement moves through; for many runs to use."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "StagedUpdateStrategy", "stagedupdatestrategies")
    definition: ClassVar[Definition] = Definition(versions=_VERSIONS, short_names=("sus",), categories=CATEGORIES)
    spec: StrategySpec
    """The stages."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class RunState(StrEnum):
    """What is wanted of a run."""

    initialize = "Initialize"
    run = "Run"
    stop = "Stop"


def _never(before: RunState, after: RunState) -> Rule:
    return Rule(
        f"oldSelf.state != '{before}' || self.state != '{after}'",
        f"invalid state transition: cannot transition from {before} to {after}",
    )


def _stays(name: str) -> Schema:
    # v1alpha1 guards its spec as a whole.
    return Schema(rules=(Rule("self == oldSelf", f"{name} is immutable"),), versions=_NOT_ALPHA)


class RunSpec(Value, frozen=True, gc=False):
    """Which change moves, through which stages."""

    placement_name: Annotated[str, Schema(max_length=255), _stays("placementName")]
    """The placement whose resources move. Cannot change."""
    staged_rollout_strategy_name: Annotated[str, _stays("stagedRolloutStrategyName")]
    """The strategy whose stages they move through. Cannot change."""
    resource_snapshot_index: Annotated[
        str | None, _stays("resourceSnapshotIndex"), Schema(required=True, versions=_ALPHA)
    ] = None
    """The index of the resources that move; the newest without it. Cannot change."""
    state: Annotated[
        RunState | None,
        Schema(absent=True, versions=_ALPHA),
        Schema(default=RunState.run, dialect=Dialect.seed),
        Schema(default=RunState.initialize, dialect=Dialect.kubefleet),
    ] = None
    """Initialize only works out the stages, Run moves through them, Stop waits where it is."""


_STATE_RULES = (
    _never(RunState.initialize, RunState.stop),
    _never(RunState.run, RunState.initialize),
    _never(RunState.stop, RunState.initialize),
)
_SPEC_STAYS = Rule("self == oldSelf", "The spec field is immutable")
_RunSpec = Annotated[RunSpec, Schema(rules=_STATE_RULES), Schema(rules=(_SPEC_STAYS,), versions=_ALPHA)]


def _name_of_at_most(length: int) -> Rule:
    return Rule(f"size(self.metadata.name) <= {length}", f"metadata.name max length is {length}")


_RUN_NAME = (
    Schema(rules=(_name_of_at_most(63),)),
    Schema(rules=(_name_of_at_most(127),), versions=_ALPHA),
)
_RUN_COLUMNS = (
    Column("Placement", ".spec.placementName"),
    Column("Resource-Snapshot", ".spec.resourceSnapshotIndex", dialect=Dialect.seed),
    Column("Policy-Snapshot", ".status.policySnapshotIndexUsed", dialect=Dialect.seed),
    Column("Resource-Snapshot-Index", ".spec.resourceSnapshotIndex", dialect=Dialect.kubefleet),
    Column("Policy-Snapshot-Index", ".status.policySnapshotIndexUsed", dialect=Dialect.kubefleet),
    condition_column("Initialized", "Initialized"),
    condition_column("Progressing", "Progressing", versions=_NOT_ALPHA, dialect=Dialect.kubefleet),
    condition_column("Succeeded", "Succeeded"),
    AGE,
    Column("Strategy", ".spec.stagedRolloutStrategyName", wide=True),
)


class ClusterStagedUpdateRun(Value, frozen=True, gc=False):
    """One change to a ClusterResourcePlacement, moving through stages."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterStagedUpdateRun", "clusterstagedupdateruns", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_CLUSTER_VERSIONS,
        short_names=("csur",),
        categories=CATEGORIES,
        status=True,
        schema=_RUN_NAME,
        columns=_RUN_COLUMNS,
    )
    spec: _RunSpec
    """Which change moves, through which stages."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: RunStatus = RunStatus()
    """How far it has got."""


class StagedUpdateRun(Value, frozen=True, gc=False):
    """One change to a ResourcePlacement, moving through stages."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "StagedUpdateRun", "stagedupdateruns")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("sur",),
        categories=CATEGORIES,
        status=True,
        schema=_RUN_NAME,
        columns=_RUN_COLUMNS,
    )
    spec: _RunSpec
    """Which change moves, through which stages."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: RunStatus = RunStatus()
    """How far it has got."""


class ApprovalSpec(Value, frozen=True, gc=False):
    """What waits for approval."""

    parent_stage_rollout: str
    """The run that waits."""
    target_stage: str
    """The stage it waits at."""


_ApprovalSpec = Annotated[ApprovalSpec, Schema(rules=(_SPEC_STAYS,))]


class ApprovalCondition(Condition, frozen=True, kw_only=True, gc=False):
    """A condition whose reason may be a person's own words, as in the seed's `"reason":"tested as OK"`."""

    reason: Annotated[
        str, Schema(min_length=1, max_length=1024), Schema(pattern=REASON_PATTERN, dialect=Dialect.kubefleet)
    ]
    """Why."""


class ApprovalStatus(Value, frozen=True, gc=False):
    """What was decided."""

    conditions: Annotated[tuple[ApprovalCondition, ...], BY_TYPE] = ()
    """Approved, set by whoever approves; and whether the run has taken note of it."""


_APPROVAL_COLUMNS = (
    Column("Update-Run", ".spec.parentStageRollout"),
    Column("Stage", ".spec.targetStage"),
    condition_column("Approved", "Approved"),
    condition_column("ApprovalAccepted", "ApprovalAccepted", dialect=Dialect.seed),
    AGE,
)


class ClusterApprovalRequest(Value, frozen=True, gc=False):
    """A ClusterStagedUpdateRun asks whether it may go on."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterApprovalRequest", "clusterapprovalrequests", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_CLUSTER_VERSIONS,
        short_names=("careq",),
        categories=CATEGORIES,
        status=True,
        columns=_APPROVAL_COLUMNS,
    )
    spec: _ApprovalSpec
    """What waits for approval."""
    metadata: SignedMeta = field(default_factory=SignedMeta)
    status: ApprovalStatus = ApprovalStatus()
    """What was decided."""


class ApprovalRequest(Value, frozen=True, gc=False):
    """A StagedUpdateRun asks whether it may go on."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "ApprovalRequest", "approvalrequests")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("areq",), categories=CATEGORIES, status=True, columns=_APPROVAL_COLUMNS
    )
    spec: _ApprovalSpec
    """What waits for approval."""
    metadata: SignedMeta = field(default_factory=SignedMeta)
    status: ApprovalStatus = ApprovalStatus()
    """What was decided."""
