"""Old revisions: from which workloads a rollout to a component revision moves, when it begins. Pure.

What the status says ran last comes first: what an unfinished rollout moved from, and its target. A rollout that begins
for the first time moves from what its spec names, or else from whatever runs of the component. All of them are one
pool. What does not exist any more is left out; if nothing is left, the target is deployed or scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kedge.api.oam.keys import FROZEN, REVISION_LABEL
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.in_place import outdated_pods, updates_by_itself
from kedge.plan.batching.moves import WorkloadRef
from kedge.plan.batching.records import target_ref
from kedge.plan.fields import Object, count, is_observed, text, whole
from kedge.plan.workloads import WorkloadHandler


class OldRevision(Struct, frozen=True):
    """One workload of an old revision. In place, the workload is the target itself."""

    ref: WorkloadRef
    revision: str = ""


def recorded(status: RolloutStatus, namespace: str) -> tuple[OldRevision, ...]:
    """What the status says this rollout moves from."""
    return tuple(
        OldRevision(WorkloadRef(one.api_version, one.kind, namespace, one.name), one.revision) for one in status.sources
    )


def ran_last(status: RolloutStatus, namespace: str, revision: str) -> tuple[OldRevision, ...]:
    """What the status says this rollout moved to last; its revision, if it is of one."""
    ref = target_ref(status, namespace)
    return (OldRevision(ref, revision),) if ref is not None else ()


def running(workloads: Iterable[Object], kind: WorkloadRef) -> tuple[OldRevision, ...]:
    """Those of a component's workloads that have pods or ask for some. Lists do not say of which kind objects are."""
    found = sorted((one for one in workloads if has_pods(one)), key=lambda one: text(one, "metadata", "name"))
    return tuple(old_revision(one, kind) for one in found)


def old_revision(live: Object, kind: WorkloadRef) -> OldRevision:
    """A live workload of this kind, with the revision that it says it is of."""
    meta = WorkloadRef(kind.api_version, kind.kind, kind.namespace, text(live, "metadata", "name"))
    return OldRevision(meta, text(live, "metadata", "labels", REVISION_LABEL))


def has_pods(live: Object) -> bool:
    """Whether a workload has pods, or asks for some. One that does not say how many asks for one."""
    return whole(live, "spec", "replicas") != 0 or count(live, "status", "replicas") > 0


def others(found: Sequence[OldRevision], target: WorkloadRef) -> tuple[OldRevision, ...]:
    """Each workload once, without the target."""
    return tuple({one.ref: one for one in found if one.ref != target}.values())


def changes_in_place(
    handler: WorkloadHandler, live: Object | None, revision: str, known: Iterable[OldRevision]
) -> bool:
    """Whether a workload of a kind that is changed in place has another revision to move from.

    It has if the status says so, or its label; or if some of its pods are not of its template, as when somebody wrote
    the new template already. A kind that cannot be scaled is always changed.
    """
    if handler.scale(0) is None:
        return True
    if live is None:
        return False
    label = text(live, "metadata", "labels", REVISION_LABEL)
    return label != revision or any(one.revision != revision for one in known) or _has_old_pods(handler, live)


def changes_alone(handler: WorkloadHandler, live: Object | None, size: int | None) -> bool:
    """Whether a workload that a rollout names alone, with this targetSize, is changed in place; else it is scaled.

    It is if its template is not what all of its pods run, and something holds those back; or if there is no size to
    scale it to. While it still updates by itself, a rollout that scales it waits. What an earlier rollout left frozen
    is given back by one in place.
    """
    if handler.scale(0) is None:
        return True
    if handler.with_partition(0) is None or live is None:
        return False
    desired, is_frozen = handler.replicas(live).desired, bool(text(live, "metadata", "annotations", FROZEN))
    if size is None:
        return desired > 0
    if is_observed(live) and outdated_pods(handler, live):
        return not updates_by_itself(handler, live)
    return is_frozen and size == desired > 0


def _has_old_pods(handler: WorkloadHandler, live: Object) -> bool:
    """Until its status speaks of a new template, what counts is whether somebody froze it with the pods it had."""
    if not is_observed(live):
        return bool(text(live, "metadata", "annotations", FROZEN)) and handler.replicas(live).desired > 0
    return outdated_pods(handler, live) > 0
