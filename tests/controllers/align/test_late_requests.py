"""Requests that arrive late: one that an agent has given up on must not bring back what was asked for before."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from controllers.align.align_bed import (
    HUB_DEFINITIONS,
    MEMBER_DEFINITIONS,
    SHOP,
    AlignBed,
    _client,
    _server,
    align_bed,
)
from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work
from kedge.controllers.align.execution import Execution
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response, Transport
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

WORKS = "karmada-es-a"


class LosingTransport:
    """A transport that loses one request on its way: the test delivers it later."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream = inner.stream
        self.close = inner.close
        self.lose_number = ""
        """That of the manifest whose request is lost."""
        self.lost: Request | None = None

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.lost is None and self.lose_number and f'"{SEQUENCE}":"{self.lose_number}"'.encode() in request.body:
            self.lost = request
            raise ConnectionFailed("no answer in time", sent=True)
        return await self._inner.send(request, timeout=timeout)

    async def deliver(self) -> Response:
        assert self.lost is not None
        return await self._inner.send(self.lost, timeout=10)


def manifest(number: int) -> dict[str, Any]:
    labels = {"app": "demo"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": f"app:{number}"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo", "namespace": SHOP, "annotations": {SEQUENCE: str(number)}},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.mark.parametrize("lost", [1, 2], ids=["what creates an object", "what changes one"])
def test_a_request_that_is_late_does_not_undo_what_came_after_it(lost: int) -> None:
    async def body() -> None:
        clock = LoopClock()
        async with AsyncExitStack() as stack:
            hub = await _server(stack, "hub", clock, HUB_DEFINITIONS, nodes=0)
            member = await _server(stack, "a", clock, MEMBER_DEFINITIONS, nodes=0)
            agent = await stack.enter_async_context(Manager(component="agent", clock=clock, rng=Random(3)))
            losing = LosingTransport(member.transport())
            losing.lose_number = str(lost)
            on_hub = await agent.connect("hub", hub.transport(), limiter=Limiter(rate=0))
            on_member = await agent.connect("a", losing, limiter=Limiter(rate=0))
            agent.add_controller(Execution(on_hub, on_member, "a", clock=clock).controller)
            user, there = _client(hub), _client(member)
            await user.create(Namespace, {"metadata": {"name": WORKS}})
            work = {
                "metadata": {"name": "demo", "namespace": WORKS},
                "spec": {"workload": {"manifests": [manifest(1)]}},
            }
            await user.create(Work, work)
            running = asyncio.create_task(agent.run(signals=False))

            async def until(number: int) -> None:
                async with asyncio.timeout(300):
                    while True:
                        found = (await there.list(Deployment, SHOP)).items
                        if found and found[0].metadata.annotations.get(SEQUENCE) == str(number):
                            return
                        await asyncio.sleep(0.1)

            if lost == 2:
                await until(1)
                await user.patch(Work, "demo", MergePatch({"spec": {"workload": {"manifests": [manifest(2)]}}}), WORKS)
            async with asyncio.timeout(300):
                while losing.lost is None:
                    await asyncio.sleep(0.1)
            await user.patch(Work, "demo", MergePatch({"spec": {"workload": {"manifests": [manifest(3)]}}}), WORKS)
            await until(3)
            assert losing.lost is not None
            late = await losing.deliver()
            assert late.status == 409
            await until(3)
            agent.stop()
            await running

    run(body())


def test_a_work_that_arrives_when_its_cluster_has_left_runs_nothing() -> None:
    """Its creation got no answer, was done once more, and comes after all, when nobody asks for pods there."""
    ways: list[LosingTransport] = []

    def losing(inner: Transport) -> Transport:
        ways.append(LosingTransport(inner))
        ways[0].lose_number = "1"
        return ways[0]

    async def body() -> None:
        async with align_bed("a", "b", way=losing) as bed:
            await bed.deploy(Deployment, {"a": 2})
            await bed.until_images(*["app:1"] * 2)
            moved = {"spec": {"clusters": [{"name": "b", "replicas": 2}]}}
            await bed.hub.patch(ResourceBinding, "demo-deployment", MergePatch(moved), SHOP)
            await until_so(lambda: _has_left(bed, "a"))
            assert ways[0].lost is not None
            late = await ways[0].deliver()
            assert late.status == 201
            for _ in range(600):
                assert not (await bed.members["a"].list(Deployment, SHOP)).items
                await asyncio.sleep(0.1)
            assert await _has_left(bed, "a")
            assert await bed.images() == ["app:1"] * 2

    run(body())


async def _has_left(bed: AlignBed, name: str) -> bool:
    works = (await bed.hub.list(Work, f"karmada-es-{name}")).items
    return not works and not (await bed.members[name].list(Deployment, SHOP)).items
