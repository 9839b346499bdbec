"""Reflecting: what a member reports of an object that a Work made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.api.karmada.keys import SEQUENCE, TEMPLATE_GENERATION
from kedge.plan.aligning.retaining import retains_replicas
from kedge.plan.fields import Object, at, group_of, text

_COUNTED: Final = frozenset(
    {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps.kruise.io", "CloneSet")}
)
"""Kinds of which Karmada reports what they count, and no conditions: those change with every pod. Of all others it
reports the whole status."""


def reflected(obj: Object) -> Mapping[str, Any]:
    """The status of an object, and what it is about, from one look at it."""
    notes = at(obj, "metadata", "annotations") or {}
    found = dict(at(obj, "status") or {})
    if (generation := at(obj, "metadata", "generation")) is not None:
        found["generation"] = generation
    for name, note in (("alignmentSeq", SEQUENCE), ("resourceTemplateGeneration", TEMPLATE_GENERATION)):
        given = notes.get(note, "")
        if given.isascii() and given.isdecimal():
            found[name] = int(given)
    if retains_replicas(obj):
        found["specReplicas"] = at(obj, "spec", "replicas")
    if (group_of(obj), text(obj, "kind")) in _COUNTED:
        found.pop("conditions", None)
    return found
