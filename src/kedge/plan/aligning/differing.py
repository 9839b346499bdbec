"""Differing: a template that asks for another number of replicas than a binding that was written by hand.

The binding decides, and may differ on purpose. Who scales the template, and sees no pods come or go, has to be told.
"""

from __future__ import annotations

from kedge.plan.aligning.observed import AnyBinding, resource_of
from kedge.plan.aligning.retaining import retains_replicas
from kedge.plan.aligning.workload_kinds import is_counted
from kedge.plan.fields import Object, whole
from kedge.plan.text import object_name


def replicas_differ(binding: AnyBinding, template: Object | None) -> str:
    """How many replicas the template and the clusters of a binding ask for, if they differ; else empty."""
    spec = binding.spec
    if template is None or spec.placement or not spec.clusters or binding.metadata.deletion_timestamp is not None:
        return ""
    if not is_counted(template) or retains_replicas(template):
        return ""
    asked, bound = whole(template, "spec", "replicas"), sum(one.replicas for one in spec.clusters)
    if asked in (None, bound):
        return ""
    resource = resource_of(binding)
    named = object_name(resource.kind, resource.namespace, resource.name)
    return (
        f"{named} has spec.replicas: {asked}, and spec.clusters of this binding {bound} in all: the binding decides,"
        " so scale there"
    )
