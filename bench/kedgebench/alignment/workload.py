"""Workload: a Deployment that rolls so many pods at a time, and what binds it to clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAME = "web"
ALIGNED, PLAIN = "aligned", "plain"
"""Namespaces: of what is divided over all members, and of what one member runs alone."""
READY_AFTER = "500ms"


def image(number: int) -> str:
    return f"app:{number}"


def deployment(namespace: str, pods: int, max_unavailable: str, number: int = 1) -> dict[str, Any]:
    labels = {"app": NAME}
    spec = {"containers": [{"name": "app", "image": image(number)}], "terminationGracePeriodSeconds": 0}
    meta = {"labels": labels, "annotations": {"kedge.dev/ready-after": READY_AFTER}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable, "maxSurge": 0}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "generation": number},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "strategy": strategy,
            "template": {"metadata": meta, "spec": spec},
        },
    }


def binding(namespace: str, replicas: Mapping[str, int]) -> dict[str, Any]:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME, "namespace": namespace}
    clusters = [{"name": name, "replicas": number} for name, number in replicas.items()]
    meta = {"name": f"{NAME}-deployment", "namespace": namespace}
    return {"metadata": meta, "spec": {"resource": resource, "clusters": clusters}}


def release(number: int) -> dict[str, Any]:
    """A patch with a new image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image(number)}]}}}}
