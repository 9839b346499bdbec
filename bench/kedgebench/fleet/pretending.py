"""Pretending: the agents of many members that do not exist, all in one controller.

They join, send heartbeats, and say of every Work that it is applied and available as soon as they see it, or some time
after. To the hub they look as agents do; nothing is applied anywhere.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from kedge.api.cluster import InternalMemberCluster
from kedge.api.condition import find_condition
from kedge.api.fleet import MEMBER_AGENT
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.work import Work, Workload
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key

MANAGER = "pretended-agent"


def identified(work: Work) -> Work:
    """Of its manifests only what they are called."""
    named = tuple(
        {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": one["metadata"]}
        for one in work.spec.workload.manifests
    )
    return replace(work, spec=replace(work.spec, workload=Workload(manifests=named)))


class Pretended:
    """The agents of all members there are."""

    def __init__(self, manager: Manager, hub: Cluster, *, heartbeat: float, ready_after: float = 0.0) -> None:
        """`stuck` are the namespaces of members whose Works are never available from now on."""
        self.stuck: set[str] = set()
        self._ready_after = ready_after
        self._met: dict[Key, tuple[int, float]] = {}  # what was last seen of a Work, and when
        self._clock = manager.clock
        self._client = hub.client
        self._heartbeat = heartbeat
        self._internals = hub.cache(InternalMemberCluster)
        self._works = hub.cache(Work, transform=identified)
        manager.add_controller(Controller("pretended joining", self._join, [hub.watch(self._internals)], workers=8))
        manager.add_controller(Controller("pretended applying", self._apply, [hub.watch(self._works)], workers=16))

    async def _join(self, key: Key) -> Outcome:
        found = self._internals.get(key.name, key.namespace)
        if found is None:
            return Outcome.done
        now = self._clock.now().replace(microsecond=0)
        heard = next((one.last_received_heartbeat for one in found.status.agent_status), None)
        if heard is not None and (age := (now - heard).total_seconds()) < self._heartbeat:
            return Outcome.again(after=self._heartbeat - age)
        await self._say(InternalMemberCluster, key, _joined(now, found.metadata.generation))
        return Outcome.again(after=self._heartbeat)

    async def _apply(self, key: Key) -> Outcome:
        work = self._works.get(key.name, key.namespace)
        if work is None:
            return Outcome.done
        generation, said = work.metadata.generation, find_condition(work.status.conditions, AVAILABLE)
        if said is None or said.observed_generation != generation:
            if key.namespace in self.stuck:
                return Outcome.done
            if (wait := self._unready(key, generation)) > 0.0:
                return Outcome.again(after=wait)
            now = self._clock.now().replace(microsecond=0)
            await self._say(Work, key, _applied(work, now, generation))
        return Outcome.done

    def _unready(self, key: Key, generation: int) -> float:
        now = asyncio.get_running_loop().time()
        if self._met.get(key, (0, 0.0))[0] != generation:
            self._met[key] = (generation, now)
        return self._met[key][1] + self._ready_after - now

    async def _say(self, kind: Any, key: Key, status: dict[str, Any]) -> None:
        patch = MergePatch({"status": status})
        await self._client.patch(kind, key.name, patch, key.namespace, subresource="status", manager=MANAGER)


def _joined(now: datetime, generation: int) -> dict[str, Any]:
    conditions = [
        _said("Healthy", "InternalMemberClusterHealthy", now, generation),
        _said("Joined", "InternalMemberClusterJoined", now, generation),
    ]
    agent = {"type": MEMBER_AGENT, "conditions": conditions, "lastReceivedHeartbeat": now.isoformat()}
    usage = {name: {"cpu": "1k", "memory": "1Ti"} for name in ("capacity", "allocatable", "available")}
    node_count = {"value": "1", "observationTime": now.isoformat()}
    return {
        "agentStatus": [agent],
        "resourceUsage": {**usage, "observationTime": now.isoformat()},
        "properties": {"kubernetes-fleet.io/node-count": node_count},
    }


def _applied(work: Work, now: datetime, generation: int) -> dict[str, Any]:
    return {
        "conditions": [
            _said(APPLIED, "WorkAppliedComplete", now, generation),
            _said(AVAILABLE, "WorkAvailable", now, generation),
        ],
        "manifestConditions": [
            {"identifier": _identifier(number, one), "conditions": _of_manifest(now)}
            for number, one in enumerate(work.spec.workload.manifests)
        ],
    }


def _of_manifest(now: datetime) -> list[dict[str, Any]]:
    return [_said(APPLIED, "ManifestApplied", now, 1), _said(AVAILABLE, "ManifestAvailable", now, 1)]


def _identifier(number: int, manifest: Any) -> dict[str, Any]:
    group, _, version = manifest["apiVersion"].rpartition("/")
    meta = manifest["metadata"]
    return {
        "ordinal": number,
        "group": group,
        "version": version,
        "kind": manifest["kind"],
        "resource": f"{manifest['kind'].lower()}s",
        "namespace": meta.get("namespace", ""),
        "name": meta["name"],
    }


def _said(type: str, reason: str, now: datetime, generation: int) -> dict[str, Any]:  # noqa: A002  # its name there
    return {
        "type": type,
        "status": "True",
        "reason": reason,
        "message": "it is as the hub wants it",
        "lastTransitionTime": now.isoformat(),
        "observedGeneration": generation,
    }
