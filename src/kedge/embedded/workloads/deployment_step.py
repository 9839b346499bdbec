"""The next step of a Deployment: which ReplicaSets to make, change and delete, and what to say. Pure.

    observe → step → act

A step is one move, as large as the budget allows; its status counts the ReplicaSets as they will be asked to be, with
the pods they are known to have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from kedge.api.apps import Deployment, DeploymentStatus, ReplicaSet
from kedge.embedded.workloads import deployment_plan, deployment_revisions, deployment_status
from kedge.embedded.workloads.deployment_plan import Share, Sizes
from kedge.plan.moving.budget import Budget

NEW = ""  # the name of a ReplicaSet that is not there yet


class ObservedDeployment(Struct, frozen=True):
    """A Deployment, its ReplicaSets, and (for Recreate) how many pods of each, by uid, have not come to their end."""

    wanted: Deployment
    sets: tuple[ReplicaSet, ...]
    pods: Mapping[str, int]


class Step(Struct, frozen=True):
    """What to do now."""

    status: DeploymentStatus
    make: ReplicaSet | None = None
    change: tuple[tuple[ReplicaSet, ReplicaSet], ...] = ()  # as it is, and as it should be
    delete: tuple[ReplicaSet, ...] = ()
    revision: int = 0  # what the Deployment is to say it is at; 0 says nothing
    look_again: float | None = None


class _Sets(Struct, frozen=True):
    """The ReplicaSets of a Deployment as they are to be, and the status so far."""

    new: ReplicaSet | None
    olds: tuple[ReplicaSet, ...]
    status: DeploymentStatus
    is_made: bool = False  # the new one is yet to be made

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        return (*self.olds, self.new) if self.new else self.olds


def step(seen: ObservedDeployment, now: datetime) -> Step:
    """What brings a Deployment nearer to what is wanted."""
    wanted = seen.wanted
    budget = deployment_plan.budget_of(wanted.spec.strategy, wanted.replicas)
    new, olds = deployment_revisions.split(wanted, seen.sets)
    if wanted.metadata.deletion_timestamp is not None:
        return Step(deployment_status.counted(wanted, wanted.status, new, seen.sets, budget, now))
    sets = _taken_over(wanted, _Sets(new, olds, deployment_status.noting_pause(wanted, now)), now)
    if wanted.spec.paused or _is_rescaled(wanted, sets.all):
        return _rescale(seen, sets, budget, now)
    moved = _roll(wanted, sets, budget, now) if wanted.is_rolling else _recreate(seen, sets, budget, now)
    return _result(seen, moved, budget, now, progress=True)


def _taken_over(wanted: Deployment, sets: _Sets, now: datetime) -> _Sets:
    """The new ReplicaSet, if there is one, with what it takes over from its Deployment."""
    if sets.new is None:
        return sets
    new = deployment_revisions.refreshed(wanted, sets.new, sets.olds)
    return _Sets(new, sets.olds, deployment_status.noting_found(wanted, sets.status, new.metadata.name, now))


def _is_rescaled(wanted: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Whether the desired number is another than the one some ReplicaSet was sized for."""
    desired = (deployment_revisions.number(one, deployment_revisions.DESIRED) for one in sets if one.replicas)
    return any(number is not None and number != wanted.replicas for number in desired)


def _rescale(seen: ObservedDeployment, sets: _Sets, budget: Budget, now: datetime) -> Step:
    wanted, new = seen.wanted, sets.new
    sizes = deployment_plan.rescaled(
        None if new is None else _share(new, wanted),
        _shares(sets.olds, wanted),
        budget,
        saturated=new is not None and _is_saturated(wanted, new),
        rolling=wanted.is_rolling,
    )
    return _result(seen, _sized(sets, sizes, budget), budget, now, progress=False)


def _roll(wanted: Deployment, sets: _Sets, budget: Budget, now: datetime) -> _Sets:
    olds = _shares(sets.olds, wanted)
    if sets.new is None:
        return _made(wanted, sets, olds, budget, now)
    return _sized(sets, deployment_plan.rolling(_share(sets.new, wanted), olds, budget), budget)


