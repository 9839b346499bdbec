"""Manifests: what a Work asks for, object by object, as far as it can be understood.

    read = understand(work.spec.workload.manifests, kinds.lookup)

Promises a `Placed` for every manifest that can be written, holding only what is the hub's to say, and a `Misread` with
the reason for every other. The order, and with it the ordinal, is the Work's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kedge.api import reasons
from kedge.api.resource import Resource
from kedge.api.work import WorkResourceIdentifier
from kedge.plan.digest import digest

Manifest: TypeAlias = Mapping[str, Any]
Lookup: TypeAlias = Callable[[str, str, str], Resource | None]
"""The resource of a group, version and kind, as the member serves it; None if it does not."""

_OURS_TO_SAY: Final = ("name", "namespace", "labels", "annotations", "finalizers")


class Identity(Struct, frozen=True, cache_hash=True):
    """One object of a cluster, whatever the version in which it is spoken of."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Placed(Struct, frozen=True):
    """An object to write: what it is to say, and where it lives."""

    identifier: WorkResourceIdentifier
    resource: Resource
    manifest: Manifest
    digest: str

    @property
    def identity(self) -> Identity:
        return identity_of(self.identifier)

    @property
    def namespace(self) -> str | None:
        return self.identifier.namespace or None

    @property
    def name(self) -> str:
        return self.identifier.name


class Misread(Struct, frozen=True):
    """A manifest that cannot be written, and why. `unknown` if the member does not serve its kind (yet)."""

    identifier: WorkResourceIdentifier
    reason: str
    message: str
    unknown: bool = False

    @property
    def identity(self) -> Identity:
        return identity_of(self.identifier)

    @property
    def means_any(self) -> bool:
        """Whether it cannot be told which object is meant: it may be any of those that seem to be left over."""
        return not (self.identifier.kind and self.identifier.name)


def identity_of(identifier: WorkResourceIdentifier) -> Identity:
    """Which object an identifier means."""
    return Identity(identifier.group, identifier.kind, identifier.namespace, identifier.name)


def understand(manifests: Iterable[Manifest], lookup: Lookup) -> tuple[Placed | Misread, ...]:
    """Every manifest of a Work, in order. The second of two that mean the same object is a duplicate."""
    seen: set[Identity] = set()
    found: list[Placed | Misread] = []
    for ordinal, manifest in enumerate(manifests):
        read = _understand(ordinal, manifest, lookup)
        if isinstance(read, Placed):
            if read.identity in seen:
                read = Misread(read.identifier, reasons.DUPLICATED, _duplicated(read.identity))
            seen.add(read.identity)
        found.append(read)
    return tuple(found)


def _understand(ordinal: int, manifest: Manifest, lookup: Lookup) -> Placed | Misread:
    identifier = _identifier(ordinal, manifest)
    if problem := _problem(manifest, identifier):
        return problem
    resource = lookup(identifier.group, identifier.version, identifier.kind)
    if resource is None:
        return Misread(identifier, reasons.DECODING_ERRED, not_served(identifier), unknown=True)
    if resource.namespaced and not identifier.namespace:
        message = f"{identifier.kind} {identifier.name} says no metadata.namespace, which its kind needs"
        return Misread(identifier, reasons.DECODING_ERRED, message)
    full = _identifier(ordinal, manifest, resource)
    kept = _kept(manifest, resource)
    return Placed(full, resource, kept, digest(kept))


def _problem(manifest: Manifest, identifier: WorkResourceIdentifier) -> Misread | None:
    if not identifier.version or not identifier.kind:
        message = f"manifest {identifier.ordinal} has no apiVersion or no kind: it cannot be told what it is"
        return Misread(identifier, reasons.DECODING_ERRED, message)
    if identifier.name:
        return None
    if _metadata(manifest).get("generateName"):
        message = f"{identifier.kind} has a generateName, which would be another object each time: give it a name"
        return Misread(identifier, reasons.GENERATE_NAME, message)
    return Misread(identifier, reasons.DECODING_ERRED, f"{identifier.kind} has no metadata.name")


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


def _kept(manifest: Manifest, resource: Resource) -> Manifest:
    """What the hub has to say of the object: nothing the member says itself, and no owners it does not have there."""
    told = _OURS_TO_SAY if resource.namespaced else tuple(name for name in _OURS_TO_SAY if name != "namespace")
    metadata = _metadata(manifest)
    kept = {name: metadata[name] for name in told if metadata.get(name)}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": kept}


def _metadata(manifest: Manifest) -> Manifest:
    found = manifest.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _text(values: Manifest, name: str) -> str:
    found = values.get(name)
    return found if isinstance(found, str) else ""


def not_served(identifier: WorkResourceIdentifier) -> str:
    """What is said of an object of a kind that the member does not know, or no longer."""
    named = f"{identifier.group}/{identifier.version}" if identifier.group else identifier.version
    return f"the member serves no {identifier.kind} of {named}: install its definition there, or place it as well"


def _duplicated(identity: Identity) -> str:
    return f"{identity} is there twice: the first counts, remove the other"
