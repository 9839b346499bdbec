"""Work spec: what a Work says beside its manifest: whether it is held back, stays, and takes over what is there.

A Work is created suspended, and let through in the version that came of it: a request that arrives when the cluster is
no longer asked for anything must not have it run pods.
"""

from __future__ import annotations

from typing import Any, Final

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.keys import (
    CONFLICT_RESOLUTION,
    MANAGED,
    MANAGED_ANNOTATIONS,
    MANAGED_LABELS,
    SEQUENCE,
    TEMPLATE_GENERATION,
    TEMPLATE_UID,
    WORK_NAME,
    WORK_NAMESPACE,
)
from kedge.api.karmada.works import Work
from kedge.plan.fields import Object, at, patched

_UNMARKED: Final = {
    "metadata": {
        "labels": {MANAGED: None},
        "annotations": dict.fromkeys((TEMPLATE_UID, MANAGED_LABELS, MANAGED_ANNOTATIONS)),
    }
}
_MARKS: Final = (
    ("labels", (MANAGED,)),
    (
        "annotations",
        (
            TEMPLATE_UID,
            TEMPLATE_GENERATION,
            MANAGED_LABELS,
            MANAGED_ANNOTATIONS,
            WORK_NAMESPACE,
            WORK_NAME,
            CONFLICT_RESOLUTION,
            SEQUENCE,
        ),
    ),
)
"""What tells in a cluster that an object is propagated."""
_RESOLUTIONS: Final = ("abort", "overwrite")
"""What a resource may say for itself: that counts more than what its policy says of all."""


def work_spec(binding: BindingSpec, cluster: str, manifest: Object, *, uid: str = "") -> dict[str, Any]:
    """The spec of the Work of one cluster. None: to be left out. `uid`: which object the resource is."""
    if binding.conflict_resolution and at(manifest, "metadata", "annotations", CONFLICT_RESOLUTION) not in _RESOLUTIONS:
        note = {CONFLICT_RESOLUTION: binding.conflict_resolution.lower()}
        manifest = patched(manifest, {"metadata": {"annotations": note}})
    return {
        "workload": {"manifests": [_marked(manifest, uid)]},
        "suspendDispatching": is_suspended(binding, cluster) or None,
        "preserveResourcesOnDeletion": binding.preserve_resources_on_deletion or None,
    }


def shown_spec(work: Work) -> dict[str, Any]:
    """The same of a Work that is there."""
    return {
        "workload": {"manifests": list(work.spec.workload.manifests)},
        "suspendDispatching": work.spec.suspend_dispatching or None,
        "preserveResourcesOnDeletion": work.spec.preserve_resources_on_deletion or None,
    }


def _marked(manifest: Object, uid: str) -> Object:
    """A manifest with the labels and annotations by which Karmada marks what it propagates."""
    noted = {TEMPLATE_UID: uid} if uid else {}
    labels = {*(at(manifest, "metadata", "labels") or ()), MANAGED}
    notes = {*(at(manifest, "metadata", "annotations") or ()), *noted, MANAGED_LABELS, MANAGED_ANNOTATIONS}
    own = {MANAGED_LABELS: ",".join(sorted(labels)), MANAGED_ANNOTATIONS: ",".join(sorted(notes))}
    return patched(manifest, {"metadata": {"labels": {MANAGED: "true"}, "annotations": {**noted, **own}}})


def unmarking(found: Object) -> dict[str, Any]:
    """The patch that takes the marks away from an object that stays in its cluster without a Work; empty if none are
    there."""
    change = {
        place: dict.fromkeys(there)
        for place, marks in _MARKS
        if (there := [mark for mark in marks if mark in (at(found, "metadata", place) or ())])
    }
    return {"metadata": change} if change else {}


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two specs ask for the same. The marks of Karmada alone are no reason to write to a cluster."""
    return _unmarked(one) == _unmarked(other)


def _unmarked(spec: dict[str, Any]) -> dict[str, Any]:
    manifests = [_without_empty(patched(one, _UNMARKED)) for one in spec["workload"]["manifests"]]
    return {**spec, "workload": {"manifests": manifests}}


def _without_empty(manifest: Object) -> Object:
    given = at(manifest, "metadata") or {}
    return {**manifest, "metadata": {name: value for name, value in given.items() if value != {}}}


def was_sent(work: Work) -> bool:
    """Whether a Work was ever let through to its cluster: it is created suspended."""
    return work.metadata.generation != 1 or not work.spec.suspend_dispatching


def is_suspended(binding: BindingSpec, cluster: str) -> bool:
    """Whether nothing is written to a cluster for now."""
    given = binding.suspension
    if given is None:
        return False
    some = given.dispatching_on_clusters
    return given.dispatching or (some is not None and cluster in some.cluster_names)
