"""Records: what each workload of a rollout was before it, so that it can be as before.

If one rollout replaces another midway, what counts is what was before the first of them: its sources stay recorded, and
its target joins them.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads
from kedge.plan.fields import whole

S = TypeVar("S", bound=RolloutStatus)


def with_records(status: S, workloads: Workloads) -> S:
    """The status with what the workloads are now, where nothing is recorded yet."""
    found = {_key(one.ref): _record(one) for one in workloads.sources}
    known = {(one.kind, one.name): one for one in status.sources}
    merged = {**found, **known}
    target = merged.pop(_key(workloads.target.ref), None) or _record(workloads.target)
    return replace(status, sources=tuple(merged.values()), target_before=target.replicas)


def with_old_target(status: S, ref: WorkloadRef, revision: str = "") -> S:
    """The status of a rollout that was abandoned, whose target is one of the sources of the next one."""
    record = SourceRecord(
        api_version=ref.api_version, kind=ref.kind, name=ref.name, replicas=status.target_before, revision=revision
    )
    if any((one.kind, one.name) == _key(ref) for one in status.sources):
        return status
    return replace(status, sources=(*status.sources, record))


def recorded_refs(status: RolloutStatus, namespace: str) -> tuple[WorkloadRef, ...]:
    """The workloads that are recorded as sources."""
    return tuple(WorkloadRef(one.api_version, one.kind, namespace, one.name) for one in status.sources)


def _key(ref: WorkloadRef) -> tuple[str, str]:
    return ref.kind, ref.name


def _record(workload: Workload) -> SourceRecord:
    ref, obj = workload.ref, workload.obj
    replicas = 0 if obj is None else whole(obj, "spec", "replicas")
    return SourceRecord(
        api_version=ref.api_version,
        kind=ref.kind,
        name=ref.name,
        replicas=1 if replicas is None else replicas,
        revision=workload.revision,
    )
