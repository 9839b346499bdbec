"""Work contents: the objects of a Work, as a snapshot holds them and as the hub's cache keeps them.

A placement has one Work for each snapshot of a revision. Manifests are kept as bytes, encoded once for however many
clusters. Overrides will change them, and envelopes add parts of their own, between here and `desired_works`.

A hub with tens of thousands of Works keeps little of each: a digest of its manifests, which shows whether they are the
wanted ones, and of its status only what failed, since the Work's own conditions say the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, Condition, find_condition
from kedge.api.fleet import NUMBER_OF_SNAPSHOTS, resource_snapshot_part
from kedge.api.meta import ObjectMeta
from kedge.api.reasons import APPLIED, AVAILABLE, PREPARING
from kedge.api.work import ManifestCondition, Work, Workload, WorkStatus
from kedge.plan.digest import digest
from kedge.plan.revisions import parent, resource_index

# Parts of a revision


class RevisionPart(Struct, frozen=True):
    """The manifests of one snapshot."""

    manifests: Raw | None
    """The list of them, in JSON; None if there are none: then the Work has no `manifests`."""
    digest: str

    @property
    def size(self) -> int:
        """In bytes."""
        return len(bytes(self.manifests)) if self.manifests is not None else 0


class RevisionContents(Struct, frozen=True):
    """All manifests of one revision."""

    name: str
    """The snapshot a binding names: the first of them."""
    index: str
    parts: tuple[RevisionPart, ...]


def revision_part(manifests: Sequence[Mapping[str, Any]]) -> RevisionPart:
    """The part with these manifests."""
    return RevisionPart(Raw(msgspec.json.encode(manifests)) if manifests else None, digest(manifests))


def further_parts(master: ObjectMeta) -> tuple[str, ...]:
    """The names of the snapshots that hold the rest of a revision. Raises ValueError if its first
    snapshot is invalid.
    """
    index, number_of_parts = resource_index(master), master.annotations.get(NUMBER_OF_SNAPSHOTS, "1")
    if index is None:
        raise ValueError(f"snapshot {master.name} does not say its index")
    if not number_of_parts.isdecimal() or int(number_of_parts) < 1:
        raise ValueError(
            f"snapshot {master.name} says it comes in {number_of_parts!r} parts, which is no number of parts"
        )
    return tuple(resource_snapshot_part(parent(master), index, number) for number in range(int(number_of_parts) - 1))


# Works in the cache


_DIGEST: Final = "digest"


def compacted(work: Work) -> Work:
    """The Work with a digest in place of its manifests, and only failed manifest conditions."""
    workload = Workload(manifests=({_DIGEST: digest(work.spec.workload.manifests)},))
    failed = tuple(
        replace(found, drift_details=None, diff_details=None, back_reported_status=None)
        for found in work.status.manifest_conditions
        if failed_condition(found) is not None
    )
    status = WorkStatus(conditions=work.status.conditions, manifest_conditions=failed)
    return replace(work, spec=replace(work.spec, workload=workload), status=status)


def compacted_digest(work: Work) -> str:
    """The digest of the manifests of a compacted Work."""
    found: str = work.spec.workload.manifests[0][_DIGEST]
    return found


def failed_condition(found: ManifestCondition) -> Condition | None:
    """The condition of one object that failed; None if none did, or nothing was tried yet."""
    for kind in (APPLIED, AVAILABLE):
        condition = find_condition(found.conditions, kind)
        if condition is not None and condition.status == FALSE:
            return condition if condition.reason != PREPARING else None
    return None
