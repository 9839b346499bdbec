"""Clusters with the fleet's kinds installed, and managers that run controllers against them; meant for virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.condition import Condition, find_condition
from kedge.api.crds import crds
from kedge.api.dialect import Dialect
from kedge.api.fleet import member_namespace
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from support.stage import LoopClock
from support.waiting import until_so

CRDS = untyped(CustomResourceDefinition.resource)
DEFINITIONS = crds(Dialect.seed)  # here, since it reads our sources
IDENTITY = {"kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system"}


@asynccontextmanager
async def fleet_cluster(name: str = "hub", *, seed: int = 1, kinds: bool = True) -> AsyncIterator[EmbeddedCluster]:
    """An embedded cluster; with `kinds`, one that knows the fleet's."""
    cluster = EmbeddedCluster(name, clock=LoopClock(), rng=Random(seed))
    cluster.start()
    if kinds:
        async with client_of(cluster) as client:
            for definition in DEFINITIONS:
                await client.create(CRDS, definition)
            await until_so(lambda: _all_established(client))
    try:
        yield cluster
    finally:
        cluster.stop()


async def _all_established(client: Client) -> bool:
    found = (await client.list(CRDS)).items
    said = [one for item in found for one in item.get("status", {}).get("conditions", ())]
    return [one["status"] for one in said if one["type"] == "Established"] == ["True"] * len(found)


@asynccontextmanager
async def client_of(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def managed(seed: int = 1) -> AsyncIterator[Manager]:
    """A manager, running once the block has something in it to run: controllers may be added at any time."""
    async with Manager(clock=LoopClock(), rng=Random(seed), grace=1.0) as manager:
        running = asyncio.create_task(manager.run(signals=False))
        yield manager
        manager.stop()
        await running


class Book:
    """The hub as a user of it sees it: members by name."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def add(self, name: str, **spec: Any) -> MemberCluster:
        body = {"metadata": {"name": name}, "spec": {"identity": IDENTITY, "heartbeatPeriodSeconds": 15, **spec}}
        return await self.client.create(MemberCluster, body)

    async def member(self, name: str) -> MemberCluster:
        return await self.client.get(MemberCluster, name)

    async def said(self, name: str) -> InternalMemberCluster:
        return await self.client.get(InternalMemberCluster, name, member_namespace(name))

    async def condition(self, name: str, kind: str) -> Condition | None:
        return find_condition((await self.member(name)).status.conditions, kind)

    async def reason(self, name: str, kind: str) -> str | None:
        found = await self.condition(name, kind)
        return found.reason if found is not None else None

    async def until_reason(self, name: str, kind: str, reason: str | None, within: float = 60.0) -> None:
        async def so() -> bool:
            return await self.reason(name, kind) == reason

        await until_so(so, within)

    async def raw(self, kind: Any, name: str, namespace: str | None = None) -> Untyped:
        return await self.client.get(untyped(kind.resource), name, namespace)
