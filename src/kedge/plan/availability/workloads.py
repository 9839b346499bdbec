"""Workloads: all replicas updated and available, counted by the handler of the kind.

* A Deployment must also have none left that is unavailable. That matters with one replica and a bad image: the new pod
  counts as updated, the old one as available, and only the number of unavailable ones tells.
* A StatefulSet must have updated as many as its strategy would: all but the first `partition`, with OnDelete none.
  Where all are to be updated, it must also have finished: its current revision is the one it updates to.
* A DaemonSet with OnDelete may have pods of any revision.
* A CloneSet must have updated all but its partition, and have none left beyond its replicas: while one that surges has
  more, an old pod may count as available in place of a new one.
* A Job is available when it is complete. One that failed says why; one that is suspended waits until it is let run.
"""

from __future__ import annotations

from kedge.plan.availability.verdict import Verdict, available, because, many, not_available, not_observed
from kedge.plan.fields import Object, at, condition, count, has_condition, name_of, text, whole
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.handler import ON_DELETE, Replicas, WorkloadHandler
from kedge.plan.workloads.stateful_sets import StatefulSets


def judge_workload(handler: WorkloadHandler, obj: Object) -> Verdict:
    """Any kind that has a handler: by its counts."""
    replicas = handler.replicas(obj)
    if not replicas.observed:
        return not_available(not_observed(obj))
    to_update = handler.strategy(obj).updates(replicas.desired)
    return _judged(obj, _not_updated(replicas, to_update) or _not_available(replicas), _all_of(replicas, to_update))


def judge_deployment(obj: Object) -> Verdict:
    replicas = Deployments().replicas(obj)
    if not replicas.observed:
        return not_available(not_observed(obj))
    problem = _deployment_problem(obj, replicas)
    return _judged(obj, f"{problem}{_cause(obj)}" if problem else "", _all_of(replicas, replicas.desired))


def judge_stateful_set(obj: Object) -> Verdict:
    replicas, strategy = StatefulSets().replicas(obj), StatefulSets().strategy(obj)
    if not replicas.observed:
        return not_available(not_observed(obj))
    to_update = strategy.updates(replicas.desired)
    problem = _not_updated(replicas, to_update) or _not_available(replicas)
    if not problem and strategy.type != ON_DELETE and to_update >= replicas.desired:
        problem = _unfinished(obj, replicas)
    return _judged(obj, problem, _all_of(replicas, to_update))


def judge_daemon_set(obj: Object) -> Verdict:
    replicas, strategy = DaemonSets().replicas(obj), DaemonSets().strategy(obj)
    if not replicas.observed:
        return not_available(not_observed(obj))
    problem = "" if strategy.type == ON_DELETE else _stale_on_nodes(obj, replicas)
    nodes = f"of {replicas.desired} nodes"
    if not problem and replicas.available != replicas.desired:
        problem = f"has available pods on {replicas.available} {nodes}"
    return _judged(obj, problem, f"has available pods on {replicas.desired} {nodes}")


def judge_clone_set(obj: Object) -> Verdict:
    replicas = CloneSets().replicas(obj)
    if not replicas.observed:
        return not_available(not_observed(obj))
    to_update = CloneSets().strategy(obj).updates(replicas.desired)
    stale = _not_updated(replicas, to_update)
    problem = stale or _too_many(obj, replicas) or _not_available(replicas)
    cause = _clone_set_cause(obj, stale=bool(stale))
    return _judged(obj, f"{problem}{cause}" if problem else "", _all_of(replicas, to_update))


def judge_job(obj: Object) -> Verdict:
    if has_condition(obj, "Failed", "True"):
        failed = condition(obj, "Failed")
        why = because(text(failed, "reason")) + because(text(failed, "message"))
        return not_available(f"{name_of(obj)} failed{why}")
    if has_condition(obj, "Complete", "True"):
        return available(f"{name_of(obj)} is complete")
    if at(obj, "spec", "suspend") is True:
        return not_available(f"{name_of(obj)} is suspended: it completes only after spec.suspend is set to false")
    return not_available(f"{name_of(obj)} is not complete: {_job_progress(obj)}")


