"""Pods, nodes and ReplicaSets to plan with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kedge.api.apps import ReplicaSet
from kedge.api.pods import Node, Pod

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def pod(
    name: str = "pod",
    *,
    node: str = "node-1",
    phase: str = "Running",
    ready: float | None = None,
    age: float = 1000.0,
    restarts: int = 0,
    spec: dict[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod, `ready` for so many seconds if it is."""
    condition = {"type": "Ready", "status": "False" if ready is None else "True", "lastTransitionTime": ago(ready or 0)}
    containers = [{"name": "web", "image": "web:1"}]
    body = {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": ago(age), **metadata},
        "spec": {"nodeName": node, "containers": containers, **(spec or {})},
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [{"name": "web", "restartCount": restarts}],
        },
    }
    return msgspec.convert(body, Pod)


def node(name: str, *, ready: bool = True, labels: dict[str, str] | None = None, **spec: Any) -> Node:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    body = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"conditions": conditions}}
    return msgspec.convert(body, Node)


def replica_set(replicas: int = 3, **spec: Any) -> ReplicaSet:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    meta = {"name": "web-1", "namespace": "shop", "uid": "web-1", "generation": 2}
    return msgspec.convert({"metadata": meta, "spec": wanted}, ReplicaSet)
