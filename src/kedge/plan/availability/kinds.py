"""Kinds: how each kind is judged, as seed 000 and kubefleet.md §4.6 say it, both at once.

To add a kind, write its `judge` in a module of its own and name it in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kedge.api.fleet import AVAILABLE_WHEN
from kedge.plan.availability import (
    budgets,
    daemon_sets,
    data,
    definitions,
    deployments,
    jobs,
    rule,
    service_exports,
    services,
    stateful_sets,
)
from kedge.plan.availability.reading import Object, at, group_of, name_of, text
from kedge.plan.availability.verdict import Verdict, not_available, untrackable

Judge: TypeAlias = Callable[[Object], Verdict]

KINDS: Final[Mapping[tuple[str, str], Judge]] = {
    ("apps", "Deployment"): deployments.judge,
    ("apps", "StatefulSet"): stateful_sets.judge,
    ("apps", "DaemonSet"): daemon_sets.judge,
    ("", "Service"): services.judge,
    ("networking.fleet.azure.com", "ServiceExport"): service_exports.judge,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definitions.judge,
    ("policy", "PodDisruptionBudget"): budgets.judge,
    ("batch", "Job"): jobs.judge,
    **dict.fromkeys(data.KINDS, data.judge),
}
"""How each kind that can be tracked is judged, by group and kind."""


def judge(obj: Object) -> Verdict:
    """Whether an object is available, by its own rule or by its kind's. Never raises, whatever the object."""
    if at(obj, "metadata", "deletionTimestamp") is not None:
        return not_available(f"{name_of(obj)} is being deleted")
    own = at(obj, "metadata", "annotations", AVAILABLE_WHEN)
    if isinstance(own, str):
        return rule.judge(obj, own)
    return KINDS.get((group_of(obj), text(obj, "kind")), _anything_else)(obj)


def _anything_else(obj: Object) -> Verdict:
    return untrackable(f"nothing tells when {name_of(obj)} is available; the annotation {AVAILABLE_WHEN} can")
