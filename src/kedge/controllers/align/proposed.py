"""Proposed: the controller that has a binding of Karmada for each one in the short form of the proposal.

A resource has one binding, one ledger and one Work per cluster, whoever wrote it: so a proposed binding is not aligned
itself. It owns Karmada's binding of the same name, and shows its status. One that somebody else made stays as it is.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import FALSE, new_condition, set_condition
from kedge.api.karmada.bindings import BindingStatus, ResourceBinding
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.meta import controller_of
from kedge.controllers.align.binding_kinds import NAMESPACED
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.patches import difference
from kedge.kube.queue import Key
from kedge.kube.source import Source, owner_of
from kedge.plan.aligning.proposed import NotBound, proposed_spec

MANAGER: Final = "kedge-align"


class ProposedBindings:
    """The controller of bindings in the short form."""

    def __init__(self, cluster: Cluster, *, clock: Clock) -> None:
        self._client = cluster.client
        self._events = cluster.events
        self._clock = clock
        self._proposed = cluster.cache(ProposedBinding)
        self._bindings = NAMESPACED.cache(cluster)
        sources: list[Source] = [
            cluster.watch(self._proposed),
            cluster.watch(self._bindings, to=owner_of(ProposedBinding)),
        ]
        self.controller = Controller("proposedbindings", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        given = self._proposed.get(key.name, key.namespace)
        if given is None or given.metadata.deletion_timestamp is not None:
            return Outcome.done  # what it owns goes with it
        there = self._bindings.get(key.name, key.namespace)
        if there is not None and not _is_owned(there, given):
            other = f"{key.name} of {ResourceBinding.resource.group} exists already, and is the one that counts"
            await self._refuse(given, other)
            return Outcome.done
        try:
            spec = proposed_spec(given)
        except NotBound as error:
            await self._refuse(given, str(error))
            return Outcome.done
        if there is None:
            await self._client.create(ResourceBinding, _binding(given, spec), manager=MANAGER)
            return Outcome.done
        change = difference(_shown(there), spec)
        if change:
            await self._client.amend(ResourceBinding, there.metadata, {"spec": change}, manager=MANAGER)
        await self._report(given, there.status)
        return Outcome.done

    async def _refuse(self, given: ProposedBinding, problem: str) -> None:
        refused = new_condition(
            "Scheduled",
            status=FALSE,
            reason="NotBound",
            message=problem,
            generation=given.metadata.generation,
            now=self._clock.now(),
        )
        conditions = set_condition(given.status.conditions, refused)
        if conditions != given.status.conditions:
            self._events.warning(given, "NotBound", problem)
        await self._report(given, replace(given.status, conditions=conditions))

    async def _report(self, given: ProposedBinding, status: BindingStatus) -> None:
        if status != given.status:
            change = {"status": difference(to_builtins(given.status), to_builtins(status))}
            await self._client.amend(ProposedBinding, given.metadata, change, manager=MANAGER, subresource="status")


def _binding(given: ProposedBinding, spec: dict[str, Any]) -> dict[str, Any]:
    resource, meta = ProposedBinding.resource, given.metadata
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {"metadata": {"name": meta.name, "namespace": meta.namespace, "ownerReferences": [owner]}, "spec": spec}


def _shown(binding: ResourceBinding) -> dict[str, Any]:
    """What a proposed binding decides on, as it is there."""
    spec = binding.spec
    resource = {
        name: text
        for name, text in to_builtins(spec.resource).items()
        if text and name not in ("uid", "resourceVersion")
    }
    clusters = [{"name": one.name, "replicas": one.replicas} for one in spec.clusters]
    return {"resource": resource, "clusters": clusters, "replicas": spec.replicas}


def _is_owned(binding: ResourceBinding, by: ProposedBinding) -> bool:
    owner = controller_of(binding.metadata)
    return owner is not None and owner.uid == by.metadata.uid
