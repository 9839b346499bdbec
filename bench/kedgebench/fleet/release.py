"""Release: what is placed, as users write it: a namespace, a Deployment in it, and the placement of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

Body = dict[str, Any]

SHOP = "shop"
WEB = "web"
REPLICAS = 2


def namespace(name: str = SHOP) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def image(number: int) -> str:
    return f"registry.example/shop/web:{number}"


def deployment(number: int, *, ready_after: str | None = None, where: str = SHOP, replicas: int = REPLICAS) -> Body:
    """All its pods are replaced at once, so that a rollout takes as long as one pod needs to become ready."""
    selected = {"app": WEB}
    annotations = {} if ready_after is None else {"kedge.dev/ready-after": ready_after}
    pod = {"containers": [{"name": WEB, "image": image(number)}], "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WEB, "namespace": where},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selected},
            "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
            "template": {"metadata": {"labels": selected, "annotations": annotations}, "spec": pod},
        },
    }


def config_map(number: int) -> Body:
    meta = {"name": WEB, "namespace": SHOP}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"release": str(number)}}


def placement(name: str, where: str = SHOP, *, max_unavailable: str = "20%") -> Body:
    """On every cluster there is."""
    return _placement(name, where, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable}})


def external(name: str, where: str = SHOP, *, clusters: Sequence[str] = ()) -> Body:
    """On these clusters, or on every one there is; nothing moves but by runs."""
    body = _placement(name, where, {"type": "External"})
    if clusters:
        body["spec"]["policy"] = {"placementType": "PickFixed", "clusterNames": [*clusters]}
    return body


def _placement(name: str, where: str, strategy: Body) -> Body:
    return {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": where}],
            "policy": {"placementType": "PickAll"},
            "strategy": strategy,
        },
    }


def member(name: str, heartbeat: int, labels: Mapping[str, str] = MappingProxyType({})) -> Body:
    identity = {"kind": "ServiceAccount", "name": f"fleet-member-agent-{name}", "namespace": "fleet-system"}
    return {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"identity": identity, "heartbeatPeriodSeconds": heartbeat},
    }


def is_available(found: Body) -> bool:
    """Whether a Work or a placement says so, of itself as it is now."""
    now = found["metadata"]["generation"]
    conditions = found.get("status", {}).get("conditions", ())
    said = next((one for one in conditions if one["type"].endswith("Available")), None)
    return said is not None and said["status"] == "True" and said["observedGeneration"] == now


def runs(found: Body, number: int) -> bool:
    """Whether a member's Deployment runs this image everywhere, and nothing else."""
    status, spec = found.get("status", {}), found["spec"]
    counts = [status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    is_observed = status.get("observedGeneration") == found["metadata"]["generation"]
    has_image = spec["template"]["spec"]["containers"][0]["image"] == image(number)
    return has_image and is_observed and counts == [spec["replicas"]] * 3
