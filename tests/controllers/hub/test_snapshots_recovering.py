"""Snapshots after a crash: whatever was written last, the next process ends where the first would have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from kedge.api.core import Namespace
from kedge.api.fleet import IS_LATEST, PARENT_PLACEMENT, RESOURCE_HASH, RESOURCE_INDEX
from kedge.api.placement_kinds import CLUSTER, NAMESPACED
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream, Transport
from support.fleets import client_of, fleet_cluster, managed
from support.snapping import QUIET, SHOP, User, bench, start
from support.virtual import run
from support.waiting import until_so

LARGE = 300 * 1024


class Crashing:
    """A transport that breaks for good with the answer to the write of this number."""

    def __init__(self, inner: Transport, after: int) -> None:
        self._inner = inner
        self._left = after
        self.writes = 0
        self.crashed = False

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.crashed:
            raise ConnectionFailed("crashed", sent=False)
        response = await self._inner.send(request, timeout=timeout)
        if request.method != "GET" and "/events" not in request.path:
            self.writes += 1
            if self.writes == self._left:
                self.crashed = True
                raise ConnectionFailed("crashed", sent=True)
        return response

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        if self.crashed:
            raise ConnectionFailed("crashed", sent=False)
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


class Late:
    """A transport on which the next snapshot of resources is made only when it is told to; until then, no answer."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.is_late = False
        self.held: list[Request] = []

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.is_late and request.method == "POST" and request.path.endswith("resourcesnapshots"):
            self.is_late = False
            self.held.append(request)
            raise ConnectionFailed("no answer", sent=True)
        return await self._inner.send(request, timeout=timeout)

    async def carry_out(self) -> list[int]:
        """Have what was held made after all; gives the server's answers."""
        return [(await self._inner.send(request, timeout=1.0)).status for request in self.held]

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def first_process(cluster: EmbeddedCluster, after: int) -> AsyncIterator[Crashing]:
    async with managed() as manager:
        transport = Crashing(cluster.transport(), after)
        hub = await manager.connect("hub", transport)
        start(manager, hub, CLUSTER, collect=0.0)
        yield transport


async def drama(cluster: EmbeddedCluster) -> None:
    """All that a user does to one placement."""
    async with client_of(cluster) as client:
        hub = User(client)
        for number in range(4):
            await hub.keep(f"map-{number}", str(number) * LARGE)
        await hub.place(policy={"placementType": "PickN", "numberOfClusters": 1}, revisionHistoryLimit=2)
        for number in range(3):
            await asyncio.sleep(QUIET)
            await hub.keep("map-1", str(number) * LARGE)
            await hub.change({"policy": {"numberOfClusters": number}})
        await asyncio.sleep(QUIET)
        await hub.change({"policy": {"tolerations": [{"key": "a", "operator": "Exists"}]}})
        await asyncio.sleep(QUIET)


async def seen(hub: User) -> dict[str, Any]:
    """What is left to see, without what no crash can leave the same: how often something was tried."""
    newest = await hub.newest()
    parts = [
        each
        for each in await hub.resources_of()
        if each["metadata"]["labels"][RESOURCE_INDEX] == newest["metadata"]["labels"][RESOURCE_INDEX]
    ]
    policies = [
        each["spec"] | each["metadata"]["annotations"]
        for each in await hub.policies_of()
        if each["metadata"]["labels"][IS_LATEST] == "true"
    ]
    return {
        "hash": newest["metadata"]["annotations"][RESOURCE_HASH],
        "parts": sorted((each["metadata"]["name"], len(each["spec"]["selectedResources"])) for each in parts),
        "revisions": len(await hub.indexes()),
        "policy": policies,
        "finalizers": (await hub.client.get(CLUSTER.placement, "crp")).metadata.finalizers,
    }


async def played(after: int) -> tuple[dict[str, Any], Crashing]:
    """The drama, with a crash after so many writes, and a second process to go on."""
    async with fleet_cluster() as cluster:
        async with client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
        async with asyncio.TaskGroup() as tasks:
            async with first_process(cluster, after) as transport:
                playing = tasks.create_task(drama(cluster))
                while not playing.done() and not transport.crashed:
                    await asyncio.sleep(0.01)
            async with bench(cluster=cluster, collect=0.0) as hub:
                await playing
                await asyncio.sleep(QUIET)
                return await seen(hub), transport


