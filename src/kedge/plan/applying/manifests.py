"""Manifests: what a Work asks for, object by object, and in which order the objects are written.

    read = read_manifests(work.spec.workload.manifests, kinds.lookup)

Promises a `DesiredObject` for every manifest that can be written, with only the fields that the hub sets, and an
`InvalidManifest` with the reason for every other. The order, and with it the ordinal, is the Work's.

Objects that others need are written first. Inside a batch the order is free. A batch starts when those before it are
written, not when they are available (kubefleet.md §4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kedge.api import reasons
from kedge.api.resource import Resource
from kedge.api.work import WorkResourceIdentifier
from kedge.plan.digest import digest
from kedge.plan.text import object_name

Manifest: TypeAlias = Mapping[str, Any]
Lookup: TypeAlias = Callable[[str, str, str], Resource | None]
"""The resource of a group, version and kind, as the member serves it; None if it does not."""

_HUB_METADATA: Final = ("name", "namespace", "labels", "annotations", "finalizers")


class ObjectKey(Struct, frozen=True, cache_hash=True):
    """What identifies one object of a cluster, in whatever version it is read."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return object_name(self.kind, self.namespace, self.name)


class DesiredObject(Struct, frozen=True):
    """An object to write: its manifest, and the resource it is written to."""

    identifier: WorkResourceIdentifier
    resource: Resource
    manifest: Manifest
    digest: str

    @property
    def identity(self) -> ObjectKey:
        return object_key(self.identifier)

    @property
    def namespace(self) -> str | None:
        return self.identifier.namespace or None

    @property
    def name(self) -> str:
        return self.identifier.name


class InvalidManifest(Struct, frozen=True):
    """A manifest that cannot be written, and why. `kind_not_served`: the member does not serve its kind (yet)."""

    identifier: WorkResourceIdentifier
    reason: str
    message: str
    kind_not_served: bool = False

    @property
    def identity(self) -> ObjectKey:
        return object_key(self.identifier)

    @property
    def is_unidentified(self) -> bool:
        """Whether it has no kind or name: it may mean any of the objects that seem to be left over."""
        return not (self.identifier.kind and self.identifier.name)


def object_key(identifier: WorkResourceIdentifier) -> ObjectKey:
    """The key of the object that an identifier names."""
    return ObjectKey(identifier.group, identifier.kind, identifier.namespace, identifier.name)


def read_manifests(manifests: Iterable[Manifest], lookup: Lookup) -> tuple[DesiredObject | InvalidManifest, ...]:
    """Every manifest of a Work, in order. The second of two that mean the same object is a duplicate."""
    seen: set[ObjectKey] = set()
    found: list[DesiredObject | InvalidManifest] = []
    for ordinal, manifest in enumerate(manifests):
        read = _read_manifest(ordinal, manifest, lookup)
        if isinstance(read, DesiredObject):
            if read.identity in seen:
                read = InvalidManifest(read.identifier, reasons.DUPLICATED, _duplicated(read.identity))
            seen.add(read.identity)
        found.append(read)
    return tuple(found)


def _read_manifest(ordinal: int, manifest: Manifest, lookup: Lookup) -> DesiredObject | InvalidManifest:
    identifier = _identifier(ordinal, manifest)
    if problem := _problem(manifest, identifier):
        return problem
    resource = lookup(identifier.group, identifier.version, identifier.kind)
    if resource is None:
        return InvalidManifest(identifier, reasons.DECODING_ERRED, not_served(identifier), kind_not_served=True)
    if resource.namespaced and not identifier.namespace:
        message = f"{identifier.kind} {identifier.name} says no metadata.namespace, which its kind needs"
        return InvalidManifest(identifier, reasons.DECODING_ERRED, message)
    full = _identifier(ordinal, manifest, resource)
    kept = _hub_fields(manifest, resource)
    return DesiredObject(full, resource, kept, digest(kept))


