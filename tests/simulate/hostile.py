"""A hostile member: with its own credentials it writes lies, about itself and about others, where it may write.

That is the status of its Works and of its InternalMemberCluster. What it says of itself nobody can check: the cluster
itself may be lost. What must hold is that it harms nobody else: the hub writes none of its users' objects, approves
nothing, and every promise is kept to the other members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from kedge.api.apps import Deployment
from kedge.api.cluster import InternalMemberCluster
from kedge.api.condition import is_true
from kedge.api.core import ConfigMap
from kedge.api.fleet import member_namespace
from kedge.api.reasons import APPLIED, APPROVED, AVAILABLE
from kedge.api.staged import ClusterApprovalRequest
from kedge.api.work import Work
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.kube.errors import ApiError
from kedge.kube.patches import MergePatch
from kedge.simulate.simulation import Simulation
from simulate.fleets import Fleet
from simulate.promises import HUBS, Promises
from simulate.settings import Setting

_FOREIGN = (
    {"group": "placement.kubernetes-fleet.io", "version": "v1beta1", "kind": "ClusterApprovalRequest"},
    {"group": "placement.kubernetes-fleet.io", "version": "v1beta1", "kind": "ClusterResourcePlacement", "name": "crp"},
    {"group": "", "version": "v1", "kind": "ConfigMap", "name": "extra-1", "namespace": "test-ns"},
    {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "namespace": "test-ns"},
)
_TIMES = ("1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z")


def hostile_member(fleet: Fleet, promises: Promises) -> HostileMember | None:
    """The one of this fleet that lies, if one does."""
    if fleet.setting is not Setting.hostile_member:
        return None
    rng = fleet.simulation.rng("hostile member")
    promises.hostile = rng.choice(fleet.members)
    return HostileMember(fleet.simulation, rng, promises.hostile)


class HostileMember:
    """One member that lies, and what it must not bring about."""

    def __init__(self, simulation: Simulation, rng: Random, name: str) -> None:
        self._simulation = simulation
        self._hub = simulation.client("hub")
        self._rng = rng
        self._name = name
        self._namespace = member_namespace(name)
        simulation.always("a member that lies harms nobody else", self._ask)

    async def lie(self, times: int, apart: float) -> None:
        """So many lies, now and then."""
        kinds: list[Callable[[], Awaitable[None]]] = [self._about_works, self._about_works, self._about_itself]
        for _ in range(times):
            await asyncio.sleep(self._rng.uniform(0.0, apart))
            with suppress(ApiError):  # a lie that the schema does not take, or about something that is gone
                await self._rng.choice(kinds)()
                self._simulation.counts["lies", self._name] += 1

    async def _about_works(self) -> None:
        for work in (await self._hub.list(Work, self._namespace)).items:
            body = {"status": self._status(work)}
            await self._hub.patch(Work, work.metadata.name, MergePatch(body), self._namespace, subresource="status")

    def _status(self, work: Work) -> dict[str, Any]:
        """That everything is there, or nothing; of this generation or another; of its own objects and of others'."""
        generation = self._rng.choice([work.metadata.generation, work.metadata.generation, 10**9])
        said = [self._condition(kind, generation) for kind in (APPLIED, AVAILABLE)]
        named = [{"ordinal": at, **_identifier(one)} for at, one in enumerate(work.spec.workload.manifests)]
        foreign = [{"ordinal": self._rng.choice([0, 7, 10**6]), **one} for one in _FOREIGN if self._rng.random() < 0.5]
        return {
            "conditions": said,
            "manifestConditions": [{"identifier": one, "conditions": said} for one in (*named, *foreign)],
        }

    async def _about_itself(self) -> None:
        """That it is healthy, or has left; heard of at another time; larger than anything."""
        condition = self._condition(self._rng.choice(["Joined", "Healthy"]), 1)
        status = {
            "conditions": [condition],
            "agentStatus": [
                {
                    "type": "MemberAgent",
                    "conditions": [condition],
                    "lastReceivedHeartbeat": self._rng.choice(_TIMES),
                }
            ],
            "resourceUsage": {"capacity": {"cpu": "1000000000k"}, "available": {"cpu": "-5"}},
            "properties": {"kubernetes-fleet.io/node-count": {"value": "-1", "observationTime": _TIMES[-1]}},
        }
        body = MergePatch({"status": status})
        await self._hub.patch(InternalMemberCluster, self._name, body, self._namespace, subresource="status")

    def _condition(self, kind: str, generation: int) -> dict[str, Any]:
        return {
            "type": kind,
            "status": self._rng.choice(["True", "True", "False", "Unknown"]),
            "reason": "Trust",
            "message": "x" * self._rng.choice([0, 30_000]),
            "lastTransitionTime": self._rng.choice(_TIMES),
            "observedGeneration": generation,
        }

    # What it must not bring about

    def _ask(self, server: str, kind: Kind, change: Change) -> str:
        carried = self._simulation.trace.carried()
        if server != "hub" or carried is None or carried[0].partition(" ")[0] not in HUBS:
            return ""
        if kind.resource in (Deployment.resource, ConfigMap.resource):
            return f"the hub writes its user's {kind.resource.kind} {change.version.key}"
        if kind.resource == ClusterApprovalRequest.resource and change.type == "MODIFIED":
            before = change.previous
            return (
                "" if before is None or _approved(before.body) == _approved(change.version.body) else "the hub approves"
            )
        return ""


def _identifier(manifest: Mapping[str, Any]) -> dict[str, Any]:
    group, _, version = manifest["apiVersion"].rpartition("/")
    meta = manifest["metadata"]
    named = {"name": meta["name"], "namespace": meta.get("namespace", "")}
    return {"group": group, "version": version, "kind": manifest["kind"], **named}


def _approved(body: bytes) -> bool:
    return is_true(msgspec.json.decode(body, type=ClusterApprovalRequest).status.conditions, APPROVED)
