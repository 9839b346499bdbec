"""Claims: who moves a workload, what is remembered of it for the end, and whether it can be moved at all.

One rollout moves a workload at a time: it writes its name to an annotation, in the same write that freezes the
workload. The strategy that the workload had is remembered in another annotation, until the rollout gives it back.
After a failure it is kept there, so that the next rollout does not take the frozen state for the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import CLAIM, CORE, FROZEN, LEFT, STANDARD
from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.api.pods import Pod
from kedge.plan.batching.in_place import old_revision
from kedge.plan.batching.moves import Step, Workload, Workloads, Write
from kedge.plan.batching.waits import MoveCode
from kedge.plan.fields import Object, at, changed, count, group_of, is_observed, merged, replacement, text, whole
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.workloads import Strategy, WorkloadHandler, template_hash
from kedge.plan.workloads.handler import desired_replicas, held_replicas, is_paused

_OAM: Final = (CORE, STANDARD)


class Frozen(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a workload that was frozen."""

    strategy: Strategy = Strategy()
    """How it replaced its pods before."""
    written: str = ""
    """The hash of the template that was written with it."""
    revision: str = ""
    """The ControllerRevision that its pods were of before."""
    created_by: str = ""
    """The rollout that created the workload; empty if it was there before."""


def waiting(workload: Workload, code: str, *blockers: Blocker, **numbers: int) -> Step:
    """A step that waits for something of a workload."""
    return Step(wait=Wait(str(workload.ref), code, numbers, blockers))


def patched(workload: Workload, *patches: Mapping[str, Any], takes_away: bool = False) -> Step:
    """A step that writes what the patches change, all in one write; done if they change nothing."""
    obj = workload.obj or {}
    patch = changed(obj, merged({}, *patches))
    if not patch:
        return Step()
    uid, version = text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
    return Step((Write(workload.ref, patch, uid=uid, resource_version=version, takes_away=takes_away),))


def annotation_patch(**values: str | None) -> dict[str, Any]:
    """The patch of annotations: `claim` and `frozen`; None removes one."""
    names = {"claim": CLAIM, "frozen": FROZEN}
    return {"metadata": {"annotations": {names[name]: value for name, value in values.items()}}}


def not_steady(workload: Workload) -> Step | None:
    """Why nothing can be said of a workload now: it is not there, or goes, or its status is of before a change."""
    if workload.obj is None:
        return waiting(workload, MoveCode.not_found)
    if at(workload.obj, "metadata", "deletionTimestamp") is not None:
        return waiting(workload, MoveCode.leaving)
    return None if is_observed(workload.obj) else waiting(workload, MoveCode.not_observed)


def still_scaling(workload: Workload, desired: int) -> Step | None:
    """Whether it has another number of pods than it asks for."""
    pods = count(workload.obj or {}, "status", "replicas")
    return None if pods == desired else waiting(workload, MoveCode.scaling, pods=pods, desired=desired)


# What is paused


def unreported(workload: Workload) -> Step | None:
    """Whether it is not known yet how many pods one has that is paused."""
    obj = workload.obj or {}
    if not is_paused(obj) or is_observed(obj) or not desired_replicas(obj):
        return None
    return waiting(workload, MoveCode.not_observed)


def resumed(handler: WorkloadHandler, workload: Workload) -> dict[str, Any]:
    """The patch after which it makes pods again, and at first no more than it has: a batch says how many more."""
    obj = workload.obj or {}
    held = held_replicas(obj, handler.replicas(obj).desired)
    return merged({"spec": {"paused": None}}, handler.scale(held) or {})


# Whose it is


def claimed_by(workload: Workload) -> str:
    """The rollout that moves it now; empty if none does."""
    return text(workload.obj, "metadata", "annotations", CLAIM)


def claimed_by_other(workload: Workload, claim: str) -> Step | None:
    """Whether another rollout moves it now."""
    other = claimed_by(workload)
    return waiting(workload, MoveCode.claimed, Blocker(other)) if other and claim and other != claim else None


def is_claimed(workload: Workload, claim: str) -> bool:
    """Whether the rollout that asks has claimed it, and may let go of it."""
    return bool(claimed_by(workload)) and claimed_by(workload) == claim


def is_ours(workload: Workload, claim: str) -> bool:
    """Whether it is as the rollout that asks left it: nobody has moved it since."""
    left = not claimed_by(workload) and text(workload.obj, "metadata", "annotations", LEFT) == claim != ""
    return is_claimed(workload, claim) or left


