"""What a Deployment says of itself: counts, and the conditions Available, Progressing and ReplicaFailure. Pure.

Promises the reasons, messages and order of kube-controller-manager v1.36. Progress is a matter of history: a status is
always worked out from the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from kedge.api.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from kedge.api.condition import FALSE, TRUE, UNKNOWN, find_condition
from kedge.embedded.workloads.replica_plan import FAILURE
from kedge.plan.moving.budget import Budget

AVAILABLE, PROGRESSING = "Available", "Progressing"
CREATED, FOUND, NOT_CREATED = "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetCreateError"
UPDATED, COMPLETE, TIMED_OUT = "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"

Conditions = tuple[DeploymentCondition, ...]


# What is noted on the way


def noting_pause(wanted: Deployment, now: datetime) -> DeploymentStatus:
    """The status, with a note if the Deployment has just been paused or resumed."""
    status = wanted.status
    reason = _progress(status).reason
    if wanted.deadline is None or reason == TIMED_OUT or wanted.spec.paused == (reason == PAUSED):
        return status
    if wanted.spec.paused:
        return _noted(status, PROGRESSING, UNKNOWN, PAUSED, "Deployment is paused", now)
    return _noted(status, PROGRESSING, UNKNOWN, RESUMED, "Deployment is resumed", now)


def noting_new(wanted: Deployment, status: DeploymentStatus, name: str, now: datetime) -> DeploymentStatus:
    """The status, with a note that the new ReplicaSet was made."""
    if wanted.deadline is None:
        return status
    return _noted(status, PROGRESSING, TRUE, CREATED, f'Created new replica set "{name}"', now)


def noting_found(wanted: Deployment, status: DeploymentStatus, name: str, now: datetime) -> DeploymentStatus:
    """The status, with a note that the new ReplicaSet was there, if nothing was ever noted of progress."""
    if wanted.deadline is None or find_condition(status.conditions, PROGRESSING) is not None:
        return status
    return _noted(status, PROGRESSING, TRUE, FOUND, f'Found new replica set "{name}"', now)


def noting_refusal(wanted: Deployment, status: DeploymentStatus, message: str, now: datetime) -> DeploymentStatus:
    """The status, with a note that the new ReplicaSet could not be made."""
    return status if wanted.deadline is None else _noted(status, PROGRESSING, FALSE, NOT_CREATED, message, now)


# What it comes to


def counted(
    wanted: Deployment,
    before: DeploymentStatus,
    new: ReplicaSet | None,
    everyone: Iterable[ReplicaSet],
    budget: Budget,
    now: datetime,
) -> DeploymentStatus:
    """The counts of these ReplicaSets, and whether enough of their pods are available."""
    sets = tuple(everyone)
    available = sum(one.status.available_replicas for one in sets)
    leaving = [one.status.terminating_replicas for one in sets]
    status = replace(
        before,
        observed_generation=wanted.metadata.generation,
        replicas=sum(one.status.replicas or 0 for one in sets),
        updated_replicas=new.status.replicas or 0 if new else 0,
        ready_replicas=sum(one.status.ready_replicas for one in sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum(one.replicas for one in sets) - available),
        terminating_replicas=None if None in leaving else sum(one or 0 for one in leaving),
    )
    if budget.is_kept_by(available):
        said = TRUE, "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        said = FALSE, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return _noted(status, AVAILABLE, *said, now)


def progressed(
    wanted: Deployment,
    before: DeploymentStatus,
    status: DeploymentStatus,
    new: ReplicaSet | None,
    everyone: Iterable[ReplicaSet],
    now: datetime,
) -> DeploymentStatus:
    """The status, with what can be said of progress since the one before, and of failures."""
    if wanted.deadline is None:
        status = _without(status, PROGRESSING)
    elif status.replicas != status.updated_replicas or _progress(before).reason != COMPLETE:
        status = _judged(wanted, before, status, _who(wanted, new), now)
    return _with_failure(status, new, everyone, now)


def is_complete(wanted: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are new ones, and available."""
    counts = (status.updated_replicas, status.replicas, status.available_replicas)
    return counts == (wanted.replicas,) * 3 and status.observed_generation >= wanted.metadata.generation


