"""StatefulSets that are scaled, in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from kedge.api import zones
from kedge.api.apps import Ordinals, StatefulSet, StatefulSetSpec, StatefulSetStatus
from kedge.api.meta import ObjectMeta
from kedge.plan.zoning.replicas import ScalingPlan
from kedge.plan.zoning.scaling import PodAnswer, Reference, Scaling

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
TEMPLATE = Reference("my.group", "CustomResource", "replicas")
URL = "http://pod/prepare-delayed-downscale"
MIRRORS = {
    zones.MIRROR_NAME: "replicas",
    zones.MIRROR_KIND: "CustomResource",
    zones.MIRROR_API_VERSION: "my.group/v1",
}
DELAYED = {zones.DELAYED_DOWNSCALE: "1h", zones.DELAYED_DOWNSCALE_URL: URL}


def zone(
    letter: str,
    replicas: int | None = 3,
    *,
    ready: int | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    start: int = 0,
    service: str | None = None,
    status: StatefulSetStatus | None = None,
    generation: int = 1,
) -> StatefulSet:
    name = f"ingester-zone-{letter}"
    count = (replicas if replicas is not None else 1) if ready is None else ready
    return StatefulSet(
        metadata=ObjectMeta(
            name=name,
            namespace="test",
            uid=f"uid-{letter}",
            generation=generation,
            labels={zones.ROLLOUT_GROUP: "ingester", **(labels or {})},
            annotations=annotations or {},
        ),
        spec=StatefulSetSpec(
            replicas=replicas,
            service_name=name if service is None else service,
            ordinals=Ordinals(start=start) if start else None,
        ),
        status=status or StatefulSetStatus(observed_generation=1, replicas=replicas or 0, ready_replicas=count),
    )


def follower(letter: str, leader: str, replicas: int | None = 3, **more: str) -> StatefulSet:
    """One that follows; `min_time` is its label, other words are annotations by their constants' names."""
    labels = {zones.MIN_TIME_BETWEEN_ZONES: more.pop("min_time")} if "min_time" in more else {}
    extra = {getattr(zones, key.upper()): value for key, value in more.items()}
    annotations = {zones.DOWNSCALE_LEADER: f"ingester-zone-{leader}", **extra}
    return zone(letter, replicas, labels=labels, annotations=annotations)


def downscaled(letter: str, replicas: int, ago: timedelta, **labels: str) -> StatefulSet:
    """One that was scaled down so long ago."""
    return zone(letter, replicas, annotations={zones.LAST_DOWNSCALE: stamp(NOW - ago)}, labels=labels)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def group(*sets: StatefulSet, **known: object) -> Scaling:
    return Scaling(sets, NOW, **known)  # type: ignore[arg-type]


def prepared(minutes_ago: Mapping[int, float]) -> tuple[PodAnswer, ...]:
    """What pods said, by their ordinals."""
    return tuple(PodAnswer(ordinal, NOW - timedelta(minutes=ago)) for ordinal, ago in minutes_ago.items())


def steps(found: ScalingPlan) -> str:
    """What is scaled: `b=4`."""
    return f"{found.step.name[-1]}={found.step.replicas}" if found.step is not None else ""


def codes(found: ScalingPlan) -> list[str]:
    """What is waited for: `b LeaderMissing`."""
    return [f"{wait.unit[-1]} {wait.code}" for wait in found.waits]
