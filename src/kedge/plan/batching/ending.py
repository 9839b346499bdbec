"""Ending: how a rollout ends, whether it succeeded, failed, was replaced by another, or is being deleted.

What it changed beside the workloads is given back first, and the workloads last. Nothing that is gone already keeps a
rollout from ending.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.batches import back
from kedge.plan.batching.claims import patched
from kedge.plan.batching.gates import (
    applications_released,
    autoscalers_given_back,
    final_hooks,
    services_given_back,
    traffic,
    traffic_restored,
)
from kedge.plan.batching.moves import Batch, Step, Workload, Write
from kedge.plan.batching.records import with_old_target
from kedge.plan.batching.states import RolloutEvent, has_moved
from kedge.plan.batching.steps import Act, BatchRolloutInput, Move, Next, Note, holding
from kedge.plan.batching.traffic import remembered_ref
from kedge.plan.fields import at, text, whole


def finalising(seen: BatchRolloutInput, now: datetime) -> Next:
    """After the last batch."""
    done = replace(
        seen.status,
        remembered=(),
        last_applied_pod_template_identifier=seen.status.target_generation,
        desired_size=0,
    )
    return (
        autoscalers_given_back(seen, succeeded=True)
        or services_given_back(seen)
        or _released(seen, succeeded=True)
        or applications_released(seen, succeeded=True)
        or final_hooks(seen, now)
        or Move(RolloutEvent.finalized, done)
    )


def failing(seen: BatchRolloutInput, now: datetime) -> Next:
    """After a failure: what has moved stays where it is, and what was before is still known when it begins anew."""
    return _given_back(seen, now, _with_target_recorded(seen))


def abandoning(seen: BatchRolloutInput, now: datetime) -> Next:
    """The next rollout begins where this one got to: its target is one of the old revisions."""
    return _given_back(seen, now, _with_target_recorded(seen))


def _with_target_recorded(seen: BatchRolloutInput) -> RolloutStatus:
    """Without a recorded target nothing else is recorded: then all that runs is found when it begins anew."""
    if seen.workloads is None or seen.status.target_workload is None:
        return seen.status
    return with_old_target(seen.status, seen.workloads.target)


def deleting(seen: BatchRolloutInput, now: datetime) -> Next:
    """Taken back first, if that was asked for."""
    reverts = seen.plan.revert_on_delete and bool(seen.status.batches)
    reverted = reverts or not has_moved(seen.status)
    # Then there is nothing left to take back.
    done = replace(seen.status, batches=(), current_batch=0, upgraded_replicas=0) if reverts else seen.status
    taken_back = _reverted(seen, now) if reverts else None
    return taken_back or disowned(seen) or _given_back(seen, now, done, reverted=reverted)


def disowned(seen: BatchRolloutInput) -> Next | None:
    """Workloads with pods do not go with a rollout that did not succeed. Those without pods that it owns may."""
    if seen.workloads is None:
        return None
    uid, every = seen.identity.uid, (seen.workloads.target, *seen.workloads.sources)
    writes = {one.ref: write for one in every if one.obj is not None and (write := _without_owner(one, uid))}
    return Act(tuple(writes.values())) if writes else None


def _without_owner(workload: Workload, uid: str) -> Write | None:
    found = at(workload.obj, "metadata", "ownerReferences")
    owners = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    kept = [one for one in owners if text(one, "uid") != uid]
    if len(kept) == len(owners) or whole(workload.obj or {}, "spec", "replicas") == 0:
        return None
    (write,) = patched(workload, {"metadata": {"ownerReferences": kept}}).writes
    return write


def _reverted(seen: BatchRolloutInput, now: datetime) -> Next | None:
    if seen.workloads is None or seen.moves is None:
        return None
    batch = back(seen.plan, seen.status, is_scale=seen.is_scale)
    found = seen.moves.revert(seen.workloads, seen.status, batch)
    if found.failure and found.failure != seen.status.failure:
        return Note(replace(seen.status, failure=found.failure), (found.failure,))
    if (shifted := _traffic_back(seen, found, batch, now)) is not None:
        return shifted
    return _done(found)


def _traffic_back(seen: BatchRolloutInput, found: Step, batch: Batch, now: datetime) -> Next | None:
    """Traffic leaves the pods of the target before they go, if it was led there."""
    assert seen.workloads is not None
    if remembered_ref(seen.status) is None:
        return None
    lowered = [write for write in found.writes if write.takes_away and write.ref == seen.workloads.target.ref]
    left = whole(lowered[0].patch or {}, "spec", "replicas") if lowered else None
    return traffic(seen, left, batch, now) if left is not None and not seen.is_scale else None


def _given_back(seen: BatchRolloutInput, now: datetime, done: RolloutStatus, *, reverted: bool = False) -> Next:
    return (
        traffic_restored(seen, now)
        or autoscalers_given_back(seen, succeeded=False)
        or services_given_back(seen)
        or _released(seen, succeeded=False)
        or applications_released(seen, succeeded=False, reverted=reverted)
        or final_hooks(seen, now)
        or Move(RolloutEvent.finalized, replace(done, remembered=()))
    )


def _released(seen: BatchRolloutInput, *, succeeded: bool) -> Next | None:
    if seen.workloads is None or seen.moves is None:
        return None
    return _done(seen.moves.finalize(seen.workloads, seen.status, succeeded=succeeded))


def _done(found: Step) -> Next | None:
    """A failure does not keep a rollout from ending."""
    if found.writes:
        return Act(found.writes)
    return holding(found.wait) if found.wait is not None else None
