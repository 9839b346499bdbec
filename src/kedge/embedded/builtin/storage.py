"""Storage: what volumes, claims, their classes and drivers have beyond their schema."""

from __future__ import annotations

from kedge.api.numbers import Quantity
from kedge.api.resource import Resource
from kedge.embedded.builtin import pod_spec
from kedge.embedded.builtin.filling import each, struct
from kedge.embedded.rules import Surroundings, Untyped
from kedge.embedded.statuses import forbidden

CLASSES = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME_PROTECTION, CLAIM_PROTECTION = "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"
_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def _both_sources(spec: Untyped) -> Untyped:
    """A claim's source has an old name and a new one, and mostly both."""
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old and not new:
        return {**spec, "dataSourceRef": old}
    if new and not old and not new.get("namespace"):
        return {**spec, "dataSource": new}
    return spec


claim = struct(
    {"metadata": {}, "spec": {}, "status": {}}, spec=pod_spec.claim_spec, status=struct({"phase": "Pending"})
)
complete_claim = struct(
    {"spec": {}, "status": {}},
    spec=struct({"volumeMode": "Filesystem", "resources": {}}, then=_both_sources),
    status=struct({"phase": "Pending"}),
)
complete_volume = struct(
    {"spec": {}, "status": {}},
    spec=struct(
        {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
        hostPath=pod_spec.host_path,
        iscsi=pod_spec.iscsi,
        rbd=pod_spec.rbd,
        azureDisk=pod_spec.azure_disk,
        scaleIO=pod_spec.scale_io,
    ),
    status=struct({"phase": "Pending"}),
)
complete_class = struct({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
complete_driver = struct(
    {"spec": {}},
    spec=struct(
        {
            "attachRequired": True,
            "podInfoOnMount": False,
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "volumeLifecycleModes": ["Persistent"],
            "requiresRepublish": False,
            "seLinuxMount": False,
        }
    ),
)
complete_attachment = struct({"status": {}}, status=struct({"attached": False}))
complete_csi_node = struct({"spec": {}}, spec=struct(null=("drivers",), drivers=each(struct(null=("topologyKeys",)))))


def begin_volume(volume: Untyped, around: Surroundings) -> Untyped:
    """A new volume is pending since now, and stays until nobody uses it."""
    status = {"phase": "Pending", "lastPhaseTransitionTime": around.now()}
    return {**_guarded(volume, VOLUME_PROTECTION), "status": status}


def begin_claim(claim: Untyped, around: Surroundings) -> Untyped:
    """A new claim is of the default class unless it names one, and stays until nobody uses it."""
    guarded = _guarded(claim, CLAIM_PROTECTION)
    if "storageClassName" in claim["spec"] or not (name := default_of(around, CLASSES, _IS_DEFAULT)):
        return guarded
    return {**guarded, "spec": {**claim["spec"], "storageClassName": name}}


def default_of(around: Surroundings, classes: Resource, annotation: str) -> str:
    """The class that says it is the default; the newest, if several do."""
    chosen = [
        one["metadata"]
        for one in around.each(classes)
        if one["metadata"].get("annotations", {}).get(annotation) == "true"
    ]
    by_age = sorted(chosen, key=lambda metadata: str(metadata["name"]))
    newest: Untyped = max(by_age, key=lambda metadata: str(metadata.get("creationTimestamp", "")), default={})
    return str(newest.get("name", ""))


def _guarded(obj: Untyped, finalizer: str) -> Untyped:
    finalizers = obj["metadata"].get("finalizers", [])
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [*finalizers, finalizer]}}


def renew_claim(old: Untyped, new: Untyped, around: Surroundings) -> Untyped:
    """A bound claim may only grow where its class says that volumes of it can."""
    sizes = [claim["spec"]["resources"].get("requests", {}).get("storage", "0") for claim in (old, new)]
    if old.get("status", {}).get("phase") == "Bound" and Quantity.parse(sizes[1]) > Quantity.parse(sizes[0]):
        name = new["spec"].get("storageClassName", "")
        found = around.find(CLASSES, "", name) if name else None
        if not (found and found.get("allowVolumeExpansion")):
            raise forbidden(CLAIMS, new["metadata"].get("name", ""), _NO_GROWTH)
    return new
