"""The scheduler when processes die, answers get lost and others are faster: what it ends in is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from random import Random
from typing import Any

import pytest

from controllers.hub.scheduling import Hub, a_while, hub_of, two_for_one
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream
from support.virtual import run

WEST, EAST = ("cluster-1", "cluster-2", "cluster-3"), ("cluster-4", "cluster-5", "cluster-6")


class Breaking:
    """A transport that is cut for good after so many writes, or loses answers now and then."""

    def __init__(self, hub: Hub, *, after: int | None = None, losing: float = 0.0, seed: int = 1) -> None:
        self.cut = asyncio.Event()
        self.writes = 0
        self._inner = InProcessTransport(hub.cluster.server, rng=Random(seed), delay=(0.001, 0.5), latency=(0.0, 0.02))
        self._after = after
        self._losing = losing
        self._rng = Random(seed)

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.cut.is_set():
            raise ConnectionFailed("cut", sent=False)
        answer = await self._inner.send(request, timeout=timeout)
        if request.method == "GET":
            return answer
        self.writes += 1
        if self.writes == self._after:
            self.cut.set()
            self._inner.disconnect("cut")
        if self.cut.is_set() or self._rng.random() < self._losing:
            raise ConnectionFailed("lost", sent=True)
        return answer

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


def located(where: str) -> dict[str, Any]:
    terms = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"loc": where}}}]}
    affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"placementType": "PickN", "affinity": affinity}


async def first_placement(hub: Hub) -> None:
    await hub.place(policy=located("west"), number=2)


async def another_policy(hub: Hub) -> None:
    await hub.snapshot("crp", 1, located("east"), 2, generation=2)


async def fewer(hub: Hub) -> None:
    await hub.annotate("crp-0", number="1", generation="2")


async def an_eviction(hub: Hub) -> None:
    await hub.hold("cluster-3")
    await hub.evict("cluster-3")


async def the_end(hub: Hub) -> None:
    await hub.client.delete(hub.kinds.placement, "crp")


Change = Callable[[Hub], Awaitable[None]]
CHANGES: dict[str, tuple[Change, str]] = {
    "first placement": (first_placement, "crp-0"),
    "another policy": (another_policy, "crp-1"),
    "fewer": (fewer, "crp-0"),
    "an eviction": (an_eviction, "crp-0"),
    "the end": (the_end, ""),
}


async def play(name: str, after: int | None, **faults: Any) -> tuple[Any, int]:
    """What a change ends in, and how many writes it took, if the process dies after so many and another takes over."""
    change, policy = CHANGES[name]
    async with hub_of() as hub:
        await hub.join(*WEST, labels={"loc": "west"})
        await hub.join(*EAST, labels={"loc": "east"})
        if change is not first_placement:
            async with hub.scheduling():
                await first_placement(hub)
                await a_while()
                await hub.bind(*WEST)
                await a_while()
        breaking = Breaking(hub, after=after, **faults)
        async with hub.scheduling(breaking, seed=2):
            await change(hub)
            await a_while(30)
            assert two_for_one(await hub.bindings()) == []
        if breaking.cut.is_set():
            async with hub.scheduling(seed=3):
                await a_while(30)
        return await seen(hub, policy), breaking.writes


async def seen(hub: Hub, policy: str) -> Any:
    bindings = await hub.bindings()
    assert two_for_one(bindings) == []
    rows = [
        (one.spec.target_cluster, one.spec.state, bool(one.metadata.deletion_timestamp), one.metadata.finalizers,
         one.spec.scheduling_policy_snapshot_name, one.spec.cluster_decision)
        for one in bindings
    ]  # fmt: skip
    if not policy:
        return rows, await hub.is_gone()
    status = (await hub.policy(policy)).status
    assert status is not None
    told = [(each.reason, each.observed_generation) for each in status.conditions]
    return sorted(rows, key=repr), status.target_clusters, status.observed_crp_generation, told


@cache
def undisturbed(name: str) -> tuple[Any, int]:
    return run(play(name, None))


@pytest.mark.parametrize("name", CHANGES)
def test_a_crash_after_any_write_ends_in_the_same(name: str) -> None:
    expected, writes = undisturbed(name)
    assert writes > 0
    for after in range(1, writes + 1):
        assert run(play(name, after))[0] == expected, f"after write {after} of {writes}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", CHANGES)
def test_lost_answers_never_make_two_bindings_for_one_cluster(name: str, seed: int) -> None:
    assert run(play(name, None, losing=0.4, seed=seed))[0] == undisturbed(name)[0]


def test_two_schedulers_at_once_end_in_one_binding_for_each_cluster() -> None:
    """A lease elects, but does not fence: for a moment there may be two."""

    async def scenario() -> None:
        async with hub_of(members=[*WEST, *EAST]) as hub:
            async with hub.scheduling(Breaking(hub, seed=5), seed=2), hub.scheduling(Breaking(hub, seed=6), seed=3):
                await hub.place()
                await a_while(30)
            bindings = await hub.bindings()
            assert two_for_one(bindings) == []
            assert {each.spec.target_cluster for each in bindings} == {*WEST, *EAST}

    run(scenario())
