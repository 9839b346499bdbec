"""Bindings and placements by hand: what a rollout would see, in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kedge.api import reasons
from kedge.api.binding import BindingSpec, BindingState, BindingStatus, ClusterResourceBinding
from kedge.api.condition import FALSE, TRUE, Condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.placement_status import FailedPlacement
from kedge.api.rollout import RollingUpdate, RolloutStrategy
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.api.snapshot import ClusterDecision
from kedge.plan.rolling.plan import RolloutPlan, plan
from kedge.plan.rolling.rollout_input import RolloutInput, Wanted

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "crp-0-snapshot", "crp-1-snapshot"
BAD = "Deployment test-ns/web has 0 of 3 updated replicas"
NEWEST = Wanted(NEW)

Said = Mapping[str, tuple[str, str]]
SENT: Said = {reasons.OVERRIDDEN: (TRUE, reasons.NO_OVERRIDE), reasons.WORK_SYNCHRONIZED: (TRUE, reasons.WORK_SYNCED)}
APPLIED: Said = {**SENT, reasons.APPLIED: (TRUE, reasons.WORK_APPLIED)}
AVAILABLE: Said = {**APPLIED, reasons.AVAILABLE: (TRUE, reasons.WORK_AVAILABLE)}
UNTRACKABLE: Said = {**APPLIED, reasons.AVAILABLE: (TRUE, reasons.WORK_UNTRACKABLE)}
NOT_AVAILABLE: Said = {**APPLIED, reasons.AVAILABLE: (FALSE, reasons.WORK_NOT_AVAILABLE)}
NOT_APPLIED: Said = {**SENT, reasons.APPLIED: (FALSE, reasons.WORK_NOT_APPLIED)}
IN_PROGRESS: Said = {**SENT, reasons.APPLIED: (FALSE, reasons.APPLY_IN_PROGRESS)}
NOT_SENT: Said = {
    reasons.OVERRIDDEN: (TRUE, reasons.NO_OVERRIDE),
    reasons.WORK_SYNCHRONIZED: (FALSE, reasons.SYNC_FAILED),
}
NOTHING: Said = {}
SAID = (AVAILABLE, UNTRACKABLE, NOT_AVAILABLE, NOT_APPLIED, IN_PROGRESS, NOT_SENT, NOTHING)


def binding(
    cluster: str,
    said: Said = AVAILABLE,
    *,
    state: BindingState = BindingState.bound,
    has: str = OLD,
    deleting: bool = False,
    generation: int = 3,
    spoken_at: int | None = None,
    since: float = 3600.0,
    suffix: str = "1",
    age: float = 3600.0,
) -> ClusterResourceBinding:
    """One binding; `said` is its status, of `spoken_at` (its own generation), for `since` seconds."""
    told = tuple(
        Condition(
            type=kind,
            status=status,
            reason=reason,
            message="",
            last_transition_time=NOW - timedelta(seconds=since),
            observed_generation=generation if spoken_at is None else spoken_at,
        )
        for kind, (status, reason) in said.items()
    )
    return ClusterResourceBinding(
        metadata=ObjectMeta(
            name=f"crp-{cluster}-{suffix}",
            uid=f"uid-{cluster}-{suffix}",
            resource_version="1",
            generation=generation,
            creation_timestamp=NOW - timedelta(seconds=age),
            deletion_timestamp=NOW if deleting else None,
            labels={PARENT_PLACEMENT: "crp"},
        ),
        spec=BindingSpec(
            state=state,
            resource_snapshot_name="" if state is BindingState.scheduled else has,
            scheduling_policy_snapshot_name="crp-0",
            target_cluster=cluster,
            cluster_decision=ClusterDecision(cluster_name=cluster, selected=True, reason="picked"),
        ),
        status=BindingStatus(conditions=told, failed_placements=_failed(said)),
    )


def _failed(said: Said) -> tuple[FailedPlacement, ...]:
    if said is not NOT_AVAILABLE:
        return ()
    why = Condition(
        type=reasons.AVAILABLE,
        status=FALSE,
        reason=reasons.MANIFEST_NOT_AVAILABLE,
        message=BAD,
        last_transition_time=NOW,
    )
    failed = FailedPlacement(
        group="apps", version="v1", kind="Deployment", namespace="test-ns", name="web", condition=why
    )
    return (failed,)


def scheduled(cluster: str, **how: Any) -> ClusterResourceBinding:
    return binding(cluster, NOTHING, state=BindingState.scheduled, generation=1, **how)


def unscheduled(cluster: str, said: Said = AVAILABLE, **how: Any) -> ClusterResourceBinding:
    return binding(cluster, said, state=BindingState.unscheduled, **how)


def up_to_date(cluster: str, said: Said = AVAILABLE, **how: Any) -> ClusterResourceBinding:
    return binding(cluster, said, has=NEW, **how)


def pick_n(number: int) -> PlacementPolicy:
    return PlacementPolicy(placement_type=PlacementType.pick_n, number_of_clusters=number)


def pick_fixed(*names: str) -> PlacementPolicy:
    return PlacementPolicy(placement_type=PlacementType.pick_fixed, cluster_names=names)


def placement(
    policy: PlacementPolicy | None = None,
    annotations: Mapping[str, str] | None = None,
    strategy: RolloutStrategy | None = None,
    **rolling: Any,
) -> ClusterResourcePlacement:
    """A placement; what is given of `rolling` is its rolling update."""
    if rolling:
        strategy = RolloutStrategy(rolling_update=RollingUpdate(**rolling))
    return ClusterResourcePlacement(
        metadata=ObjectMeta(name="crp", annotations=dict(annotations or {})),
        spec=PlacementSpec(resource_selectors=(), policy=policy, strategy=strategy),
    )


def seen(
    placed: ClusterResourcePlacement,
    bindings: Iterable[ClusterResourceBinding],
    *,
    dialect: Dialect = Dialect.seed,
    wanted: Wanted = NEWEST,
    **around: Any,
) -> RolloutInput:
    return RolloutInput(placement=placed, bindings=tuple(bindings), wanted=wanted, dialect=dialect, **around)


def planned(placed: ClusterResourcePlacement, *bindings: ClusterResourceBinding, **around: Any) -> RolloutPlan:
    return plan(seen(placed, bindings, **around), NOW)


def clusters(bindings: Iterable[ClusterResourceBinding | Any]) -> list[str]:
    return [one.spec.target_cluster for one in bindings]


def moves(found: RolloutPlan) -> tuple[list[str], list[str], list[str]]:
    """Which clusters are bound, changed and removed."""
    return clusters(found.bind), clusters(found.repoint), clusters(found.remove)
