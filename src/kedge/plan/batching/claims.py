"""Claims: which rollout moves a workload. Only one can, and it says so in an annotation of the workload.

An owner reference would say so as well, but whoever deletes the owner by force would delete the workload with it.
"""

from __future__ import annotations

from typing import Any

from kedge.api.oam.keys import CLAIM
from kedge.plan.batching.moves import Step, Workload, WorkloadRef, Write
from kedge.plan.batching.waits import BatchCode
from kedge.plan.fields import Object, at, text
from kedge.plan.moving.wait import Blocker, Wait


def claim_text(kind: str, name: str, uid: str) -> str:
    """What the annotation says."""
    return f"{kind}/{name}/{uid}"


def claim_of(obj: Object) -> str:
    """Who claims a workload; empty if nobody does."""
    return text(obj, "metadata", "annotations", CLAIM)


def claim_problem(workload: Workload, claim: str) -> Step | None:
    """Why a rollout may not take this workload: another does, or a controller owns it. None if it may."""
    assert workload.obj is not None
    held = claim_of(workload.obj)
    if held and held != claim:
        kind, _, rest = held.partition("/")
        return Step(wait=Wait(str(workload.ref), BatchCode.claimed, {}, (Blocker(f"{kind} {rest.partition('/')[0]}"),)))
    if owner := controller_name(workload.obj):
        return Step(failure=f"{workload.ref} has a controller owner: {owner}")
    return None


def controller_name(obj: Object) -> str:
    """Whom the object's owner reference names as its controller; empty if nobody."""
    owners = at(obj, "metadata", "ownerReferences")
    found = [one for one in owners if at(one, "controller") is True] if isinstance(owners, list) else []
    return f"{text(found[0], 'kind')} {text(found[0], 'name')}" if found else ""


def patched(workload: Workload, patch: dict[str, Any], *, takes_away: bool = False) -> Write:
    """A patch of a workload, in the version that was observed."""
    assert workload.obj is not None
    return Write(
        workload.ref,
        patch=patch,
        uid=text(workload.obj, "metadata", "uid"),
        resource_version=text(workload.obj, "metadata", "resourceVersion"),
        takes_away=takes_away,
    )


def with_claim(claim: str | None) -> dict[str, Any]:
    """The patch that sets or removes the annotation."""
    return {"metadata": {"annotations": {CLAIM: claim}}}


def release(workload: Workload) -> tuple[Write, ...]:
    """The write that removes the claim, if there is one."""
    if workload.obj is None or not claim_of(workload.obj):
        return ()
    return (patched(workload, with_claim(None)),)


def missing(ref: WorkloadRef) -> Step:
    """A workload that is not there."""
    return Step(wait=Wait(str(ref), BatchCode.missing))
