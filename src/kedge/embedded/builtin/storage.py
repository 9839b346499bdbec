"""Storage: defaults and validation of volumes, claims, storage classes, CSI drivers and attachments.

Where Kubernetes adds a diff to a refusal, we do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from kedge.api.numbers import Quantity
from kedge.api.resource import Resource
from kedge.embedded import statuses
from kedge.embedded.builtin import checks, pod_spec
from kedge.embedded.builtin.defaulting import each, struct
from kedge.embedded.builtin.pod_volumes import source_problems
from kedge.embedded.builtin.scheduling_constraints import node_selector_problems
from kedge.embedded.causes import (
    IMMUTABLE,
    forbidden,
    invalid_value,
    must_be_one_of,
    required_value,
    sorted_by_key,
    unsupported_value,
)
from kedge.embedded.kind_rules import AdmissionContext
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME_PROTECTION, CLAIM_PROTECTION = "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"
_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def _both_sources(spec: Untyped) -> Untyped:
    """`dataSource` and `dataSourceRef` mostly have the same value."""
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old and not new:
        return {**spec, "dataSourceRef": old}
    if new and not old and not new.get("namespace"):
        return {**spec, "dataSource": new}
    return spec


default_claim_template = struct(
    {"metadata": {}, "spec": {}, "status": {}}, spec=pod_spec.default_claim_spec, status=struct({"phase": "Pending"})
)
default_claim = struct(
    {"spec": {}, "status": {}},
    spec=struct({"volumeMode": "Filesystem", "resources": {}}, then=_both_sources),
    status=struct({"phase": "Pending"}),
)
default_volume = struct(
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
default_class = struct({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})
default_csi_driver = struct(
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
default_attachment = struct({"status": {}}, status=struct({"attached": False}))
default_csi_node = struct({"spec": {}}, spec=struct(null=("drivers",), drivers=each(struct(null=("topologyKeys",)))))


def prepare_new_volume(volume: Untyped, context: AdmissionContext) -> Untyped:
    """A new volume is Pending and has the protection finalizer."""
    status = {"phase": "Pending", "lastPhaseTransitionTime": context.now()}
    return {**_with_finalizer(volume, VOLUME_PROTECTION), "status": status}


def prepare_new_claim(claim: Untyped, context: AdmissionContext) -> Untyped:
    """A new claim gets the default class, unless it names one, and the protection finalizer."""
    guarded = _with_finalizer(claim, CLAIM_PROTECTION)
    if "storageClassName" in claim["spec"] or not (name := default_class_name(context, STORAGE_CLASSES, _IS_DEFAULT)):
        return guarded
    return {**guarded, "spec": {**claim["spec"], "storageClassName": name}}


def default_class_name(context: AdmissionContext, classes: Resource, annotation: str) -> str:
    """The name of the default class; the newest, if there are several."""
    chosen = [
        one["metadata"]
        for one in context.each(classes)
        if one["metadata"].get("annotations", {}).get(annotation) == "true"
    ]
    by_age = sorted(chosen, key=lambda metadata: str(metadata["name"]))
    newest: Untyped = max(by_age, key=lambda metadata: str(metadata.get("creationTimestamp", "")), default={})
    return str(newest.get("name", ""))


def _with_finalizer(obj: Untyped, finalizer: str) -> Untyped:
    finalizers = obj["metadata"].get("finalizers", [])
    if finalizer in finalizers:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [*finalizers, finalizer]}}


def check_claim_resize(old: Untyped, new: Untyped, context: AdmissionContext) -> Untyped:
    """Refuse that a bound claim grows, unless its class allows expansion."""
    sizes = [claim["spec"]["resources"].get("requests", {}).get("storage", "0") for claim in (old, new)]
    if old.get("status", {}).get("phase") == "Bound" and Quantity.parse(sizes[1]) > Quantity.parse(sizes[0]):
        name = new["spec"].get("storageClassName", "")
        found = context.find(STORAGE_CLASSES, "", name) if name else None
        if not (found and found.get("allowVolumeExpansion")):
            raise statuses.forbidden(CLAIMS, new["metadata"].get("name", ""), _NO_GROWTH)
    return new


_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_NO_SOURCE = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def claim_problems(claim: Untyped) -> Iterator[Cause]:
    yield from claim_spec_problems("spec", claim["spec"])


def claim_spec_problems(at: str, spec: Untyped) -> Iterator[Cause]:
    """What is wrong with a claim, or with the template of one."""
    if not spec.get("accessModes"):
        yield required_value(f"{at}.accessModes", "at least 1 access mode is required")
    yield from _access_modes(at, spec)
    size = spec["resources"].get("requests", {}).get("storage")
    if size is None:
        yield required_value(f"{at}.resources[storage]")
    elif Quantity.parse(size).amount <= 0:
        yield invalid_value(f"{at}.resources[storage]", size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from checks.subdomain(f"{at}.storageClassName", spec["storageClassName"])
    yield from must_be_one_of(f"{at}.volumeMode", spec["volumeMode"], _VOLUME_MODES)


def volume_problems(volume: Untyped) -> Iterator[Cause]:
    spec = volume["spec"]
    if not spec.get("accessModes"):
        yield required_value("spec.accessModes")
    yield from _access_modes("spec", spec)
    capacity = spec.get("capacity", {})
    if not capacity:
        yield required_value("spec.capacity")
    if list(capacity) != ["storage"]:
        yield unsupported_value("spec.capacity", sorted_by_key(capacity) or None, ("storage",))
    for name, text in capacity.items():
        if Quantity.parse(text).amount <= 0:
            yield invalid_value(f"spec.capacity[{name}]", text, "must be greater than zero")
    sources = [name for name in spec if name not in _NO_SOURCE]
    if not sources:
        yield required_value("spec", "must specify a volume type")
    yield from source_problems("spec", sources, spec)
    yield from must_be_one_of(
        "spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], ("Delete", "Recycle", "Retain")
    )
    if spec.get("storageClassName"):
        yield from checks.subdomain("spec.storageClassName", spec["storageClassName"])
    yield from must_be_one_of("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)
    if "required" in spec.get("nodeAffinity", {}):
        yield from node_selector_problems("spec.nodeAffinity.required", spec["nodeAffinity"]["required"])


def storage_class_problems(storage_class: Untyped) -> Iterator[Cause]:
    if not storage_class.get("provisioner"):
        yield required_value("provisioner")
    else:
        yield from checks.qualified_name("provisioner", storage_class["provisioner"].lower())
    yield from must_be_one_of("reclaimPolicy", storage_class["reclaimPolicy"], ("Delete", "Retain"))
    yield from must_be_one_of(
        "volumeBindingMode", storage_class["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer")
    )


def claim_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """The spec of a claim cannot be changed, except for its volume, once, and its size when bound."""
    before, after = old["spec"], new["spec"]
    bound = new.get("status", {}).get("phase") == "Bound"
    if _fixed(before, before, bound=bound) != _fixed(before, after, bound=bound):
        yield forbidden("spec", _FIXED)
    sizes = [spec["resources"].get("requests", {}).get("storage", "0") for spec in (before, after)]
    if Quantity.parse(sizes[1]) < Quantity.parse(sizes[0]):
        has = old.get("status", {}).get("capacity", {}).get("storage", "0")
        if not Quantity.parse(sizes[1]) > Quantity.parse(has):
            yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if before["volumeMode"] != after["volumeMode"]:
        yield invalid_value("volumeMode", after["volumeMode"], IMMUTABLE)


def volume_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    sources = [{key: value for key, value in obj["spec"].items() if key not in _NO_SOURCE} for obj in (old, new)]
    if sources[0] != sources[1]:
        yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if old["spec"]["volumeMode"] != new["spec"]["volumeMode"]:
        yield invalid_value("volumeMode", new["spec"]["volumeMode"], IMMUTABLE)


def storage_class_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if old.get(name) != new.get(name):
            yield invalid_value(name, new.get(name), IMMUTABLE)


def _access_modes(at: str, spec: Untyped) -> Iterator[Cause]:
    modes = spec.get("accessModes", ())
    for mode in modes:
        yield from must_be_one_of(f"{at}.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden(f"{at}.accessModes", "may not use ReadWriteOncePod with other access modes")


def _fixed(before: Untyped, spec: Untyped, *, bound: bool) -> Untyped:
    """The immutable part of a claim."""
    free = {"volumeName"} if not before.get("volumeName") else set()
    if "storageClassName" not in before:
        free.add("storageClassName")  # whoever names the default class later may still do so
    fixed = {key: value for key, value in spec.items() if key not in free}
    if not bound:
        return fixed
    requests = {key: value for key, value in spec["resources"].get("requests", {}).items() if key != "storage"}
    return {**fixed, "resources": {**spec["resources"], "requests": requests}, "volumeAttributesClassName": None}


def csi_driver_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    before, after = old["spec"], new["spec"]
    if before["attachRequired"] != after["attachRequired"]:
        yield invalid_value("spec.attachedRequired", after["attachRequired"], IMMUTABLE)  # as Kubernetes spells it
    if before["volumeLifecycleModes"] != after["volumeLifecycleModes"]:
        yield invalid_value("spec.volumeLifecycleModes", after["volumeLifecycleModes"], IMMUTABLE)


def attachment_update_problems(old: Untyped, new: Untyped) -> Iterator[Cause]:
    spec = new["spec"]
    if old["spec"] != spec:
        source = spec.get("source", {})
        shown = {
            "Attacher": spec.get("attacher", ""),
            "Source": {
                "PersistentVolumeName": source.get("persistentVolumeName"),
                "InlineVolumeSpec": source.get("inlineVolumeSpec"),
            },
            "NodeName": spec.get("nodeName", ""),
        }
        yield invalid_value("spec", shown, IMMUTABLE)


def attachment_problems(attachment: Untyped) -> Iterator[Cause]:
    spec = attachment.get("spec", {})
    for name in ("attacher", "nodeName"):
        if not spec.get(name):
            yield required_value(f"spec.{name}")
    if not spec.get("source"):
        yield required_value("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
