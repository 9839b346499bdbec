"""Retaining: workloads of which each cluster decides how many pods it has, as an autoscaler there does.

A template says so with the label `resourcetemplate.karmada.io/retain-replicas: "true"`. What is scheduled to a cluster
is then only what it begins with. The budget is that of all pods that the clusters ask for now, by their reports.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kedge.api.karmada.keys import RETAIN_REPLICAS
from kedge.plan.aligning.ledger import Report, Spec
from kedge.plan.fields import Object, at, patched


def retains_replicas(obj: Object) -> bool:
    """Whether clusters decide how many pods there are."""
    return bool(at(obj, "metadata", "labels", RETAIN_REPLICAS) == "true")


def retained(template: Object, reports: Mapping[str, Report], wanted: Mapping[str, int]) -> dict[str, int]:
    """How many pods clusters ask for by themselves. One that is to leave decides no more."""
    if not retains_replicas(template):
        return {}
    return {name: one.asked for name, one in reports.items() if one.asked is not None and name in wanted}


def sized(specs: tuple[Spec, ...], replicas: int | None) -> tuple[Spec, ...]:
    """What a cluster was asked for, with as many replicas as it has decided on: whichever is in effect, those are."""
    return specs if replicas is None else tuple(replace(spec, replicas=replicas) for spec in specs)


def with_retained(manifest: Object, live: Object) -> Object:
    """A manifest with the replicas that the object in the cluster has, if it was made to keep them."""
    replicas = at(live, "spec", "replicas")
    if replicas is None or not (retains_replicas(manifest) and retains_replicas(live)):
        return manifest
    return patched(manifest, {"spec": {"replicas": replicas}})


def without_retaining(manifest: Object) -> Object:
    """A manifest of which the hub decides how many pods there are."""
    return (
        patched(manifest, {"metadata": {"labels": {RETAIN_REPLICAS: None}}}) if retains_replicas(manifest) else manifest
    )
