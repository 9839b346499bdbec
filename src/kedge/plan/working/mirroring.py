"""Mirroring: which of the statuses that a member reports may be shown on the originals on the hub.

    found = mirrored(placement, binding, work, placed)      # `placed`: what the binding's resource snapshot holds

A member is not trusted. What it reports is data about objects that the hub has given to it: the object that it names
must be the manifest at that place in its own Work, and one that the hub has put there, by the snapshot that the binding
points at; a member can write to its Work, but not to snapshots. Of the fleet's own kinds, and of those whose status the
hub's API server acts on, nothing is shown at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, RESERVED_PREFIXES, member_namespace
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.twins import Binding, Placement
from kedge.api.work import ManifestCondition, Work, WorkResourceIdentifier
from kedge.plan.identifiers import identifiers_of
from kedge.plan.revisions import parent

_NEVER_SHOWN: Final = (
    "kubernetes-fleet.io",
    "kubefleet.dev",
    "kedge.dev",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "certificates.k8s.io",
)
"""API groups, and all that end with one of them after a dot."""
_KINDS_NEVER_SHOWN: Final = frozenset({("", "Namespace"), ("", "ResourceQuota")})


class Mirrored(Struct, frozen=True):
    """The status that an original is to show."""

    original: ResourceIdentifier
    status: Mapping[str, Any]


class Mirroring(Struct, frozen=True):
    """What is shown of a Work's report, and how many statuses in it are of objects that were not placed by it."""

    shown: tuple[Mirrored, ...] = ()
    not_placed: int = 0


def mirrored(placement: Placement, binding: Binding, work: Work, placed: Iterable[ResourceIdentifier]) -> Mirroring:
    """What the report of a Work comes to. The first report of an object counts."""
    statuses = [(one.identifier, _status(one)) for one in work.status.manifest_conditions]
    reported = [(named, status) for named, status in statuses if status is not None]
    if not is_work_of(binding, work):
        return Mirroring(not_placed=len(reported))
    held, allowed = identifiers_of(work.spec.workload.manifests), frozenset(placed)
    shown: dict[ResourceIdentifier, Mapping[str, Any]] = {}
    not_placed = 0
    for named, status in reported:
        original = _held_as(named, held)
        if original is None or original not in allowed:
            not_placed += 1
        elif _may_show(placement, original):
            shown.setdefault(original, status)
    return Mirroring(tuple(Mirrored(original, status) for original, status in shown.items()), not_placed)


def is_work_of(binding: Binding, work: Work) -> bool:
    """Whether a Work is this binding's: by its labels, which a member can write, and by its namespace."""
    meta, labels = binding.metadata, work.metadata.labels
    by_label = (labels.get(PARENT_BINDING), labels.get(PARENT_NAMESPACE), parent(work.metadata))
    is_its_place = work.metadata.namespace == member_namespace(binding.spec.target_cluster)
    return is_its_place and by_label == (meta.name, meta.namespace, parent(meta))


def _status(found: ManifestCondition) -> Mapping[str, Any] | None:
    reported = found.back_reported_status
    status = reported.observed_status.get("status") if reported is not None else None
    return status if isinstance(status, dict) else None


def _held_as(named: WorkResourceIdentifier, held: tuple[ResourceIdentifier, ...]) -> ResourceIdentifier | None:
    """The object that is named, if it is the one at that place in the Work."""
    if not 0 <= named.ordinal < len(held):
        return None
    there = held[named.ordinal]
    said = (named.group, named.version, named.kind, named.namespace or None, named.name)
    return there if said == (there.group, there.version, there.kind, there.namespace, there.name) else None


def _may_show(placement: Placement, original: ResourceIdentifier) -> bool:
    """Whether a member's word may be shown on objects of this kind, in this place."""
    group, namespace = original.group, original.namespace
    if any(group == one or group.endswith(f".{one}") for one in _NEVER_SHOWN):
        return False
    if (group, original.kind) in _KINDS_NEVER_SHOWN or (namespace or "").startswith(RESERVED_PREFIXES):
        return False
    return not placement.resource.namespaced or namespace == placement.metadata.namespace