def stuck_after(wanted: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """In how many seconds to look whether the deadline has passed; None if there is nothing to look for."""
    since = _progress(status).last_update_time
    if wanted.deadline is None or since is None or is_complete(wanted, status):
        return None
    if _progress(status).reason in (TIMED_OUT, COMPLETE):
        return None
    left = (since + timedelta(seconds=wanted.deadline) - now).total_seconds()
    return max(0.0, left) + 1.0


def _judged(
    wanted: Deployment, before: DeploymentStatus, status: DeploymentStatus, who: str, now: datetime
) -> DeploymentStatus:
    if is_complete(wanted, status):
        return _noted(status, PROGRESSING, TRUE, COMPLETE, f"{who} has successfully progressed.", now)
    if _has_moved(before, status):
        return _moved(status, f"{who} is progressing.", now)
    if _is_late(wanted, status, now):
        return _noted(status, PROGRESSING, FALSE, TIMED_OUT, f"{who} has timed out progressing.", now)
    return status


def _has_moved(before: DeploymentStatus, status: DeploymentStatus) -> bool:
    return (
        status.updated_replicas > before.updated_replicas
        or status.replicas - status.updated_replicas < before.replicas - before.updated_replicas
        or status.ready_replicas > before.ready_replicas
        or status.available_replicas > before.available_replicas
    )


def _moved(status: DeploymentStatus, message: str, now: datetime) -> DeploymentStatus:
    """Progress is noted even if it was noted before in the same words: the deadline counts from here."""
    old = _progress(status)
    fresh = _noted(_without(status, PROGRESSING), PROGRESSING, TRUE, UPDATED, message, now)
    if old.status != TRUE:
        return fresh
    *others, last = fresh.conditions
    return replace(fresh, conditions=(*others, replace(last, last_transition_time=old.last_transition_time)))


def _is_late(wanted: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    condition = find_condition(status.conditions, PROGRESSING)
    if condition is None or condition.reason == COMPLETE or wanted.deadline is None:
        return False
    since = condition.last_update_time
    return condition.reason == TIMED_OUT or (since is not None and since + timedelta(seconds=wanted.deadline) < now)


def _with_failure(
    status: DeploymentStatus, new: ReplicaSet | None, everyone: Iterable[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """A failure of the new ReplicaSet, or else of an old one, is the Deployment's too."""
    in_turn = [*([new] if new else []), *everyone]
    failures = (find_condition(one.status.conditions, FAILURE) for one in in_turn)
    failure = next((found for found in failures if found is not None), None)
    if failure is None:
        return _without(status, FAILURE)
    return _noted(status, FAILURE, failure.status, failure.reason, failure.message, now)


def _who(wanted: Deployment, new: ReplicaSet | None) -> str:
    return f'ReplicaSet "{new.metadata.name}"' if new else f'Deployment "{wanted.metadata.name}"'


def _progress(status: DeploymentStatus) -> DeploymentCondition:
    """What is said of progress; a condition that says nothing if nothing is."""
    return find_condition(status.conditions, PROGRESSING) or DeploymentCondition(type=PROGRESSING, status="")


def _noted(
    status: DeploymentStatus,
    type: str,  # noqa: A002  # the field's own name
    holds: str,
    reason: str,
    message: str,
    now: datetime,
) -> DeploymentStatus:
    """The status with this condition, at the end; as it was, if its status and reason are those it has."""
    old = find_condition(status.conditions, type)
    if old is not None and (old.status, old.reason) == (holds, reason):
        return status
    at = now.replace(microsecond=0)
    since = old.last_transition_time if old is not None and old.status == holds else at
    new = DeploymentCondition(
        type=type, status=holds, reason=reason, message=message, last_update_time=at, last_transition_time=since
    )
    return replace(status, conditions=(*_without(status, type).conditions, new))


def _without(status: DeploymentStatus, type: str) -> DeploymentStatus:  # noqa: A002  # the field's own name
    return replace(status, conditions=tuple(one for one in status.conditions if one.type != type))
