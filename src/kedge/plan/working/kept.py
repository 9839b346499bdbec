"""Kept: what a hub with tens of thousands of Works keeps in memory of each.

Of its objects a digest, which tells whether they are the wanted ones; of its status what went wrong, since what went
well is all said by the Work's own conditions.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kedge.api.condition import FALSE, Condition, find_condition
from kedge.api.reasons import APPLIED, AVAILABLE, PREPARING
from kedge.api.work import ManifestCondition, Work, Workload, WorkStatus
from kedge.plan.digest import digest

_DIGEST: Final = "digest"


def kept(work: Work) -> Work:
    """The Work with a digest in the place of its objects, and of their statuses only the failures."""
    workload = Workload(manifests=({_DIGEST: digest(work.spec.workload.manifests)},))
    failed = tuple(
        replace(found, drift_details=None, diff_details=None, back_reported_status=None)
        for found in work.status.manifest_conditions
        if failure(found) is not None
    )
    status = WorkStatus(conditions=work.status.conditions, manifest_conditions=failed)
    return replace(work, spec=replace(work.spec, workload=workload), status=status)


def digest_of(work: Work) -> str:
    """The digest of the objects of a Work that was kept."""
    found: str = work.spec.workload.manifests[0][_DIGEST]
    return found


def failure(found: ManifestCondition) -> Condition | None:
    """What is wrong with one object; None if nothing is, or nothing was tried yet."""
    for kind in (APPLIED, AVAILABLE):
        condition = find_condition(found.conditions, kind)
        if condition is not None and condition.status == FALSE:
            return condition if condition.reason != PREPARING else None
    return None
