"""Work spec: what a Work says beside its manifest: whether it is held back, stays, and takes over what is there.

A Work is created suspended, and let through in the version that came of it: a request that arrives when the cluster is
no longer asked for anything must not have it run pods.
"""

from __future__ import annotations

from typing import Any

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.keys import CONFLICT_RESOLUTION
from kedge.api.karmada.works import Work
from kedge.plan.fields import Object, patched


def work_spec(binding: BindingSpec, cluster: str, manifest: Object) -> dict[str, Any]:
    """The spec of the Work of one cluster. None: to be left out."""
    if binding.conflict_resolution:
        note = {CONFLICT_RESOLUTION: binding.conflict_resolution.lower()}
        manifest = patched(manifest, {"metadata": {"annotations": note}})
    return {
        "workload": {"manifests": [manifest]},
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