def _judged(obj: Object, problem: str, otherwise: str) -> Verdict:
    if problem:
        return not_available(f"{name_of(obj)} {problem}")
    return available(f"{name_of(obj)} {otherwise}")


def _all_of(replicas: Replicas, to_update: int) -> str:
    some = f"has {replicas.desired} of {replicas.desired} replicas"
    if to_update == replicas.desired:
        return f"{some} updated and available"
    return f"{some} available; its strategy updates {to_update}"


def _not_updated(replicas: Replicas, to_update: int) -> str:
    return f"has {replicas.updated} of {to_update} updated replicas" if replicas.updated < to_update else ""


def _not_available(replicas: Replicas) -> str:
    if replicas.available == replicas.desired:
        return ""
    return f"has {replicas.available} of {replicas.desired} available replicas"


def _too_many(obj: Object, replicas: Replicas) -> str:
    surplus = count(obj, "status", "replicas") - replicas.desired
    return f"has {many(surplus, 'replica')} too many" if surplus > 0 else ""


def _deployment_problem(obj: Object, replicas: Replicas) -> str:
    if replicas.updated != replicas.desired:
        return f"has {replicas.updated} of {replicas.desired} updated replicas"
    if replicas.available > replicas.desired:
        return f"has {many(replicas.available - replicas.desired, 'replica')} too many"
    if left := _not_available(replicas):
        return left
    if unavailable := count(obj, "status", "unavailableReplicas"):
        return f"has {many(unavailable, 'unavailable replica')} beside {replicas.available} available"
    return ""


def _cause(obj: Object) -> str:
    """What the Deployment itself says of why it makes no progress."""
    if Deployments().strategy(obj).paused:
        return ": it is paused"
    if has_condition(obj, "ReplicaFailure", "True"):
        return because(text(condition(obj, "ReplicaFailure"), "message"))
    if has_condition(obj, "Progressing", "False"):
        return because(text(condition(obj, "Progressing"), "message"))
    return ""


def _clone_set_cause(obj: Object, *, stale: bool) -> str:
    """What the CloneSet itself says of why it makes no progress; a pause holds up nothing but an update."""
    for kind in ("FailedScale", "FailedUpdate"):
        if has_condition(obj, kind, "True"):
            return because(text(condition(obj, kind), "message"))
    return ": it is paused" if stale and CloneSets().strategy(obj).paused else ""


def _unfinished(obj: Object, replicas: Replicas) -> str:
    """What a StatefulSet that is to be updated as a whole has still to do."""
    updated, current = replicas.updated, count(obj, "status", "currentReplicas")
    before, after = text(obj, "status", "currentRevision"), text(obj, "status", "updateRevision")
    if updated != replicas.desired:
        return f"has {many(updated, 'updated replica')}, and is to have {replicas.desired}"
    if before != after:
        return f"is still moving from revision {before or 'none'} to {after or 'none'}"
    return f"has {many(current, 'current replica')}, and {updated} updated" if current != updated else ""


def _stale_on_nodes(obj: Object, replicas: Replicas) -> str:
    updated, current = replicas.updated, count(obj, "status", "currentNumberScheduled")
    if updated != replicas.desired:
        return f"has updated pods on {updated} of {replicas.desired} nodes"
    return f"has pods on {many(current, 'node')}, and updated ones on {updated}" if current != updated else ""


def _job_progress(obj: Object) -> str:
    succeeded, failed = count(obj, "status", "succeeded"), count(obj, "status", "failed")
    wanted = whole(obj, "spec", "completions")
    done = f"{many(succeeded, 'pod')} succeeded" if wanted is None else f"{succeeded} of {wanted} pods succeeded"
    return f"{done}, {failed} failed" if failed else done