@pytest.mark.timeout(400)  # as many runs as there are writes
def test_a_crash_after_any_write_ends_as_without_one() -> None:
    wanted, calm = run(played(after=0))
    assert calm.writes > 20
    assert wanted["parts"] == [("crp-3-0", 2), ("crp-3-snapshot", 3)]
    for after in range(1, calm.writes + 1):
        got, _ = run(played(after))
        assert _without_numbers(got) == _without_numbers(wanted), f"after write {after}"


def _without_numbers(found: dict[str, Any]) -> dict[str, Any]:
    """A crash may cost a revision in between: what changes twice meanwhile is then seen once."""
    return found | {"parts": [count for _, count in found["parts"]]}


def test_a_new_process_writes_nothing_when_all_is_as_it_should_be() -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster:
            async with client_of(cluster) as client:
                await client.create(Namespace, {"metadata": {"name": "shop"}})
            async with bench(cluster=cluster) as hub:
                for number in range(4):
                    await hub.keep(f"map-{number}", str(number) * LARGE)
                await hub.place(SHOP)
                await hub.until_indexes([0])
                await asyncio.sleep(QUIET)
            async with first_process(cluster, 0) as transport:
                await asyncio.sleep(QUIET)
                assert transport.writes == 0

    run(main())


def test_a_change_while_no_process_ran_is_found_by_the_next() -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            async with bench(cluster=cluster) as hub:
                await hub.keep("a", "1")
                await hub.place(SHOP)
                await hub.until_indexes([0])
            await User(client).keep("a", "2")
            async with bench(cluster=cluster) as hub:
                await hub.until_indexes([0, 1])
                assert await hub.values() == {"a": "2"}

    run(main())


@pytest.mark.parametrize("change_meanwhile", [False, True])
def test_a_label_that_a_crash_took_off_comes_back_or_goes_to_the_next(change_meanwhile: bool) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            async with bench(cluster=cluster) as hub:
                await hub.keep("a", "1")
                await hub.place(SHOP)
                await hub.until_indexes([0])
            off = MergePatch({"metadata": {"labels": {IS_LATEST: "false"}}})
            await client.patch(CLUSTER.resource_snapshot, "crp-0-snapshot", off)
            await client.patch(CLUSTER.policy_snapshot, "crp-0", off)
            if change_meanwhile:
                await User(client).keep("a", "2")
            async with bench(cluster=cluster) as hub:
                await asyncio.sleep(QUIET)
                name = "crp-1-snapshot" if change_meanwhile else "crp-0-snapshot"
                assert (await hub.newest())["metadata"]["name"] == name
                [policy] = await hub.policies_of()
                assert policy["metadata"]["labels"][IS_LATEST] == "true"

    run(main())


@pytest.mark.parametrize("goes_by", ["binding", "run", "memory"])
def test_the_number_of_a_revision_that_was_deleted_is_not_given_again(goes_by: str) -> None:
    """Every cluster that has it would have the next one at once, past any budget or gate."""

    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            async with bench(cluster=cluster) as hub:
                await hub.keep("a", "1")
                await hub.place(SHOP)
                await hub.until_indexes([0])
                if goes_by == "memory":
                    await hub.keep("a", "2")
                    await client.delete(CLUSTER.resource_snapshot, "crp-0-snapshot")
                    await hub.until_indexes([1])
            if goes_by == "memory":
                return
            await _go_by_the_first(client, goes_by)
            await User(client).keep("a", "2")
            await client.delete(CLUSTER.resource_snapshot, "crp-0-snapshot")
            async with bench(cluster=cluster) as hub:
                await hub.until_indexes([1])

    run(main())


