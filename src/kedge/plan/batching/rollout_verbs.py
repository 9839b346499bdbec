"""Verbs of rollouts in batches: what pausing, resuming, aborting, retrying and rolling back come to.

    answer = answer_to(RolloutVerb.pause, rollout)

A verb does what it says (exit code 0), finds it done already (0), or refuses, says why and what to do instead (1). Each
is one merge patch of the rollout, so kubectl can do it too. The whole table is in docs/batches.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeAlias

from kedge.api.oam.keys import ABORT, RETRY
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import BatchState, RollingState, SourceRecord
from kedge.api.oam.rollouts import AnyRollout, ApplicationDeployment, AppRollout, Rollout, RolloutTrait
from kedge.plan.batching.moves import WorkloadRef
from kedge.plan.batching.records import is_in_place
from kedge.plan.batching.rollout_story import NOT_NOTICED, is_unnoticed, target_text, tell_rollout
from kedge.plan.batching.states import ENDED
from kedge.plan.text import listed, path_of
from kedge.plan.verbs import VerbAnswer, refused

Patch: TypeAlias = dict[str, Any]
_ALL_BATCHES: Final[Patch] = {"paused": None, "batchPartition": None, "lastBatchToRollout": None}
"""A plan that goes all the way: what held the release back is not to hold back the way back."""


class RolloutVerb(StrEnum):
    """What can be asked of a rollout."""

    pause = "pause"
    resume = "resume"
    abort = "abort"
    retry = "retry"
    rollback = "rollback"


def answer_to(verb: RolloutVerb, rollout: AnyRollout) -> VerbAnswer:
    """What comes of a verb."""
    if rollout.metadata.deletion_timestamp is not None:
        return refused(f"{_name(rollout)} is being deleted")
    match verb:
        case RolloutVerb.pause:
            return _pause(rollout)
        case RolloutVerb.resume:
            return _resume(rollout)
        case RolloutVerb.abort:
            return _abort(rollout)
        case RolloutVerb.retry:
            return _retry(rollout)
        case RolloutVerb.rollback:
            return _rollback(rollout)


def _pause(rollout: AnyRollout) -> VerbAnswer:
    name = _name(rollout)
    if _has_ended(rollout):
        return refused(_ended(rollout))
    if rollout.spec.rollout_plan.paused:
        return VerbAnswer(f"{name} is paused already")
    said = f"{name} is paused: pods that are on their way arrive, and nothing else moves"
    return VerbAnswer(f"{said} until `kedge resume {_typed(rollout)}`", _planned({"paused": True}))


def _resume(rollout: AnyRollout) -> VerbAnswer:
    name, plan = _name(rollout), rollout.spec.rollout_plan
    if _has_ended(rollout):
        return refused(_ended(rollout))
    if plan.paused:
        return VerbAnswer(f"{name} goes on", _planned({"paused": None}))
    status = rollout.status
    is_held = status.batch_rolling_state is BatchState.ready and plan.last_batch is not None
    return VerbAnswer(f"{name} is not paused{f': {status.message}' if is_held and status.message else ''}")


def _abort(rollout: AnyRollout) -> VerbAnswer:
    name = _name(rollout)
    if _has_ended(rollout):
        return refused(_ended(rollout))
    if rollout.metadata.annotations.get(ABORT) == "true":
        return VerbAnswer(f"{name} is aborted already")
    after = f"`kedge retry {_typed(rollout)}` starts it again, `kedge rollback {_typed(rollout)}` goes back"
    return VerbAnswer(f"{name} is aborted: what has moved stays where it is; {after}", _annotated({ABORT: "true"}))


def _retry(rollout: AnyRollout) -> VerbAnswer:
    status = rollout.status
    if status.rolling_state is not RollingState.failed:
        return refused(f"{_name(rollout)} has not failed: {tell_rollout(rollout).word}")
    # The same for everybody who asks after the same failure: it is started again once.
    return VerbAnswer(
        f"{_name(rollout)} starts again from where it is", _annotated({RETRY: f"run-{status.runs + 1}", ABORT: None})
    )


def _has_ended(rollout: AnyRollout) -> bool:
    return rollout.status.rolling_state in ENDED and not is_unnoticed(rollout)


def _ended(rollout: AnyRollout) -> str:
    why = f": {rollout.status.failure}" if rollout.status.failure else ""
    return f"{_name(rollout)} {tell_rollout(rollout).word}{why}; nothing moves any more"


# Rolling back


def _rollback(rollout: AnyRollout) -> VerbAnswer:
    name = _name(rollout)
    if is_unnoticed(rollout):
        return refused(f"{name}: {NOT_NOTICED} Until then it is not known what ran before")
    if any(batch.pod_list for batch in rollout.spec.rollout_plan.rollout_batches or ()):
        return refused(
            f"{name} names the pods of its batches, which are others on the way back: change its plan and its target"
        )
    match rollout:
        case RolloutTrait():
            return _trait_back(rollout)
        case Rollout():
            return _revision_back(rollout, "RevisionName", rollout.spec.target_revision_name, _oldest(rollout))
        case AppRollout():
            app, source = rollout.spec, rollout.status.last_source_app_revision
            return _revision_back(rollout, "AppRevisionName", app.target_app_revision_name, source)
        case ApplicationDeployment():
            return refused(_application_stays(rollout))


def _trait_back(rollout: RolloutTrait) -> VerbAnswer:
    target, status = rollout.spec.target_ref, rollout.status
    others = [one for one in status.sources if (one.kind, one.name) != (target.kind, target.name)]
    is_alone = any(_same(target, one) for one in rollout.spec.source_ref) or _was_in_place(rollout)
    if not others and is_alone:
        return refused(_in_place(rollout))
    before = [one for one in others if one.replicas > 0]
    if not before:
        return refused(
            f"{_name(rollout)}: nothing but {target_text(rollout)} ran before it, so there is nothing to go back to"
        )
    if len(before) > 1:
        ran = listed(f"{one.kind} {one.name}" for one in before)
        return refused(f"{_name(rollout)}: {ran} ran before it: set spec.targetRef to the one that is to run")
    back = before[0]
    spec = {
        "targetRef": {**_reference(back), "uid": None, "resourceVersion": None, "fieldPath": None, "namespace": None},
        "sourceRef": [{"apiVersion": target.api_version, "kind": target.kind, "name": target.name}],
    }
    return _goes_back(rollout, f"{back.kind} {back.name}", spec)


def _was_in_place(rollout: RolloutTrait) -> bool:
    ref = rollout.spec.target_ref
    here = WorkloadRef(ref.api_version, ref.kind, rollout.metadata.namespace or "", ref.name)
    return is_in_place(rollout.status, here)


def _in_place(rollout: RolloutTrait) -> str:
    what = f"{_name(rollout)} changes {target_text(rollout)} in place, so there is no other workload to go back to"
    if rollout.status.rolling_state in ENDED:
        return f"{what}: give it its old pod template again, with a rollout of its own"
    return f"{what}: set revertOnDelete and delete the rollout, and it is taken back in batches"


def _revision_back(rollout: Rollout | AppRollout, field: str, target: str, before: str) -> VerbAnswer:
    ran = rollout.status.sources
    is_back = bool(ran) and (ran[0].revision == target or not any(one.replicas for one in ran))
    if not before or before == target or is_back:
        name, aim = _name(rollout), target_text(rollout)
        return refused(f"{name}: nothing but {aim} ran before it, so there is nothing to go back to")
    return _goes_back(rollout, before, {f"target{field}": before, f"source{field}": target})


def _oldest(rollout: Rollout) -> str:
    """The revision that ran before the first of several rollouts that replaced each other midway."""
    target = rollout.spec.target_revision_name
    ran = [one.revision for one in rollout.status.sources if one.replicas and one.revision not in ("", target)]
    return ran[0] if ran else rollout.status.last_source_revision


def _application_stays(rollout: ApplicationDeployment) -> str:
    before = rollout.status.last_source_application or rollout.spec.source_application_name
    what = f"{_name(rollout)} moves to an Application that nobody has brought in yet"
    if rollout.status.rolling_state in ENDED:
        return f"{what}: to go back, create a copy of Application {before or 'that ran before'} and move to that"
    return f"{what}: set revertOnDelete and delete the rollout, and it is taken back in batches"


def _goes_back(rollout: AnyRollout, to: str, spec: Patch) -> VerbAnswer:
    plan = rollout.spec.rollout_plan
    freed = [
        word
        for word, said in (("paused", plan.paused), ("held by batchPartition", plan.last_batch is not None))
        if said
    ]
    more = f", and is no longer {' or '.join(freed)}" if freed else ""
    patch = {**_annotated({ABORT: None}), "spec": {**spec, "rolloutPlan": _ALL_BATCHES}}
    return VerbAnswer(f"{_name(rollout)} goes back to {to}, in its batches{more}", patch)


def _same(one: ObjectReference, other: ObjectReference) -> bool:
    return (one.api_version, one.kind, one.name) == (other.api_version, other.kind, other.name)


def _reference(one: SourceRecord) -> Patch:
    return {"apiVersion": one.api_version, "kind": one.kind, "name": one.name}


# Words and patches


def _name(rollout: AnyRollout) -> str:
    meta = rollout.metadata
    return f"{rollout.resource.kind} {path_of(meta.namespace, meta.name)}"


def _typed(rollout: AnyRollout) -> str:
    """What to type to name it without doubt."""
    meta = rollout.metadata
    return f"{rollout.resource.kind.lower()}/{meta.name} -n {meta.namespace}"


def _planned(given: Patch) -> Patch:
    return {"spec": {"rolloutPlan": given}}


def _annotated(given: dict[str, str | None]) -> Patch:
    return {"metadata": {"annotations": given}}
