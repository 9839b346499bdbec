"""A placement, its bindings and its snapshots, as the API has them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kedge.api.binding import ClusterResourceBinding
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.wire import read_plain

NOW = datetime(2030, 1, 1, 1, tzinfo=UTC)
STEPS = ("Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")


def condition(type_: str, status: str = "True", reason: str = "Because", message: str = "") -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
        "observedGeneration": 1,
    }


def passed(*steps: str, prefix: str = "") -> list[dict[str, Any]]:
    return [condition(prefix + step) for step in steps]


def placement(
    conditions: list[dict[str, Any]], clusters: list[dict[str, Any]], **meta: Any
) -> ClusterResourcePlacement:
    plain = {
        "metadata": {"name": "crp", "generation": 1, **meta},
        "spec": {"resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "test-ns"}]},
        "status": {"conditions": conditions, "placementStatuses": clusters, "observedResourceIndex": "1"},
    }
    return read_plain(plain, ClusterResourcePlacement)


def binding(
    cluster: str,
    state: str = "Bound",
    index: int = 1,
    conditions: Sequence[dict[str, Any]] | None = None,
    failed: Sequence[dict[str, Any]] = (),
    **meta: Any,
) -> ClusterResourceBinding:
    spec = {
        "state": state,
        "resourceSnapshotName": f"crp-{index}-snapshot",
        "schedulingPolicySnapshotName": "crp-0",
        "targetCluster": cluster,
        "clusterDecision": {"clusterName": cluster, "selected": True, "reason": "picked"},
    }
    plain = {"metadata": {"name": f"crp-{cluster}", "generation": 1, **meta}, "spec": spec}
    said = passed(*STEPS[1:]) if conditions is None else list(conditions)
    return read_plain(
        {**plain, "status": {"conditions": said, "failedPlacements": list(failed)}}, ClusterResourceBinding
    )


def snapshot(index: int, *, latest: bool = False) -> ObjectMeta:
    labels = {
        "kubernetes-fleet.io/resource-index": str(index),
        "kubernetes-fleet.io/is-latest-snapshot": str(latest).lower(),
    }
    plain = {
        "name": f"crp-{index}-snapshot",
        "labels": labels,
        "annotations": {"kubernetes-fleet.io/resource-hash": "x"},
    }
    return read_plain(plain, ObjectMeta)


def on(cluster: str, *conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"clusterName": cluster, "conditions": list(conditions), "observedResourceIndex": "1", **more}


PREFIX = "ClusterResourcePlacement"
ALL_WELL = placement(
    passed(*STEPS, prefix=PREFIX), [on("cluster-1", *passed(*STEPS)), on("cluster-2", *passed(*STEPS))]
)
WHY = "cluster-2 waits: 1 of 1 may be unavailable, and cluster-1 is not available"
BROKEN = {
    "kind": "Deployment",
    "version": "v1",
    "name": "web",
    "condition": condition(
        "Available", "False", "ManifestNotAvailableYet", "Deployment test-ns/web has 0 of 3 replicas"
    ),
}
STUCK = placement(
    [*passed("Scheduled", prefix=PREFIX), condition(f"{PREFIX}RolloutStarted", "False", "RolloutNotStartedYet", WHY)],
    [
        on(
            "cluster-1",
            *passed(*STEPS[:5]),
            condition("Available", "False", "NotAllWorkAreAvailable"),
            failedPlacements=[BROKEN],
        ),
        on("cluster-2", *passed("Scheduled"), condition("RolloutStarted", "False", "RolloutNotStartedYet", WHY)),
    ],
)
DOWN = binding(
    "cluster-1",
    conditions=[*passed(*STEPS[1:5]), condition("Available", "False", "NotAllWorkAreAvailable")],
    failed=[BROKEN],
)