def owner_problem(workload: Workload, claim: str) -> str:
    """Whether somebody controls the workload who would write its spec back. OAM's own kinds leave it to a rollout."""
    owners = at(workload.obj, "metadata", "ownerReferences")
    uid = claim.rpartition("/")[2]
    for owner in owners if isinstance(owners, list) else ():
        is_ours = group_of(owner) in _OAM or (uid and text(owner, "uid") == uid)
        if at(owner, "controller") is True and not is_ours:
            return f"{workload.ref} has a controller owner: {text(owner, 'kind')} {text(owner, 'name')}"
    return ""


def can_move(workload: Workload, claim: str) -> Step | None:
    """Who stands in the way of moving a workload: its controller, or another rollout."""
    if problem := owner_problem(workload, claim):
        return Step(failure=problem)
    return claimed_by_other(workload, claim)


def can_begin(seen: Workloads) -> Step | None:
    """What stands in the way of moving the target at all."""
    return not_steady(seen.target) or can_move(seen.target, seen.claim)


def size_problem(kind: str, plan: RolloutPlan, size: int) -> str:
    """Whether a plan asks for another size of a workload that is changed in place."""
    if plan.target_size is None or plan.target_size == size:
        return ""
    name = kind.lower()
    return f"the rollout plan is attempting to scale the {name}, target = {plan.target_size}, {name} size = {size}"


# What is remembered, and which template is wanted


def frozen_record(workload: Workload) -> Frozen | None:
    """What is remembered of a workload that is frozen; None if it is not, or nobody can read it."""
    found = text(workload.obj, "metadata", "annotations", FROZEN)
    try:
        return msgspec.json.decode(found, type=Frozen) if found else None
    except msgspec.DecodeError:
        return None


def remembered(handler: WorkloadHandler, workload: Workload, written: str) -> str:
    """What to remember: strategy and revision from before it was frozen first, and the template that is written now."""
    before = frozen_record(workload) or Frozen(handler.strategy(workload.obj or {}), revision=old_revision(workload))
    return _encoded(replace(before, written=written))


def remembered_of_new(handler: WorkloadHandler, manifest: Object, claim: str) -> str:
    """What to remember of a workload that is created frozen: its own strategy, and which rollout created it."""
    strategy, written = handler.strategy(manifest), template_hash(handler.template(manifest))
    return _encoded(Frozen(strategy, written, created_by=claim))


def _encoded(record: Frozen) -> str:
    return msgspec.json.encode(record).decode()


def wanted_hash(handler: WorkloadHandler, workload: Workload) -> str:
    """The hash of the template that the workload is to have."""
    wanted = workload.manifest if workload.manifest is not None else workload.obj
    return template_hash(handler.template(wanted or {}))


def has_template(handler: WorkloadHandler, workload: Workload, manifest: Object | None, claim: str) -> bool:
    """Whether the template of a manifest is there already.

    A server may fill in what no table knows, so that the hash of what it stored is another one: then it counts that
    this rollout wrote it.
    """
    if manifest is None:
        return True
    wanted = template_hash(handler.template(manifest))
    if template_hash(handler.template(workload.obj or {})) == wanted:
        return True
    record = frozen_record(workload)
    return record is not None and record.written == wanted and bool(claim) and claimed_by(workload) == claim


def write_frozen(handler: WorkloadHandler, target: Workload, manifest: Object, claim: str) -> Step:
    """The template of a manifest and what keeps every pod back, in one write: no pod moves in between."""
    obj = target.obj or {}
    record = remembered(handler, target, template_hash(handler.template(manifest)))
    notes = annotation_patch(claim=claim, frozen=record)
    return patched(target, _revision_patch(obj, manifest), notes, handler.freeze(obj))


def _revision_patch(obj: Object, manifest: Object) -> dict[str, Any]:
    """The patch that gives an object the template of a revision, and its labels and annotations."""
    template = at(manifest, "spec", "template") or {}
    spec: dict[str, Any] = {"template": replacement(at(obj, "spec", "template") or {}, template)}
    if whole(manifest, "spec", "minReadySeconds") is not None:
        spec["minReadySeconds"] = whole(manifest, "spec", "minReadySeconds")
    notes = {name: at(manifest, "metadata", name) or {} for name in ("labels", "annotations")}
    return {"metadata": notes, "spec": spec}


def pod_identity(pod: Pod) -> ObjectMeta:
    """What tells one pod from another of the same name, in the version that was observed."""
    meta = pod.metadata
    return ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
