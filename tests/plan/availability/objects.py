"""Objects as a cluster shows them, made short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def made(api: str, kind: str, spec: Any = None, status: Any = None, **metadata: Any) -> Object:
    meta = {"name": "web", "namespace": "shop", "generation": 2, **metadata}
    parts = {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec, "status": status}
    return {name: part for name, part in parts.items() if part is not None}


def condition(kind: str, status: str, reason: str = "", message: str = "", **more: Any) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, **more}


def deployment(spec: Mapping[str, Any] | None = None, **status: Any) -> Object:
    """Three replicas, all new, all available; with what is to be otherwise."""
    good = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    return made("apps/v1", "Deployment", {"replicas": 3, **(spec or {})}, {**good, **status})


def stateful_set(spec: Mapping[str, Any] | None = None, **status: Any) -> Object:
    good = {
        "observedGeneration": 2,
        "replicas": 3,
        "availableReplicas": 3,
        "updatedReplicas": 3,
        "currentReplicas": 3,
        "currentRevision": "web-b",
        "updateRevision": "web-b",
    }
    return made("apps/v1", "StatefulSet", {"replicas": 3, **(spec or {})}, {**good, **status})


def clone_set(spec: Mapping[str, Any] | None = None, **status: Any) -> Object:
    good = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}
    return made("apps.kruise.io/v1alpha1", "CloneSet", {"replicas": 3, **(spec or {})}, {**good, **status})


def daemon_set(strategy: str = "RollingUpdate", **status: Any) -> Object:
    good = {
        "observedGeneration": 2,
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }
    return made("apps/v1", "DaemonSet", {"updateStrategy": {"type": strategy}}, {**good, **status})


def service(kind: str | None, status: Any = None, **spec: Any) -> Object:
    return made("v1", "Service", {"type": kind, **spec} if kind else spec, status)


def definition(established: str | None = "True", accepted: str | None = "True") -> Object:
    said = {"Established": established, "NamesAccepted": accepted}
    conditions = [condition(kind, status) for kind, status in said.items() if status]
    return made("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}, {"conditions": conditions})


def budget(allowed: int, *said: str, **status: Any) -> Object:
    conditions = [condition("DisruptionAllowed", *said)] if said else []
    whole = {"observedGeneration": 2, "disruptionsAllowed": allowed, "conditions": conditions, **status}
    return made("policy/v1", "PodDisruptionBudget", {}, whole)


def export(weight: str | None, *conditions: Object) -> Object:
    annotations = {} if weight is None else {"networking.fleet.azure.com/weight": weight}
    whole = {"conditions": list(conditions)}
    return made("networking.fleet.azure.com/v1alpha1", "ServiceExport", None, whole, annotations=annotations)


def job(*conditions: Object, suspend: bool = False, **status: Any) -> Object:
    return made("batch/v1", "Job", {"completions": 2, "suspend": suspend}, {"conditions": list(conditions), **status})


def ruled(rule: str, status: Any = None, **metadata: Any) -> Object:
    annotations = {"kedge.dev/available-when": rule}
    return made("example.com/v1", "Widget", {"wanted": 3}, status, annotations=annotations, **metadata)
