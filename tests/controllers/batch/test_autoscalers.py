"""Autoscalers on an embedded server: read, stopped, given back, and waking whom they concern."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.api.oam.rollout_plan import OnAutoscaler
from kedge.controllers.batch.autoscalers import NONE_FOR, AutoscalerAccess
from kedge.controllers.batch.workloads import WorkloadAccess
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.errors import Conflict
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.transport import Request, Response, Transport
from kedge.plan.batching.autoscalers import HPA, PAUSED, SCALED_OBJECT, autoscaler_step, conflicts, give_back
from kedge.plan.batching.moves import WorkloadRef
from support.stage import LoopClock
from support.virtual import run

SHOP = "shop"
SOURCE = WorkloadRef("apps/v1", "Deployment", SHOP, "web-v1")
TARGET = WorkloadRef("apps/v1", "Deployment", SHOP, "web-v2")
CLAIM = "Rollout/web/u-1"
HPAS, SCALED_OBJECTS = untyped(HPA), untyped(SCALED_OBJECT)
ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
KEDA = {
    "metadata": {"name": str(SCALED_OBJECT)},
    "spec": {
        "group": SCALED_OBJECT.group,
        "scope": "Namespaced",
        "names": {"kind": SCALED_OBJECT.kind, "plural": SCALED_OBJECT.plural},
        "versions": [{"name": SCALED_OBJECT.version, "served": True, "storage": True, "schema": ANYTHING}],
    },
}


class Bed:
    """A cluster, the access under test, and who was woken."""

    def __init__(self, client: Client, access: AutoscalerAccess, workloads: WorkloadAccess, counted: Counted) -> None:
        self.counted = counted
        self.client = client
        self.access = access
        self.workloads = workloads
        self.woken: list[str] = []

    async def reconcile(self, key: Key) -> Outcome:
        self.woken.append(str(key.namespace))
        return Outcome.done

    async def hpa(self, name: str = "web") -> None:
        scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": SOURCE.name}
        spec = {"scaleTargetRef": scaled, "minReplicas": 2, "maxReplicas": 9}
        await self.client.create(HPAS, {"metadata": {"name": name, "namespace": SHOP}, "spec": spec})

    async def keda(self) -> None:
        await self.client.create(CustomResourceDefinition, KEDA)
        await asyncio.sleep(30)
        spec = {"scaleTargetRef": {"name": SOURCE.name}}
        await self.client.create(SCALED_OBJECTS, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})

    async def take_over(self) -> bool:
        """One step of taking over; whether it is done."""
        found = autoscaler_step(await self.access.read(SHOP), (TARGET, SOURCE), OnAutoscaler.take_over, CLAIM).step
        for write in found.writes:
            await self.workloads.write(write)
        return found.is_done

    async def give_back(self, target: WorkloadRef | None) -> int:
        writes = give_back(await self.access.read(SHOP), CLAIM, target)
        for write in writes:
            await self.workloads.write(write)
        return len(writes)

    async def scaled(self, kind: Any, name: str = "web") -> Any:
        return (await self.client.get(kind, name, SHOP))["spec"]["scaleTargetRef"]["name"]


class NotOfKeda:
    """A transport to a server that lets nobody read ScaledObjects."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream, self.close = inner.stream, inner.close

    async def send(self, request: Request, *, timeout: float) -> Response:
        if SCALED_OBJECT.plural in request.path:
            status = b'{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no"}'
            return Response(403, status)
        return await self._inner.send(request, timeout=timeout)


