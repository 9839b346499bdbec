"""Report back: which of the statuses that a member reports are shown on the originals on the hub.

    found = reported_statuses(placement, binding, work, placed)      # `placed`: what the binding's snapshot holds

A member is not trusted. What it reports is data about objects that the hub has given to it. The object that it names
must be the manifest at that ordinal in its own Work, and must be in the snapshot of the binding: a member can write to
its Work, but not to snapshots. Statuses of the fleet's own kinds, and of kinds whose status the hub's API server acts
on, are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, RESERVED_PREFIXES, member_namespace
from kedge.api.placement_kinds import Binding, Placement
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.work import ManifestCondition, Work, WorkResourceIdentifier
from kedge.plan.identifiers import identifiers_of
from kedge.plan.revisions import parent

_GROUPS_NEVER_SHOWN: Final = (
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


class ReportedStatus(Struct, frozen=True):
    """A status to show on an original."""

    original: ResourceIdentifier
    status: Mapping[str, Any]


class ReportedStatuses(Struct, frozen=True):
    """The statuses of a Work that are shown, and how many are of objects that were not placed by it."""

    shown: tuple[ReportedStatus, ...] = ()
    not_placed: int = 0


def reported_statuses(
    placement: Placement, binding: Binding, work: Work, placed: Iterable[ResourceIdentifier]
) -> ReportedStatuses:
    """The statuses that a Work reports. The first report of an object counts."""
    statuses = [(one.identifier, _status(one)) for one in work.status.manifest_conditions]
    reported = [(identifier, status) for identifier, status in statuses if status is not None]
    if not is_work_of(binding, work):
        return ReportedStatuses(not_placed=len(reported))
    manifests, allowed = identifiers_of(work.spec.workload.manifests), frozenset(placed)
    shown: dict[ResourceIdentifier, Mapping[str, Any]] = {}
    not_placed = 0
    for identifier, status in reported:
        original = _manifest_at_ordinal(identifier, manifests)
        if original is None or original not in allowed:
            not_placed += 1
        elif _may_show(placement, original):
            shown.setdefault(original, status)
    return ReportedStatuses(tuple(ReportedStatus(original, status) for original, status in shown.items()), not_placed)


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


def _manifest_at_ordinal(
    identifier: WorkResourceIdentifier, manifests: tuple[ResourceIdentifier, ...]
) -> ResourceIdentifier | None:
    """The object with this identifier, if it is the one at its ordinal in the Work."""
    if not 0 <= identifier.ordinal < len(manifests):
        return None
    there = manifests[identifier.ordinal]
    reported_key = (
        identifier.group,
        identifier.version,
        identifier.kind,
        identifier.namespace or None,
        identifier.name,
    )
    return there if reported_key == (there.group, there.version, there.kind, there.namespace, there.name) else None


def _may_show(placement: Placement, original: ResourceIdentifier) -> bool:
    """Whether a reported status may be shown on objects of this kind and namespace."""
    group, namespace = original.group, original.namespace
    if any(group == one or group.endswith(f".{one}") for one in _GROUPS_NEVER_SHOWN):
        return False
    if (group, original.kind) in _KINDS_NEVER_SHOWN or (namespace or "").startswith(RESERVED_PREFIXES):
        return False
    return not placement.resource.namespaced or namespace == placement.metadata.namespace
