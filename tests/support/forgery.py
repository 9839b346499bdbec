"""What a hostile member writes: objects that, if a hub took them for its own, would run on another member."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kedge.api.fleet import (
    IS_LATEST,
    NUMBER_OF_CLUSTERS,
    NUMBER_OF_SNAPSHOTS,
    PARENT_PLACEMENT,
    POLICY_INDEX,
    RESOURCE_HASH,
    RESOURCE_INDEX,
)
from kedge.api.placement_kinds import NAMESPACED
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch

NAME: Final = "shop"
OWNER: Final = "shop-binding"
RUN: Final = "shop-run"
VICTIM: Final = "cluster-2"
_AT: Final = "2030-01-01T00:00:00Z"
_OWNED: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "namespace": "default"}}
_HERE: Final = {"clusterName": VICTIM, "selected": True, "reason": "picked"}
ROLLED_OUT: Final = {
    "type": "RolloutStarted",
    "status": "True",
    "reason": "RolloutStarted",
    "message": "",
    "lastTransitionTime": _AT,
    "observedGeneration": 1,
}


def forged() -> Iterator[tuple[Any, dict[str, Any]]]:
    """A placement, its snapshots, a binding to another member, and a run; each of its kind."""
    labels = {PARENT_PLACEMENT: NAME, IS_LATEST: "true"}
    selector = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "none"}
    policy = {"placementType": "PickFixed", "clusterNames": [VICTIM]}
    yield (
        NAMESPACED.placement,
        {"metadata": {"name": NAME}, "spec": {"resourceSelectors": [selector], "policy": policy}},
    )
    yield (
        NAMESPACED.policy_snapshot,
        {
            "metadata": {
                "name": f"{NAME}-0",
                "labels": {**labels, POLICY_INDEX: "0"},
                "annotations": {NUMBER_OF_CLUSTERS: "1"},
            },
            "spec": {"policy": policy, "policyHash": "aGFzaA=="},
        },
    )
    yield (
        NAMESPACED.resource_snapshot,
        {
            "metadata": {
                "name": f"{NAME}-0-snapshot",
                "labels": {**labels, RESOURCE_INDEX: "0"},
                "annotations": {RESOURCE_HASH: "hash", NUMBER_OF_SNAPSHOTS: "1"},
            },
            "spec": {"selectedResources": [_OWNED]},
        },
    )
    yield (
        NAMESPACED.binding,
        {
            "metadata": {"name": OWNER, "labels": {PARENT_PLACEMENT: NAME}},
            "spec": {
                "state": "Bound",
                "targetCluster": VICTIM,
                "resourceSnapshotName": f"{NAME}-0-snapshot",
                "schedulingPolicySnapshotName": f"{NAME}-0",
                "clusterDecision": _HERE,
            },
        },
    )
    yield (
        NAMESPACED.run,
        {
            "metadata": {"name": RUN},
            "spec": {"placementName": NAME, "stagedRolloutStrategyName": NAME, "resourceSnapshotIndex": "0"},
        },
    )


async def forge(client: Client, namespace: str) -> list[tuple[Any, str, str]]:
    """Write all of it; gives kind, name and version of each. The binding says of itself that it is rolled out."""
    written: list[tuple[Any, str, str]] = []
    for kind, body in forged():
        name = body["metadata"]["name"]
        made = await client.create(untyped(kind.resource), body, namespace)
        if kind is NAMESPACED.binding:
            said = MergePatch({"status": {"conditions": [ROLLED_OUT]}})
            made = await client.patch(untyped(kind.resource), name, said, namespace, subresource="status")
        written.append((kind, name, made["metadata"]["resourceVersion"]))
    return written
