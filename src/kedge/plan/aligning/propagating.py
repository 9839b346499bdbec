"""Propagating: a resource as it is sent to clusters, without what belongs to the hub alone.

As with Karmada, a Service keeps its node ports: a load balancer outside of the clusters knows them. A Job loses
`ttlSecondsAfterFinished`: what a member removes is created again, so the Job would run again and again.
"""

from __future__ import annotations

from typing import Any

from kedge.api.karmada.keys import TEMPLATE_GENERATION
from kedge.api.resource import Resource
from kedge.plan.fields import Object, at, group_of, patched, text, whole
from kedge.plan.selecting.candidates import without_hub_fields


def propagated(template: Object) -> Object:
    """A resource as it is sent to clusters."""
    generation = whole(template, "metadata", "generation")
    noted = {TEMPLATE_GENERATION: str(generation)} if generation is not None else {}
    kind = Resource(group_of(template), text(template, "apiVersion").rpartition("/")[2], text(template, "kind"), "")
    own = {"metadata": {"finalizers": None, "annotations": noted}, **_of_kind(kind, template)}
    return patched(without_hub_fields(kind, template), own)


def _of_kind(kind: Resource, template: Object) -> dict[str, Any]:
    """What is different from other hubs in the spec of a kind."""
    match (kind.group, kind.kind):
        case ("", "Service") if ports := at(template, "spec", "ports"):
            return {"spec": {"ports": ports}}
        case ("batch", "Job"):
            return {"spec": {"ttlSecondsAfterFinished": None}}
    return {}
