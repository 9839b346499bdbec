"""Records: what each workload of a rollout was before it, so that it can be as before.

If one rollout replaces another midway, what counts is what was before the first of them: its sources stay recorded, and
its target joins them.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.plan.batching.claims import is_ours
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads
from kedge.plan.workloads.handler import desired_replicas, held_replicas

S = TypeVar("S", bound=RolloutStatus)


def with_records(status: S, workloads: Workloads) -> S:
    """The status with what the workloads are now, where nothing is recorded yet."""
    ref = workloads.target.ref
    named = ObjectReference(api_version=ref.api_version, kind=ref.kind, name=ref.name)
    recorded = _in_place(status, workloads) if workloads.in_place else _two_objects(status, workloads)
    return replace(recorded, target_workload=named)


def in_mode(status: S, workloads: Workloads) -> S:
    """The status with what the workloads are now, if it is of another kind of move: in place, or not."""
    is_same = workloads.in_place == _is_recorded(status, workloads.target.ref)
    return status if is_same else with_records(status, workloads)


def at_beginning(status: S, workloads: Workloads) -> S:
    """The status with what the workloads are now that they are about to be moved. Others may have moved them meanwhile.

    What this rollout moved before, and left, stays as it is recorded. So does what is scaled or changed in place.
    """
    status = in_mode(status, workloads)
    if workloads.in_place or workloads.is_scale:
        return status
    others = [one for one in (*workloads.sources, workloads.target) if not is_ours(one, workloads.claim)]
    now = {_key(one.ref): _replicas(one, workloads) for one in others if one.obj is not None}
    sources = tuple(replace(one, replicas=now.get((one.kind, one.name), one.replicas)) for one in status.sources)
    return replace(status, sources=sources, target_before=now.get(_key(workloads.target.ref), status.target_before))


def is_in_place(status: RolloutStatus, target: WorkloadRef) -> bool:
    """Whether a rollout under way changes its target in place: that is its own source, and its size stays.

    One that failed has recorded its target as well, also if it was to scale it.
    """
    return _is_recorded(status, target) and status.rollout_original_size == status.rollout_target_size


def asked_of_all(workloads: Workloads) -> int:
    """How many pods all workloads ask for."""
    found = {one.ref: _replicas(one, workloads) for one in (*workloads.sources, workloads.target)}
    return sum(found.values())


def _is_recorded(status: RolloutStatus, target: WorkloadRef) -> bool:
    return any((one.kind, one.name) == _key(target) for one in status.sources)


def _two_objects(status: S, workloads: Workloads) -> S:
    found = {_key(one.ref): _record(one) for one in workloads.sources}
    known = {(one.kind, one.name): one for one in status.sources}
    merged = {**found, **known}
    known_target = merged.pop(_key(workloads.target.ref), None)
    before = known_target.replicas if known_target is not None else _replicas(workloads.target, workloads)
    return replace(status, sources=tuple(merged.values()), target_before=before)


def _in_place(status: S, workloads: Workloads) -> S:
    """One workload: what tells the old ones apart is their revision. The oldest comes first; one is there."""
    here = _key(workloads.target.ref)
    known = [one for one in status.sources if (one.kind, one.name) == here]
    revisions = {one.revision for one in known}
    target = _record(workloads.target)
    # The sources are what its pods ran: what a ControllerRevision tells of that has no object of its own.
    found = [replace(target, revision=one.revision) for one in workloads.sources if one.revision not in revisions]
    before = known[0] if known else target
    return replace(status, sources=(*known, *found) or (replace(before, revision=""),), target_before=before.replicas)


def has_new_sources(status: RolloutStatus, workloads: Workloads) -> bool:
    """Whether there are sources of which nothing is recorded. One workload has only revisions of its own."""
    known = {(one.kind, one.name) for one in status.sources} | {_key(workloads.target.ref)}
    return not workloads.in_place and any(_key(one.ref) not in known for one in workloads.sources)


def with_old_target(status: S, target: Workload) -> S:
    """The status of a rollout that was abandoned, whose target is one of the sources of the next one."""
    ref = target.ref
    if any((one.kind, one.name) == _key(ref) for one in status.sources):
        return status
    record = SourceRecord(
        api_version=ref.api_version,
        kind=ref.kind,
        name=ref.name,
        replicas=status.target_before,
        revision=target.revision,
    )
    return replace(status, sources=(*status.sources, record))


def recorded_refs(status: RolloutStatus, namespace: str) -> tuple[WorkloadRef, ...]:
    """The workloads that are recorded as sources."""
    return tuple(WorkloadRef(one.api_version, one.kind, namespace, one.name) for one in status.sources)


def target_ref(status: RolloutStatus, namespace: str) -> WorkloadRef | None:
    """The workload that is recorded as target; None if there was none yet."""
    found = status.target_workload
    return WorkloadRef(found.api_version, found.kind, namespace, found.name) if found is not None else None


def _key(ref: WorkloadRef) -> tuple[str, str]:
    return ref.kind, ref.name


def _replicas(one: Workload, workloads: Workloads) -> int:
    """How many pods one asks for. A target that is paused asks for pods that the rollout is to bring in."""
    asked = _record(one).replicas
    return held_replicas(one.obj, asked) if one is workloads.target and one.obj is not None else asked


def _record(workload: Workload) -> SourceRecord:
    ref, obj = workload.ref, workload.obj
    return SourceRecord(
        api_version=ref.api_version,
        kind=ref.kind,
        name=ref.name,
        replicas=0 if obj is None else desired_replicas(obj),
        revision=workload.revision,
    )