def test_a_number_that_was_asked_for_without_an_answer_is_never_given_to_other_content() -> None:
    """A server may carry it out when clusters have the other content by that name, and its revision was deleted."""

    async def main() -> None:
        async with late_hub() as (hub, transport):
            transport.is_late = True
            await hub.keep("a", "2")
            while not transport.held:
                await asyncio.sleep(0.01)
            await hub.keep("a", "3")
            await hub.until_indexes([0, 2])
            await hub.client.delete(CLUSTER.resource_snapshot, "crp-2-snapshot")
            await hub.until_indexes([0, 3])
            assert await transport.carry_out() == [201]
            await asyncio.sleep(QUIET)
            assert await hub.values() == {"a": "3"}
            assert await hub.indexes() == [0, 1, 3]

    run(main())


def test_a_number_that_was_asked_for_without_an_answer_is_asked_for_again_if_the_content_is_the_same() -> None:
    async def main() -> None:
        async with late_hub() as (hub, transport):
            transport.is_late = True
            await hub.keep("a", "2")
            await hub.until_indexes([0, 1])
            assert await transport.carry_out() == [409]
            await hub.keep("a", "3")
            await hub.until_indexes([0, 1, 2])

    run(main())


class Slow:
    """A transport on which whatever is done to a snapshot arrives a second late, once it is slow."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.is_slow = False
        self.answers: list[tuple[str, int]] = []

    async def send(self, request: Request, *, timeout: float) -> Response:
        if not self.is_slow or "snapshots/" not in request.path:
            return await self._inner.send(request, timeout=timeout)
        await asyncio.sleep(1.0)
        response = await self._inner.send(request, timeout=timeout)
        self.answers.append((request.method, response.status))
        return response

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize("change", ["resources", "policy"])
def test_it_is_no_error_that_a_snapshot_goes_with_its_namespace_while_it_is_marked(
    change: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            transport = Slow(cluster.transport())
            start(manager, await manager.connect("hub", transport), NAMESPACED, collect=0.0)
            hub = User(client, NAMESPACED)
            await hub.place()
            await hub.until_indexes([0])
            transport.is_slow = True
            await (hub.keep("a") if change == "resources" else hub.change({"policy": {"placementType": "PickAll"}}))
            await asyncio.sleep(0.5)
            await client.delete(Namespace, "shop")
            await until_so(lambda: _is_gone(client, "shop"))
            assert transport.answers[0] == ("PATCH", 404)

    with caplog.at_level(logging.ERROR):
        run(main())
    assert caplog.messages == []


async def _is_gone(client: Client, namespace: str) -> bool:
    return namespace not in [one.metadata.name for one in (await client.list(Namespace)).items]


@asynccontextmanager
async def late_hub() -> AsyncIterator[tuple[User, Late]]:
    """A hub that has written revision 0 down."""
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        await client.create(Namespace, {"metadata": {"name": "shop"}})
        transport = Late(cluster.transport())
        start(manager, await manager.connect("hub", transport), CLUSTER, collect=0.0)
        hub = User(client)
        await hub.keep("a", "1")
        await hub.place(SHOP)
        await hub.until_indexes([0])
        yield hub, transport


def test_what_is_left_of_an_earlier_placement_uses_up_no_number() -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            await client.create(Namespace, {"metadata": {"name": "shop"}})
            await _go_by_the_first(client, "run")
            await _go_by_the_first(client, "binding")
            await asyncio.sleep(5)
            async with bench(cluster=cluster) as hub:
                await hub.keep("a", "1")
                await hub.place(SHOP)
                await hub.until_indexes([0])

    run(main())


async def _go_by_the_first(client: Client, what: str) -> None:
    meta = {"name": "one", "labels": {PARENT_PLACEMENT: "crp"}}
    if what == "binding":
        decision = {"clusterName": "a", "selected": True, "reason": "picked"}
        spec = {"state": "Bound", "targetCluster": "a", "clusterDecision": decision}
        given = {"resourceSnapshotName": "crp-0-snapshot", "schedulingPolicySnapshotName": "crp-0"}
        await client.create(CLUSTER.binding, {"metadata": meta, "spec": {**spec, **given}})
        return
    await client.create(
        CLUSTER.run, {"metadata": meta, "spec": {"placementName": "crp", "stagedRolloutStrategyName": "any"}}
    )
    used = MergePatch({"status": {"resourceSnapshotIndexUsed": "0"}})
    await client.patch(CLUSTER.run, "one", used, subresource="status")
