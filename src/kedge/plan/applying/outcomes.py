"""Outcomes: what is reported of one manifest after a pass over its Work."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kedge.api import reasons
from kedge.api.work import BackReportedStatus
from kedge.plan.applying.manifests import DesiredObject, InvalidManifest
from kedge.plan.applying.observed import ObservedObject
from kedge.plan.applying.ownership import Refusal
from kedge.plan.applying.work_status import ApplyResult
from kedge.plan.availability import Verdict

_APPLIED: Final = "it is as the hub wants it"
DISPUTED: Final = "somebody on the member keeps changing it: it is put back, but less and less often"
DELETED_AGAIN: Final = "somebody on the member keeps deleting it"


def applied(
    placed: DesiredObject,
    uid: str,
    generation: int,
    verdict: Verdict,
    *,
    back_reported: BackReportedStatus | None = None,
    disputed_until: float | None = None,
) -> ApplyResult:
    """It is as the hub wants it. `disputed_until`: seconds until the next look, if somebody keeps changing it."""
    return ApplyResult(
        identifier=placed.identifier,
        applied=True,
        reason=reasons.MANIFEST_APPLIED,
        message=_APPLIED if disputed_until is None else DISPUTED,
        uid=uid,
        generation=generation,
        verdict=verdict,
        back_reported=back_reported,
        retry_after=disputed_until,
    )


def not_applied(
    one: DesiredObject | InvalidManifest, why: Refusal, shown: ObservedObject | None = None, *, retry: bool = True
) -> ApplyResult:
    """It is not as the hub wants it, and why. `shown` is what there is instead."""
    return ApplyResult(
        identifier=one.identifier,
        applied=False,
        reason=why.reason,
        message=why.message,
        uid=shown.metadata.uid if shown else "",
        generation=shown.metadata.generation if shown else None,
        retry=retry,
        unsure=why.unsure,
    )


def misread(one: InvalidManifest) -> ApplyResult:
    """It is no manifest that the member understands."""
    return not_applied(one, Refusal(one.reason, one.message), retry=one.kind_not_served)


def back_reported(obj: Mapping[str, Any], now: datetime) -> BackReportedStatus | None:
    """The status of an object, as it goes back to the hub; None if it has none."""
    if not obj.get("status"):
        return None
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace", "generation") if name in obj["metadata"]}
    status = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": obj["status"]}
    return BackReportedStatus(observation_time=now.replace(microsecond=0), observed_status=status)