def _problem(manifest: Manifest, identifier: WorkResourceIdentifier) -> InvalidManifest | None:
    if not identifier.version or not identifier.kind:
        message = f"manifest {identifier.ordinal} has no apiVersion or no kind: it cannot be told what it is"
        return InvalidManifest(identifier, reasons.DECODING_ERRED, message)
    if identifier.name:
        return None
    if _metadata(manifest).get("generateName"):
        message = f"{identifier.kind} has a generateName, which would be another object each time: give it a name"
        return InvalidManifest(identifier, reasons.GENERATE_NAME, message)
    return InvalidManifest(identifier, reasons.DECODING_ERRED, f"{identifier.kind} has no metadata.name")


def _identifier(ordinal: int, manifest: Manifest, resource: Resource | None = None) -> WorkResourceIdentifier:
    group, _, version = _text(manifest, "apiVersion").rpartition("/")
    metadata = _metadata(manifest)
    return WorkResourceIdentifier(
        ordinal=ordinal,
        group=group,
        version=version,
        kind=_text(manifest, "kind"),
        resource=resource.plural if resource else "",
        namespace=_text(metadata, "namespace") if resource is None or resource.namespaced else "",
        name=_text(metadata, "name"),
    )


def _hub_fields(manifest: Manifest, resource: Resource) -> Manifest:
    """The fields that the hub sets: no status, no server metadata, no owners of the hub."""
    names = _HUB_METADATA if resource.namespaced else tuple(name for name in _HUB_METADATA if name != "namespace")
    metadata = _metadata(manifest)
    kept_metadata = {name: metadata[name] for name in names if metadata.get(name)}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": kept_metadata}


def _metadata(manifest: Manifest) -> Manifest:
    found = manifest.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _text(values: Manifest, name: str) -> str:
    found = values.get(name)
    return found if isinstance(found, str) else ""


def not_served(identifier: WorkResourceIdentifier) -> str:
    """The message for an object of a kind that the member does not serve, or no longer serves."""
    named = f"{identifier.group}/{identifier.version}" if identifier.group else identifier.version
    return f"the member serves no {identifier.kind} of {named}: install its definition there, or place it as well"


def _duplicated(identity: ObjectKey) -> str:
    return f"{identity} is there twice: the first counts, remove the other"


# Order


_BATCHES: Final[tuple[tuple[str, ...], ...]] = (
    ("namespaces", "priorityclasses"),
    (
        "networkpolicies",
        "resourcequotas",
        "limitranges",
        "podsecuritypolicies",
        "poddisruptionbudgets",
        "serviceaccounts",
        "secrets",
        "configmaps",
        "storageclasses",
        "persistentvolumes",
        "persistentvolumeclaims",
        "customresourcedefinitions",
        "ingressclasses",
    ),
    ("clusterroles", "roles"),
    ("clusterrolebindings", "rolebindings"),
    (
        "services",
        "daemonsets",
        "pods",
        "replicationcontrollers",
        "replicasets",
        "deployments",
        "horizontalpodautoscalers",
        "statefulsets",
        "jobs",
        "cronjobs",
        "ingresses",
    ),
    ("apiservices", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
)
LAST_BATCH: Final = 999
_BATCH_OF: Final = {plural: number for number, plurals in enumerate(_BATCHES) for plural in plurals}


def batch_of(plural: str) -> int:
    """The batch of a kind, by its plural; unknown kinds come last."""
    return _BATCH_OF.get(plural, LAST_BATCH)


def apply_batches(objects: Iterable[DesiredObject]) -> list[tuple[DesiredObject, ...]]:
    """The objects in batches; inside a batch, in the order of the Work."""
    ordered = sorted(objects, key=_batch)
    return [tuple(batch) for _, batch in groupby(ordered, key=_batch)]


def _batch(desired: DesiredObject) -> int:
    return batch_of(desired.resource.plural)
