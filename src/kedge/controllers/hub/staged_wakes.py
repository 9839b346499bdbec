"""Staged wakes: which changes wake which placement's runs."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.cluster import MemberCluster
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.api.twins import Run
from kedge.controllers.hub.indexes import STRATEGY, named
from kedge.kube.cache import Cache
from kedge.kube.queue import Key
from kedge.kube.source import Seen
from kedge.kube.store import Change
from kedge.plan.membership import silence
from kedge.plan.staging.saying import has_ended
from kedge.plan.staging.step import holds


class RunWakes:
    """By what belongs to runs of one kind."""

    def __init__(self, runs: Cache[ClusterStagedUpdateRun]) -> None:
        self._runs = runs

    def by_strategy(self, seen: Seen[ClusterStagedUpdateStrategy]) -> Iterable[Key]:
        found = self._runs.by(STRATEGY, named(seen.meta.namespace, seen.meta.name))
        return [_key(seen.cluster, run) for run in found if not has_ended(run.status)]

    def by_approval(self, seen: Seen[ClusterApprovalRequest]) -> Iterable[Key]:
        """Every run that may go by this request: one of its name may be about another run."""
        meta = seen.meta
        for run in self._runs.all():
            if run.metadata.namespace == meta.namespace and meta.name.startswith(f"{run.metadata.name}-"):
                yield _key(seen.cluster, run)


def _key(cluster: str, run: Run) -> Key:
    return Key(cluster, run.metadata.namespace, run.spec.placement_name)


def asks_otherwise(change: Change[ClusterStagedUpdateRun]) -> bool:
    """Whether a run came, went, asks for something else, or makes room for another: not for what else it says."""
    return _gist(change.old) != _gist(change.new)


def _gist(run: Run | None) -> object:
    if run is None:
        return None
    meta = run.metadata
    asked = (meta.uid, meta.generation, meta.deletion_timestamp, meta.finalizers, meta.annotations)
    return (*asked, has_ended(run.status), holds(run.status))


def is_another_member(change: Change[MemberCluster]) -> bool:
    """Whether a member was met or lost, began to leave, or has other labels."""
    return _presence(change.old) != _presence(change.new)


def _presence(member: MemberCluster | None) -> tuple[object, ...]:
    if member is None:
        return ()
    return (member.metadata.deletion_timestamp, silence(member), member.metadata.labels)
