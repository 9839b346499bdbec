"""Kinds: how each kind is judged, as seed 000 and kubefleet.md §4.6 say it, both at once.

To add a kind that runs pods, give it a workload handler (`kedge.plan.workloads`): it is then judged by its counts. To
add another, write its `judge` and name it in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kedge.api.fleet import AVAILABLE_WHEN
from kedge.plan.availability import rule, services, workloads
from kedge.plan.availability.verdict import (
    Verdict,
    available,
    because,
    many,
    not_available,
    not_observed,
    untrackable,
)
from kedge.plan.fields import Object, at, condition, count, group_of, has_condition, is_observed, name_of, text
from kedge.plan.workloads.registry import BrokenHandler, Found, installed_handlers

Judge: TypeAlias = Callable[[Object], Verdict]

DATA: Final = frozenset(
    (
        *(("", kind) for kind in ("ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "ServiceAccount")),
        *(("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
        *(("networking.k8s.io", kind) for kind in ("IngressClass", "NetworkPolicy")),
        *(("storage.k8s.io", kind) for kind in ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass")),
        ("apps", "ControllerRevision"),
        ("scheduling.k8s.io", "PriorityClass"),
    )
)
"""Kinds that only hold something. They are available as soon as they are there."""
_ESTABLISHED: Final = {"NamesAccepted": "does not have its names accepted", "Established": "is not established"}
_ENOUGH: Final = (("True", "SufficientPods"),)
_TOO_FEW: Final = (("False", "InsufficientPods"), ("False", "InsufficientPodsReason"))  # the latter as documents say


def judge(obj: Object) -> Verdict:
    """Whether an object is available, by its own rule or by its kind's. Never raises, whatever the object."""
    if at(obj, "metadata", "deletionTimestamp") is not None:
        return not_available(f"{name_of(obj)} is being deleted")
    own = at(obj, "metadata", "annotations", AVAILABLE_WHEN)
    if isinstance(own, str):
        return rule.judge(obj, own)
    kind = (group_of(obj), text(obj, "kind"))
    return KINDS[kind](obj) if kind in KINDS else _judge_other(obj, installed_handlers().get(kind))


def _judge_other(obj: Object, handler: Found | None) -> Verdict:
    if handler is None:
        return untrackable(f"nothing tells when {name_of(obj)} is available; the annotation {AVAILABLE_WHEN} can")
    if isinstance(handler, BrokenHandler):
        return not_available(f"{name_of(obj)} cannot be judged{because(str(handler))}")
    try:
        return workloads.judge_workload(handler, obj)
    except Exception as error:  # noqa: BLE001  # a handler of somebody else may raise anything
        why = f"its workload handler failed with {type(error).__name__}: {error}"
        return not_available(f"{name_of(obj)} cannot be judged{because(why)}")


def _judge_data(obj: Object) -> Verdict:
    return available(f"{name_of(obj)} is there")


def _judge_definition(obj: Object) -> Verdict:
    """A CustomResourceDefinition: established, under the names it asks for."""
    for kind, problem in _ESTABLISHED.items():
        if not has_condition(obj, kind, "True"):
            why = because(text(condition(obj, kind), "message"))
            return not_available(f"{name_of(obj)} {problem}{why or ' yet'}")
    return available(f"{name_of(obj)} is established")


def _judge_budget(obj: Object) -> Verdict:
    """A PodDisruptionBudget: worked out for this generation. One that allows none is available too: it refuses."""
    found = condition(obj, "DisruptionAllowed")
    if text(found, "reason") == "SyncFailed":
        return not_available(f"{name_of(obj)} cannot be worked out{because(text(found, 'message'))}")
    if not is_observed(obj):
        return not_available(not_observed(obj))
    return _judge_counted_budget(obj, found, count(obj, "status", "disruptionsAllowed"))


def _judge_counted_budget(obj: Object, found: Object | None, allowed: int) -> Verdict:
    sentence = f"{name_of(obj)} allows {many(allowed, 'disruption')}"
    if found is None:
        return not_available(f"{sentence}, but has no condition DisruptionAllowed yet")
    said = (text(found, "status"), text(found, "reason"))
    if said not in (_ENOUGH if allowed > 0 else _TOO_FEW):
        return not_available(f"{sentence}, but its condition DisruptionAllowed is {said[0]} ({said[1]})")
    return available(sentence)


KINDS: Final[Mapping[tuple[str, str], Judge]] = {
    ("apps", "Deployment"): workloads.judge_deployment,
    ("apps", "StatefulSet"): workloads.judge_stateful_set,
    ("apps", "DaemonSet"): workloads.judge_daemon_set,
    ("apps.kruise.io", "CloneSet"): workloads.judge_clone_set,
    ("batch", "Job"): workloads.judge_job,
    ("", "Service"): services.judge_service,
    ("networking.fleet.azure.com", "ServiceExport"): services.judge_service_export,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _judge_definition,
    ("policy", "PodDisruptionBudget"): _judge_budget,
    **dict.fromkeys(DATA, _judge_data),
}
"""How each kind that can be tracked is judged, by group and kind."""

installed_handlers()  # reads files, which no event loop may wait for: so it is done before one runs