def _recreate(seen: ObservedDeployment, sets: _Sets, budget: Budget, now: datetime) -> _Sets:
    olds = _shares(sets.olds, seen.wanted)
    if sizes := deployment_plan.emptied(olds):
        return _sized(sets, sizes, budget)
    if any(old.status.replicas or seen.pods.get(old.metadata.uid) for old in sets.olds):
        return sets
    if sets.new is None:
        return _made(seen.wanted, sets, olds, budget, now)
    return _sized(sets, {sets.new.metadata.name: budget.desired}, budget, only_changes=True)


def _made(wanted: Deployment, sets: _Sets, olds: Sequence[Share], budget: Budget, now: datetime) -> _Sets:
    size = deployment_plan.size_of_new(Share(NEW, datetime.max.replace(tzinfo=UTC), 0), olds, budget)
    new = deployment_revisions.first_of(wanted, sets.olds, size, budget)
    return _Sets(
        new, sets.olds, deployment_status.noting_new(wanted, sets.status, new.metadata.name, now), is_made=True
    )


def _result(seen: ObservedDeployment, sets: _Sets, budget: Budget, now: datetime, *, progress: bool) -> Step:
    wanted, new = seen.wanted, sets.new
    status = deployment_status.counted(wanted, sets.status, new, sets.all, budget, now)
    if progress:
        status = deployment_status.progressed(wanted, sets.status, status, new, sets.all, now)
    return Step(
        status=status,
        make=new if sets.is_made else None,
        change=_changes(seen.sets, sets.all),
        delete=_outlived(wanted, sets) if _may_clean_up(wanted, sets, seen) else (),
        revision=deployment_revisions.revision(new) if new else 0,
        look_again=deployment_status.stuck_after(wanted, status, now) if progress else None,
    )


def _may_clean_up(wanted: Deployment, sets: _Sets, seen: ObservedDeployment) -> bool:
    if wanted.spec.paused:
        return True
    settled = not sets.is_made and not _changes(seen.sets, sets.all)
    return settled and deployment_status.is_complete(wanted, wanted.status)


def _outlived(wanted: Deployment, sets: _Sets) -> tuple[ReplicaSet, ...]:
    """The oldest revisions beyond the limit, as far as they have no pods and are not on their way out."""
    limit = wanted.history_limit
    alive = [old for old in sets.olds if old.metadata.deletion_timestamp is None]
    if limit is None or len(alive) <= limit:
        return ()
    oldest = sorted(alive, key=deployment_revisions.revision)[: len(alive) - limit]
    return tuple(old for old in oldest if _is_empty(old))


def _is_empty(old: ReplicaSet) -> bool:
    return old.replicas == 0 and not old.status.replicas and old.metadata.generation <= old.status.observed_generation


def _is_saturated(wanted: Deployment, new: ReplicaSet) -> bool:
    desired = deployment_revisions.number(new, deployment_revisions.DESIRED)
    return (new.replicas, desired, new.status.available_replicas) == (wanted.replicas,) * 3


def _sized(sets: _Sets, sizes: Sizes, budget: Budget, *, only_changes: bool = False) -> _Sets:
    def resized(one: ReplicaSet) -> ReplicaSet:
        size = sizes.get(one.metadata.name)
        if size is None or (only_changes and size == one.replicas):
            return one
        return deployment_revisions.resized(one, size, budget)

    return _Sets(sets.new and resized(sets.new), tuple(map(resized, sets.olds)), sets.status, sets.is_made)


def _changes(before: Iterable[ReplicaSet], after: Iterable[ReplicaSet]) -> tuple[tuple[ReplicaSet, ReplicaSet], ...]:
    seen = {one.metadata.uid: one for one in before}
    pairs = ((seen[one.metadata.uid], one) for one in after if one.metadata.uid in seen)
    return tuple((old, new) for old, new in pairs if old != new)


def _shares(sets: Iterable[ReplicaSet], wanted: Deployment) -> tuple[Share, ...]:
    return tuple(_share(one, wanted) for one in sets)


def _share(one: ReplicaSet, wanted: Deployment) -> Share:
    return Share(
        name=one.metadata.name,
        created=one.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC),
        replicas=one.replicas,
        available=one.status.available_replicas,
        # One that does not say what it was sized for counts as sized for the pods there are.
        most_before=deployment_revisions.number(one, deployment_revisions.MOST) or wanted.status.replicas,
    )
