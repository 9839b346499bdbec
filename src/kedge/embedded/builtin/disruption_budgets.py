"""Disruption budgets: defaults and validation of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterator

from kedge.embedded.builtin import checks
from kedge.embedded.builtin.defaulting import struct
from kedge.embedded.builtin.label_selectors import selector_in_order, selector_problems
from kedge.embedded.causes import invalid_value, must_be_one_of
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

default_budget = struct(
    {"spec": {}, "status": {}},
    status=struct({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}),
)


def budget_problems(budget: Untyped) -> Iterator[Cause]:
    """What is wrong with a budget: minAvailable and maxUnavailable exclude each other."""
    spec = budget["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid_value("spec", _spec_shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from checks.count_or_percent(f"spec.{name}", spec[name])
            yield from checks.at_most_100_percent(f"spec.{name}", spec[name])
    if "selector" in spec:
        yield from selector_problems("spec.selector", spec["selector"])
    if "unhealthyPodEvictionPolicy" in spec:
        known = ("AlwaysAllow", "IfHealthyBudget")
        yield from must_be_one_of("spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], known)


def _spec_shown(spec: Untyped) -> Untyped:
    """A budget with the field names of Go, as Kubernetes shows it."""
    return {
        "MinAvailable": spec["minAvailable"],
        "Selector": selector_in_order(spec.get("selector")),
        "MaxUnavailable": spec["maxUnavailable"],
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
