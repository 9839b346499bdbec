"""Rollouts of every kind, for tests of what is said of them and done to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kedge.api.meta import ObjectMeta
from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan
from kedge.api.oam.rollout_status import BatchState, PlannedBatch, RollingState, SourceRecord
from kedge.api.oam.rollouts import (
    AnyRollout,
    ApplicationDeployment,
    ApplicationDeploymentSpec,
    ApplicationDeploymentStatus,
    AppRollout,
    AppRolloutSpec,
    AppRolloutStatus,
    Rollout,
    RolloutRevisionStatus,
    RolloutSpec,
    RolloutTrait,
    RolloutTraitSpec,
    RolloutTraitStatus,
)

NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
SINCE: Final = NOW - timedelta(seconds=40)
BATCHES: Final = (PlannedBatch(2, 2), PlannedBatch(3, 5), PlannedBatch(5, 10))
V1: Final = SourceRecord("apps/v1", "Deployment", "web-v1", 10)


def ref(name: str, kind: str = "Deployment") -> ObjectReference:
    return ObjectReference(api_version="apps/v1", kind=kind, name=name)


def meta(**annotations: str) -> ObjectMeta:
    named = {f"kedge.dev/{key}": value for key, value in annotations.items()}
    return ObjectMeta(name="web", namespace="shop", uid="1", generation=1, annotations=named)


def status(
    rolling: RollingState | None = RollingState.rolling,
    batch: BatchState = BatchState.verifying,
    **said: Any,
) -> dict[str, Any]:
    """A rollout of ten pods in three batches, in its second one, with four pods of the target ready."""
    given = {
        "rolling_state": rolling,
        "batch_rolling_state": batch,
        "batches": BATCHES,
        "current_batch": 1,
        "rollout_target_size": 10,
        "upgraded_ready_replicas": 4,
        "observed_generation": 1,
        "message": "4 of 5 pods are available",
        "waiting_since": SINCE,
        "batch_started_at": SINCE,
    }
    return given | said


def trait(
    said: dict[str, Any] | None = None,
    *,
    target: ObjectReference | None = None,
    sources: tuple[ObjectReference, ...] | None = None,
    metadata: ObjectMeta | None = None,
    **plan: Any,
) -> RolloutTrait:
    given = {"sources": (V1,)} | (said if said is not None else status())
    spec = RolloutTraitSpec(
        target or ref("web-v2"), RolloutPlan(**plan), sources if sources is not None else (ref("web-v1"),)
    )
    return RolloutTrait(spec, metadata or meta(), RolloutTraitStatus(**given))


def every_kind(said: dict[str, Any] | None = None, **plan: Any) -> list[AnyRollout]:
    """The same rollout as each of the four kinds."""
    given, how = said if said is not None else status(), RolloutPlan(**plan)
    return [
        trait(given, **plan),
        Rollout(
            RolloutSpec("web-v2", "web", how),
            meta(),
            RolloutRevisionStatus(last_target_revision="web-v2", last_source_revision="web-v1", **given),
        ),
        AppRollout(
            AppRolloutSpec("shop-v2", how, "shop-v1"),
            meta(),
            AppRolloutStatus(last_target_app_revision="shop-v2", last_source_app_revision="shop-v1", **given),
        ),
        ApplicationDeployment(
            ApplicationDeploymentSpec("shop-b", how, "shop-a"),
            meta(),
            ApplicationDeploymentStatus(last_target_application="shop-b", last_source_application="shop-a", **given),
        ),
    ]
