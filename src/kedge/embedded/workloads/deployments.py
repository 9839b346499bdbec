"""Deployments: makes, sizes and clears away the ReplicaSets of each one, step by step."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.apps import Deployment, ReplicaSet
from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.api.selector import LabelSelector
from kedge.embedded.workloads import deployment_revisions, deployment_status, owned
from kedge.embedded.workloads.deployment_step import ObservedDeployment, Step, step
from kedge.embedded.workloads.view import MANAGER, View
from kedge.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, as_conflict
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.kube.store import Change
from kedge.plan.workloads import pods


class Deployments:
    """The Deployments of one cluster."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._deployments = view.of(Deployment)
        self._sets = view.of(ReplicaSet)
        self._events = view.events("deployment-controller")

    def sources(self) -> Iterable[Source]:
        pods_gone = self._view.cluster.watch(self._view.pods, to=self._deployment_of, when=_is_over)
        return self._view.itself(Deployment), self._view.its(ReplicaSet, Deployment), pods_gone

    async def reconcile(self, key: Key) -> Outcome:
        wanted = self._deployments.get(key.name, key.namespace)
        if wanted is None:
            return Outcome.done
        if wanted.spec.selector in (None, LabelSelector()):
            return await self._refuse(wanted)
        claims = self._view.claims(wanted, ReplicaSet)
        if claims.adopt or claims.release:
            await owned.settle(self._view.client, wanted, claims, manager=MANAGER)
            return Outcome.done  # what became of the ReplicaSets wakes us again
        next_step = step(self._observe(wanted, claims.own), self._view.exact_now())
        await self._act(wanted, next_step)
        return Outcome.done if next_step.look_again is None else Outcome.again(after=next_step.look_again)

    async def _refuse(self, wanted: Deployment) -> Outcome:
        why = "This deployment is selecting all pods. A non-empty selector is required."
        self._events.warning(wanted, "SelectingAll", why)
        seen = replace(wanted.status, observed_generation=wanted.metadata.generation)
        await self._view.write_status(wanted, seen)
        return Outcome.done

    def _observe(self, wanted: Deployment, sets: tuple[ReplicaSet, ...]) -> ObservedDeployment:
        """Pods are only counted where that matters: to wait until all are gone."""
        counted = () if wanted.is_rolling else sets
        return ObservedDeployment(wanted, sets, {one.metadata.uid: self._unfinished(one) for one in counted})

    def _unfinished(self, one: ReplicaSet) -> int:
        return sum(not pods.is_finished(pod) for pod in self._view.owned_by(one, Pod))

    async def _act(self, wanted: Deployment, planned: Step) -> None:
        if planned.make is not None:
            await self._make(wanted, planned.make)
        for before, after in planned.change:
            await self._change(wanted, before, after)
        for old in planned.delete:
            await self._delete(old)
        told = wanted.metadata.annotations.get(deployment_revisions.REVISION)
        revision = str(planned.revision) if planned.revision else told
        news = {deployment_revisions.REVISION: revision} if revision and revision != told else None
        await self._view.write_status(wanted, planned.status, annotations=news)

    async def _make(self, wanted: Deployment, new: ReplicaSet) -> None:
        name = new.metadata.name
        try:
            await self._view.client.create(ReplicaSet, new, manager=MANAGER)
        except AlreadyExists as error:
            # Ours, and not in the cache yet; or a stranger's, which somebody has to take away.
            raise as_conflict(error) from error
        except (Conflict, NotFound):
            raise
        except ApiError as error:
            await self._tell_refusal(wanted, f'Failed to create new replica set "{name}": {error.message}')
            raise
        if new.replicas:
            self._events.normal(wanted, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {new.replicas}")

    async def _tell_refusal(self, wanted: Deployment, message: str) -> None:
        self._events.warning(wanted, deployment_status.NOT_CREATED, message)
        refused = deployment_status.noting_refusal(wanted, wanted.status, message, self._view.exact_now())
        await self._view.write_status(wanted, refused)

    async def _change(self, wanted: Deployment, before: ReplicaSet, after: ReplicaSet) -> None:
        meta = before.metadata
        await self._view.client.amend(
            ReplicaSet, meta, difference(to_builtins(before), to_builtins(after)), manager=MANAGER
        )
        if before.replicas != after.replicas:
            way = "up" if after.replicas > before.replicas else "down"
            sizes = f"from {before.replicas} to {after.replicas}"
            self._events.normal(wanted, "ScalingReplicaSet", f"Scaled {way} replica set {meta.name} {sizes}")

    async def _delete(self, old: ReplicaSet) -> None:
        meta = old.metadata
        try:
            await self._view.client.delete(
                ReplicaSet, meta.name, meta.namespace, uid=meta.uid, resource_version=meta.resource_version
            )
        except NotFound:
            return

    def _deployment_of(self, seen: WatchedObject[Pod]) -> Iterable[Key]:
        """The Deployment a pod belongs to, through its ReplicaSet."""
        parent = controller_of(seen.meta)
        found = self._sets.get(parent.name, seen.meta.namespace) if parent and parent.kind == "ReplicaSet" else None
        owner = controller_of(found.metadata) if found is not None else None
        if owner is None or owner.kind != "Deployment":
            return ()
        return (Key(seen.cluster, seen.meta.namespace, owner.name),)


def _is_over(change: Change[Pod]) -> bool:
    """Whether a pod is gone or came to its end: Recreate waits for that."""
    return change.new is None or (pods.is_finished(change.new) and not (change.old and pods.is_finished(change.old)))