class Counted:
    """A transport that counts how often the HorizontalPodAutoscalers are listed."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream, self.close = inner.stream, inner.close
        self.lists = 0

    async def send(self, request: Request, *, timeout: float) -> Response:
        self.lists += request.method == "GET" and request.path.endswith(f"/{SHOP}/{HPA.plural}")
        return await self._inner.send(request, timeout=timeout)


@asynccontextmanager
async def playing(*, forbids_keda: bool = False) -> AsyncIterator[Bed]:
    clock = LoopClock()
    cluster = EmbeddedCluster("one", clock=clock, rng=Random(1))
    cluster.start()
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    await client.create(Namespace, {"metadata": {"name": SHOP}})
    counted = Counted(cluster.transport())
    transport: Transport = NotOfKeda(counted) if forbids_keda else counted
    async with Manager(clock=clock, rng=Random(2)) as manager:
        there = await manager.connect("one", transport)
        bed = Bed(client, AutoscalerAccess(there, (SHOP,)), WorkloadAccess(there, (SHOP,)), counted)
        manager.add_controller(Controller("test", bed.reconcile, bed.access.sources(_wakes)))
        running = asyncio.create_task(manager.run(signals=False))
        await asyncio.sleep(1)
        yield bed
        manager.stop()
        await running
    cluster.stop()
    await client.close()


def _wakes(namespace: str) -> Iterable[Key]:
    return [Key("one", namespace, "rollout")]


def test_an_hpa_is_stopped_and_scales_the_target_in_the_end() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.hpa()
            assert [await bed.take_over(), await bed.take_over()] == [False, True]
            assert await bed.scaled(HPAS) == "web-v1-DisableByRollout"
            assert [await bed.give_back(TARGET), await bed.give_back(TARGET)] == [1, 0]
            assert await bed.scaled(HPAS) == "web-v2"

    run(scene())


def test_a_scaled_object_is_paused_and_as_before_after_a_failure() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.keda()
            assert [await bed.take_over(), await bed.take_over()] == [False, True]
            stopped = await bed.client.get(SCALED_OBJECTS, "web", SHOP)
            assert stopped["metadata"]["annotations"][PAUSED] == "true"
            assert [await bed.give_back(None), await bed.give_back(None)] == [1, 0]
            back = await bed.client.get(SCALED_OBJECTS, "web", SHOP)
            assert not back["metadata"].get("annotations")
            assert back["spec"] == {"scaleTargetRef": {"name": "web-v1"}}

    run(scene())


def test_without_keda_there_are_only_hpas() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.hpa()
            assert [one.ref.kind for one in await bed.access.read(SHOP)] == [HPA.kind]
            assert await bed.access.read("elsewhere") == ()

    run(scene())


def test_one_that_was_deleted_meanwhile_is_not_missed() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.hpa()
            await bed.hpa("more")
            await bed.take_over()
            await bed.client.delete(HPAS, "web", SHOP)
            assert await bed.give_back(TARGET) == 1
            assert await bed.scaled(HPAS, "more") == "web-v2"

    run(scene())


def test_one_that_changed_since_it_was_read_is_not_overwritten() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.hpa()
            seen = await bed.access.read(SHOP)
            await bed.take_over()
            (write,) = autoscaler_step(seen, (SOURCE,), OnAutoscaler.take_over, CLAIM).step.writes
            with pytest.raises(Conflict):
                await bed.workloads.write(write)

    run(scene())


def test_rollouts_of_its_namespace_are_woken_when_one_comes_and_goes() -> None:
    async def scene() -> None:
        async with playing() as bed:
            await bed.hpa()
            await asyncio.sleep(1)
            assert bed.woken == [SHOP]
            assert len(conflicts(await bed.access.read(SHOP), (SOURCE,))) == 1
            await bed.client.delete(HPAS, "web", SHOP)
            await asyncio.sleep(1)
            assert bed.woken == [SHOP, SHOP]

    run(scene())


def test_without_the_right_to_read_scaled_objects_it_goes_on_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with playing(forbids_keda=True) as bed:
            await bed.hpa()
            with caplog.at_level(logging.WARNING):
                assert [len(await bed.access.read(SHOP)) for _ in range(2)] == [1, 1]

    run(scene())
    assert len([one for one in caplog.messages if "going on without KEDA's ScaledObjects" in one]) == 1


def test_a_namespace_without_any_is_not_listed_again_for_some_seconds() -> None:
    async def body() -> None:
        async with playing() as bed:
            before = bed.counted.lists
            for _ in range(3):
                assert await bed.access.read(SHOP) == ()
            assert bed.counted.lists == before + 1
            await asyncio.sleep(NONE_FOR)
            await bed.access.read(SHOP)
            assert bed.counted.lists == before + 2

    run(body())


def test_one_that_a_watch_tells_of_is_read_at_once() -> None:
    async def body() -> None:
        async with playing() as bed:
            assert await bed.access.read(SHOP) == ()
            await bed.hpa()
            await asyncio.sleep(0.1)  # the watch
            assert [one.ref.name for one in await bed.access.read(SHOP)] == ["web"]
            before = bed.counted.lists
            await bed.access.read(SHOP)
            assert bed.counted.lists == before + 1  # what is there is read each time

    run(body())
