"""StatefulSets and pods of a rollout group, written short."""

from __future__ import annotations

from datetime import UTC, datetime

from kedge.api.apps import StatefulSet, StatefulSetSpec, StatefulSetStatus, UpdateStrategy
from kedge.api.condition import FALSE
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.pods import ContainerState, ContainerStatus, Pod, PodCondition, PodStatus, Running, Waiting
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.plan.zoning.zone import Zone

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "prev", "last"


def stateful_set(
    name: str = "a",
    replicas: int | None = 3,
    *,
    ready: int | None = None,
    status: int | None = None,
    current: str = NEW,
    update: str = NEW,
    limit: str | None = "2",
    strategy: str = "OnDelete",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    generation: int = 1,
    observed: int = 1,
) -> StatefulSet:
    """As in the reference's tables: 3 replicas, all ready, at most 2 unavailable. `a` stands for ingester-zone-a."""
    count = status if status is not None else 1 if replicas is None else replicas
    given = ({} if limit is None else {MAX_UNAVAILABLE: limit}) | (annotations or {})
    return StatefulSet(
        metadata=ObjectMeta(
            name=full(name),
            namespace="test",
            uid=f"uid-{name}",
            resource_version="1",
            generation=generation,
            labels={ROLLOUT_GROUP: "ingester"} | (labels or {}),
            annotations=given,
        ),
        spec=StatefulSetSpec(replicas=replicas, service_name=full(name), update_strategy=UpdateStrategy(type=strategy)),
        status=StatefulSetStatus(
            observed_generation=observed,
            replicas=count,
            ready_replicas=count if ready is None else ready,
            current_revision=current,
            update_revision=update,
        ),
    )


def full(name: str) -> str:
    return f"ingester-zone-{name}"


def pod(zone: str, ordinal: int, state: str = "ready", revision: str = OLD) -> Pod:
    """A pod: ready, starting, unready, terminating, failed, or stuck for the reason given."""
    return Pod(
        metadata=ObjectMeta(
            name=f"{full(zone)}-{ordinal}",
            namespace="test",
            uid=f"uid-{zone}-{ordinal}-{revision}",
            resource_version="1",
            creation_timestamp=NOW,
            deletion_timestamp=NOW if state == "terminating" else None,
            labels={"name": full(zone), "controller-revision-hash": revision},
            owner_references=(
                OwnerReference(
                    api_version="apps/v1", kind="StatefulSet", name=full(zone), uid=f"uid-{zone}", controller=True
                ),
            ),
        ),
        status=_status(state),
    )


def _status(state: str) -> PodStatus:
    running = ContainerState(running=Running())
    match state:
        case "ready" | "terminating":
            return PodStatus(
                phase="Running", container_statuses=(ContainerStatus(name="c", ready=True, state=running),)
            )
        case "unready":
            return PodStatus(phase="Running", container_statuses=(ContainerStatus(name="c", state=running),))
        case "starting":
            return PodStatus(phase="Pending")
        case "failed":
            return PodStatus(phase="Failed")
        case "Unschedulable":
            condition = PodCondition(type="PodScheduled", status=FALSE, reason="Unschedulable")
            return PodStatus(phase="Pending", conditions=(condition,))
    waiting = ContainerState(waiting=Waiting(reason=state))
    return PodStatus(phase="Running", container_statuses=(ContainerStatus(name="c", state=waiting),))


def zone(name: str = "a", pods: str = "ooo", **given: object) -> Zone:
    """A zone by one letter per pod.

    o, n: old or new, and ready; t, T: old or new, terminating; x, X: crash-looping; u, U: not ready; s, S: starting;
    f: failed; p: unschedulable; -: missing.
    """
    made = [pod(name, number, *_LETTERS[letter]) for number, letter in enumerate(pods) if letter != "-"]
    has_old = any(one.metadata.labels["controller-revision-hash"] == OLD for one in made)
    defaults: dict[str, object] = {"replicas": len(pods), "current": OLD if has_old else NEW}
    return Zone(stateful_set(name, **(defaults | given)), tuple(made))  # type: ignore[arg-type]


_LETTERS = {
    "o": ("ready", OLD),
    "n": ("ready", NEW),
    "t": ("terminating", OLD),
    "T": ("terminating", NEW),
    "x": ("CrashLoopBackOff", OLD),
    "X": ("CrashLoopBackOff", NEW),
    "u": ("unready", OLD),
    "U": ("unready", NEW),
    "s": ("starting", OLD),
    "S": ("starting", NEW),
    "f": ("failed", OLD),
    "p": ("Unschedulable", OLD),
}
