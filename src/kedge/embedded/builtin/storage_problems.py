"""Storage problems: what is wrong with volumes, claims and classes, and with a change of one.

Where Kubernetes adds a picture of what differs, we do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from kedge.api.numbers import Quantity
from kedge.embedded.builtin import checks
from kedge.embedded.builtin.causes import IMMUTABLE, forbidden, in_order, one_of, required, unsupported, wrong
from kedge.embedded.builtin.placing import node_selector_problems
from kedge.embedded.builtin.volumes import source_problems
from kedge.embedded.rules import Untyped
from kedge.kube.errors import Cause

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
        yield required(f"{at}.accessModes", "at least 1 access mode is required")
    yield from _access_modes(at, spec)
    size = spec["resources"].get("requests", {}).get("storage")
    if size is None:
        yield required(f"{at}.resources[storage]")
    elif Quantity.parse(size).amount <= 0:
        yield wrong(f"{at}.resources[storage]", size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from checks.subdomain(f"{at}.storageClassName", spec["storageClassName"])
    yield from one_of(f"{at}.volumeMode", spec["volumeMode"], _VOLUME_MODES)


def volume_problems(volume: Untyped) -> Iterator[Cause]:
    spec = volume["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _access_modes("spec", spec)
    capacity = spec.get("capacity", {})
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield unsupported("spec.capacity", in_order(capacity) or None, ("storage",))
    for name, text in capacity.items():
        if Quantity.parse(text).amount <= 0:
            yield wrong(f"spec.capacity[{name}]", text, "must be greater than zero")
    sources = [name for name in spec if name not in _NO_SOURCE]
    if not sources:
        yield required("spec", "must specify a volume type")
    yield from source_problems("spec", sources, spec)
    yield from one_of(
        "spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], ("Delete", "Recycle", "Retain")
    )
    if spec.get("storageClassName"):
        yield from checks.subdomain("spec.storageClassName", spec["storageClassName"])
    yield from one_of("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)
    if "required" in spec.get("nodeAffinity", {}):
        yield from node_selector_problems("spec.nodeAffinity.required", spec["nodeAffinity"]["required"])


def class_problems(storage_class: Untyped) -> Iterator[Cause]:
    if not storage_class.get("provisioner"):
        yield required("provisioner")
    else:
        yield from checks.qualified("provisioner", storage_class["provisioner"].lower())
    yield from one_of("reclaimPolicy", storage_class["reclaimPolicy"], ("Delete", "Retain"))
    yield from one_of("volumeBindingMode", storage_class["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))


def claim_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    """A claim stays as it was made: it is given a volume once, and may ask for more once it is bound."""
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
        yield wrong("volumeMode", after["volumeMode"], IMMUTABLE)


def volume_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    sources = [{key: value for key, value in obj["spec"].items() if key not in _NO_SOURCE} for obj in (old, new)]
    if sources[0] != sources[1]:
        yield forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if old["spec"]["volumeMode"] != new["spec"]["volumeMode"]:
        yield wrong("volumeMode", new["spec"]["volumeMode"], IMMUTABLE)


def class_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if old.get(name) != new.get(name):
            yield wrong(name, new.get(name), IMMUTABLE)


def _access_modes(at: str, spec: Untyped) -> Iterator[Cause]:
    modes = spec.get("accessModes", ())
    for mode in modes:
        yield from one_of(f"{at}.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden(f"{at}.accessModes", "may not use ReadWriteOncePod with other access modes")


def _fixed(before: Untyped, spec: Untyped, *, bound: bool) -> Untyped:
    """What may not change of a claim."""
    free = {"volumeName"} if not before.get("volumeName") else set()
    if "storageClassName" not in before:
        free.add("storageClassName")  # whoever names the default class later may still do so
    fixed = {key: value for key, value in spec.items() if key not in free}
    if not bound:
        return fixed
    requests = {key: value for key, value in spec["resources"].get("requests", {}).items() if key != "storage"}
    return {**fixed, "resources": {**spec["resources"], "requests": requests}, "volumeAttributesClassName": None}


def driver_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
    before, after = old["spec"], new["spec"]
    if before["attachRequired"] != after["attachRequired"]:
        yield wrong("spec.attachedRequired", after["attachRequired"], IMMUTABLE)  # as Kubernetes spells it
    if before["volumeLifecycleModes"] != after["volumeLifecycleModes"]:
        yield wrong("spec.volumeLifecycleModes", after["volumeLifecycleModes"], IMMUTABLE)


def attachment_changed(old: Untyped, new: Untyped) -> Iterator[Cause]:
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
        yield wrong("spec", shown, IMMUTABLE)


def attachment_problems(attachment: Untyped) -> Iterator[Cause]:
    spec = attachment.get("spec", {})
    for name in ("attacher", "nodeName"):
        if not spec.get(name):
            yield required(f"spec.{name}")
    if not spec.get("source"):
        yield required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
