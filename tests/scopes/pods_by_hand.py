"""Pods by hand: a toy scope. It replaces the pods of a ReplicaSet whose template was changed, a budget at a time.

A ReplicaSet leaves the pods alone that it has: a new template counts for new pods only. So old pods are deleted, and
never so many at once that fewer than replicas - maxUnavailable are ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kedge.api.apps import ReplicaSet
from kedge.api.condition import TRUE
from kedge.api.pods import Pod
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Code, Wait

MAX_UNAVAILABLE: Final = "example.com/max-unavailable"
"""The annotation of a ReplicaSet that wants this: how many of its pods may be unavailable."""
WAITS: Final = "example.com/waits"
"""The annotation that says what the next pod waits for."""


# The plan: a pure function of what is observed


def plan(wanted: ReplicaSet, pods: Sequence[Pod]) -> Grants:
    """Which pods to delete now, and what the others wait for."""
    limit = int(wanted.metadata.annotations[MAX_UNAVAILABLE])
    desired = 1 if wanted.spec.replicas is None else wanted.spec.replicas
    units = [unit_of(pod, wanted) for pod in pods]
    order = sorted(units, key=lambda unit: (not unit.needs_no_budget, unit.key))
    return grant(units, Budget(desired, limit), order=[unit.key for unit in order], exposure=Exposure(limit))


def unit_of(pod: Pod, wanted: ReplicaSet) -> Unit:
    held = (one.image for one in pod.spec.containers or ())
    new = (one["image"] for one in wanted.spec.template["spec"]["containers"])
    return Unit(pod.metadata.name, revision(held), revision(new), proof_of(pod))


def revision(images: Iterable[str]) -> str:
    """What a pod runs."""
    return ",".join(images)


def proof_of(pod: Pod) -> Proof:
    """What a pod's own status says. What is not known is not ready."""
    if pod.metadata.deletion_timestamp is not None:
        return Proof.leaving
    if pod.status.phase == "Failed":
        return Proof.failed
    ready = any(one.type == "Ready" and one.status == TRUE for one in pod.status.conditions)
    return Proof.proven if ready else Proof.pending


def wait_text(wait: Wait) -> str:
    """The sentence, written last."""
    blockers = ", ".join(f"{one.key} is {one.proof}" for one in wait.blockers)
    if wait.code == Code.revision_unproven:
        return f"{wait.unit} waits: the new template works nowhere yet: {blockers}"
    missing = f"; {wait.numbers['missing']} missing" if wait.numbers["missing"] else ""
    most = f"at most {wait.numbers['maxUnavailable']} of {wait.numbers['desired']} pods may be unavailable"
    return f"{wait.unit} waits: {most}: {blockers}{missing}"


# The controller: observe, plan, act


class PodsByHand:
    """Replaces the pods of every ReplicaSet that has the annotation."""

    def __init__(self, cluster: Cluster) -> None:
        self._client = cluster.client
        self._sets = cluster.cache(ReplicaSet)
        self._pods = cluster.cache(Pod, indexes={"owner": owners})
        sources: list[Source] = [cluster.watch(self._sets), cluster.watch(self._pods, to=owning_set)]
        self.controller = Controller("pods by hand", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        wanted = self._sets.get(key.name, key.namespace)
        if wanted is None or MAX_UNAVAILABLE not in wanted.metadata.annotations:
            return Outcome.done
        pods = {pod.metadata.name: pod for pod in self._pods.by("owner", wanted.metadata.uid)}
        grants = plan(wanted, list(pods.values()))
        for name in grants.moved:
            await self._delete(pods[name])
        await self._explain(wanted, next((wait_text(wait) for wait in grants.waiting.values()), ""))
        return Outcome.done

    async def _delete(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            await self._client.delete(
                Pod, meta.name, meta.namespace, uid=meta.uid, resource_version=meta.resource_version
            )
        except NotFound:
            return

    async def _explain(self, wanted: ReplicaSet, text: str) -> None:
        if wanted.metadata.annotations.get(WAITS, "") != text:
            change = {"metadata": {"annotations": {WAITS: text or None}}}
            await self._client.amend(ReplicaSet, wanted.metadata, change, manager="pods-by-hand")


def owners(pod: Pod) -> Iterable[str]:
    return (one.uid for one in pod.metadata.owner_references)


def owning_set(seen: WatchedObject[Pod]) -> Iterable[Key]:
    for one in seen.meta.owner_references:
        if one.kind == ReplicaSet.resource.kind:
            yield Key(seen.cluster, seen.meta.namespace, one.name)
