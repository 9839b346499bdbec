"""Run input: all that a run's next step depends on; and the step."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime, timedelta

from msgspec import Struct

from kedge.api.dialect import Dialect
from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.api.placement_kinds import Approval, Binding, Placement, Run
from kedge.api.rollout import ApplyStrategy, RollingUpdate
from kedge.api.staged_status import RunStatus
from kedge.plan.moving.wait import Wait
from kedge.plan.rolling.budget import waiting_period
from kedge.plan.staging.approvals import NewApprovalRequest

Labels = Mapping[str, str]


class RunInput(Struct, frozen=True):
    """Everything the next step of a run depends on but the time."""

    run: Run
    placement: Placement | None
    bindings: tuple[Binding, ...] = ()
    approvals: Mapping[str, Approval] = {}
    """By name."""
    resources: str = ""
    """What the run moves, by the name of its first snapshot."""
    is_kept: bool = True
    """Whether that snapshot is still there."""
    picked: Set[str] | None = None
    """The clusters the placement's policy picks; None while that is being decided."""
    labels: Mapping[str, Labels] = {}
    """Of the members."""
    unreachable: Mapping[str, str] = {}
    """Clusters that are not heard of, and what is known of since when, in words."""
    gone: Set[str] = frozenset()
    parting: Set[str] = frozenset()
    ahead: str = ""
    """The run that moves the placement already, if another one does."""
    dialect: Dialect = Dialect.seed

    @property
    def gone_for_good(self) -> str:
        """Why there is nothing left to move."""
        name = self.run.spec.placement_name
        if self.placement is None:
            return f"parent placement not found: {name} was deleted"
        is_going = self.placement.metadata.deletion_timestamp is not None
        return f"parent placement not found: {name} is being deleted" if is_going else ""

    @property
    def period(self) -> timedelta:
        """How long to wait where it cannot be seen whether resources work."""
        strategy = self.placement.spec.strategy if self.placement is not None else None
        return waiting_period((strategy.rolling_update if strategy is not None else None) or RollingUpdate())

    @property
    def apply_strategy(self) -> ApplyStrategy:
        """How objects are written, as the placement said when the run began."""
        return self.run.status.applied_strategy or ApplyStrategy()


class StageMeasurement(Struct, frozen=True):
    """A metric that is to be measured now, for a stage that was done then."""

    stage: str
    metric: CanaryMetric
    since: datetime


class RunStep(Struct, frozen=True):
    """What a run says now, and what is to be done once it has said it."""

    status: RunStatus
    point: tuple[Binding, ...] = ()
    """Bindings to point at the run's resources, or to say of that they are."""
    remove: tuple[Binding, ...] = ()
    request: tuple[NewApprovalRequest, ...] = ()
    withdraw: tuple[Approval, ...] = ()
    """Requests that are not this run's, and go by the names of its own."""
    accept: tuple[Approval, ...] = ()
    """Requests that were approved, to be told so before the run counts on it."""
    measure: tuple[StageMeasurement, ...] = ()
    """Metrics to measure now; then the next step is known."""
    waits: tuple[Wait, ...] = ()
    """What it waits for, as data; what takes long comes first."""
    look_again: float | None = None
    """In how many seconds time alone will have changed something; None if never."""
