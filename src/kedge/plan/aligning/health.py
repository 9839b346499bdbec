"""Health: whether a resource is well in a cluster, by what that reports of it.

What counts its pods by template is healthy if its status is of what was asked for last, and all pods it asks for are
of it and available. A partition is respected: pods that are to stay old are no fault. Other kinds are judged as Karmada
judges them. What only holds something is well as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from kedge.api.karmada.works import Work
from kedge.plan.aligning.interpreter import (
    NotAligned,
    UnifiedRollingStatus,
    get_rolling_strategy,
    interpret_rolling_status,
    sequence_of,
)
from kedge.plan.aligning.workload_kinds import is_counted
from kedge.plan.fields import Object, at, count, group_of, has_condition, text, whole
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.handler import ON_DELETE


class Health(StrEnum):
    healthy = "Healthy"
    unhealthy = "Unhealthy"
    unknown = "Unknown"


def health(work: Work) -> Health:
    """Whether what a Work asks for is well in its cluster."""
    manifests, statuses = work.spec.workload.manifests, work.status.manifest_statuses
    if not manifests or not statuses or statuses[0].status is None:
        return Health.unknown
    manifest, status = manifests[0], statuses[0].status
    if (judge := _JUDGES.get((group_of(manifest), text(manifest, "kind")))) is not None:
        return _of(is_well=judge({**manifest, "status": status}))
    desired, found = whole(manifest, "spec", "replicas"), interpret_rolling_status(status)
    if desired is None:
        return Health.healthy
    if not is_counted(manifest) and found.updated_replicas is None and found.available_replicas is None:
        return Health.unknown  # it counts them in another way, or not at all
    return _of(is_well=_has_its_pods(manifest, desired, found))


def _of(*, is_well: bool) -> Health:
    return Health.healthy if is_well else Health.unhealthy


def _has_its_pods(manifest: Object, desired: int, found: UnifiedRollingStatus) -> bool:
    is_acknowledged = (found.alignment_seq or 0) >= sequence_of(manifest)
    is_current = found.generation == found.observed_generation and is_acknowledged
    is_updated = (found.updated_replicas or 0) >= desired - _partition(manifest)
    return is_current and is_updated and (found.available_replicas or 0) >= desired


def _partition(manifest: Object) -> int:
    """How many pods are to stay old."""
    try:
        return get_rolling_strategy(manifest).partition or 0
    except NotAligned:
        return 0


# Other kinds


def _is_observed(obj: Object) -> bool:
    """Members report the generation that their status is about beside it."""
    return whole(obj, "status", "generation") == whole(obj, "status", "observedGeneration")


def _daemon_set(obj: Object) -> bool:
    desired, updated = count(obj, "status", "desiredNumberScheduled"), count(obj, "status", "updatedNumberScheduled")
    is_updated = updated >= desired or DaemonSets().strategy(obj).type == ON_DELETE
    return _is_observed(obj) and is_updated and count(obj, "status", "numberAvailable") >= desired


def _replica_set(obj: Object) -> bool:
    return _is_observed(obj) and count(obj, "status", "availableReplicas") >= count(obj, "spec", "replicas")


def _job(obj: Object) -> bool:
    return not has_condition(obj, "Failed", "True")


def _pod(obj: Object) -> bool:
    phase = text(obj, "status", "phase")
    return phase == "Succeeded" or (phase == "Running" and has_condition(obj, "Ready", "True"))


def _service(obj: Object) -> bool:
    return text(obj, "spec", "type") != "LoadBalancer" or _has_address(obj)


def _has_address(obj: Object) -> bool:
    return any(one.get("ip") or one.get("hostname") for one in at(obj, "status", "loadBalancer", "ingress") or ())


def _claim(obj: Object) -> bool:
    return text(obj, "status", "phase") == "Bound"


def _disruption_budget(obj: Object) -> bool:
    return count(obj, "status", "currentHealthy") >= count(obj, "status", "desiredHealthy")


_JUDGES: Final[Mapping[tuple[str, str], Callable[[Object], bool]]] = {
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("networking.k8s.io", "Ingress"): _has_address,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
}
