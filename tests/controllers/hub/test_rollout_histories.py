"""Random histories of a rollout: members that answer late or not well, users who change their minds, restarts.

Every write of a binding is judged within that write, from what the hub's own store holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from random import Random

import msgspec
import pytest

from controllers.hub.rolling import Rolling
from kedge.api.binding import BindingState, ClusterResourceBinding
from kedge.api.condition import TRUE, find_condition
from kedge.api.fleet import PAUSED, PINNED
from kedge.api.placement_kinds import CLUSTER, Binding
from kedge.api.reasons import AVAILABLE as IS_AVAILABLE
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.controllers.hub.rollout import Rollout
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.kube.errors import Conflict, NotFound
from plan.rolling.making import AVAILABLE, IN_PROGRESS, NOT_AVAILABLE, UNTRACKABLE
from support.fleets import client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run

MEMBERS = [f"m{number}" for number in range(7)]
PICKED, UNAVAILABLE, SURGE, PERIOD = 4, 2, 1, 5.0


class Judge:
    """Says at once which write broke which promise."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.wrong: list[str] = []
        self.moved = 0
        self._bindings: dict[str, ClusterResourceBinding] = {}
        cluster.server.store.subscribe(self._follow)

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource.plural != CLUSTER.binding.resource.plural:
            return
        name = change.version.name
        before = self._bindings.pop(name, None)
        if change.type == "DELETED":
            return
        now = msgspec.json.decode(change.version.body, type=ClusterResourceBinding)
        others = list(self._bindings.values())
        self._bindings[name] = now
        if before is not None:
            self._ask(before, now, others)

    def _ask(
        self, before: ClusterResourceBinding, now: ClusterResourceBinding, others: list[ClusterResourceBinding]
    ) -> None:
        if before.spec.state == BindingState.scheduled and now.spec.state == BindingState.bound:
            self.moved += 1
            holding = sum(one.spec.state != BindingState.scheduled or _leaves(one) for one in others)
            if holding >= PICKED + SURGE:
                self.wrong.append(f"{now.spec.target_cluster} is added while {holding} hold resources")
        repointed = before.spec.resource_snapshot_name not in ("", now.spec.resource_snapshot_name)
        if repointed or (_leaves(now) and not _leaves(before)):
            self.moved += 1
            available = sum(_is_available(one) for one in others)
            if _is_available(before) and available < PICKED - UNAVAILABLE:
                self.wrong.append(f"{now.spec.target_cluster} is disturbed while {available} others are available")


def _leaves(binding: Binding) -> bool:
    return binding.metadata.deletion_timestamp is not None


def _is_available(binding: Binding) -> bool:
    """Proven at its own generation; also where only time proves it, which is long over or has just begun."""
    said = find_condition(binding.status.conditions, IS_AVAILABLE)
    if said is None or said.status != TRUE or _leaves(binding):
        return False
    return said.observed_generation == binding.metadata.generation


class Members:
    """Answers for every member, in its own time; resources with an odd index never work on odd members."""

    def __init__(self, placed: Rolling, rng: Random) -> None:
        self._placed = placed
        self._rng = rng
        self.all_work = False

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.uniform(0.05, 0.6))
            for cluster, binding in (await self._placed.all()).items():
                if self._rng.random() < 0.5:
                    with suppress(NotFound, Conflict):
                        await self._answer(cluster, binding)

    async def _answer(self, cluster: str, binding: Binding) -> None:
        if _leaves(binding):
            await self._placed.let_binding_go(cluster)
        elif binding.spec.resource_snapshot_name and (not _is_bound(binding) or _is_spoken_of(binding)):
            await self._report(cluster, binding)

    async def _report(self, cluster: str, binding: Binding) -> None:
        said = binding.status.conditions
        if not any(one.observed_generation == binding.metadata.generation for one in said if _is_reported(one.type)):
            await self._placed.say(IN_PROGRESS, cluster)
        elif find_condition(said, IS_AVAILABLE) is None or (self.all_work and not _is_available(binding)):
            await self._placed.say(self._result(cluster, binding), cluster)

    def _result(self, cluster: str, binding: Binding) -> Mapping[str, tuple[str, str]]:
        index, member = binding.spec.resource_snapshot_name.split("-")[1], int(cluster[1:])
        if int(index) % 2 and member % 2 and not self.all_work:
            return NOT_AVAILABLE
        return UNTRACKABLE if member == 2 else AVAILABLE


def _is_reported(kind: str) -> bool:
    return kind != ROLLOUT_STARTED


def _is_bound(binding: Binding) -> bool:
    return binding.spec.state == BindingState.bound


def _is_spoken_of(binding: Binding) -> bool:
    said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
    return said is not None and said.observed_generation == binding.metadata.generation


class User:
    """Changes resources, clusters and minds."""

    def __init__(self, placed: Rolling, rng: Random) -> None:
        self._placed = placed
        self._rng = rng
        self.index = 0

    async def act(self) -> None:
        with suppress(NotFound, Conflict):
            await self._rng.choice([self._release, self._release, self._exchange, self._pause, self._roll_back])()

    async def _release(self) -> None:
        self.index += 1
        await self._placed.snapshot(self.index)

    async def _exchange(self) -> None:
        """The scheduler picks another cluster for one that is picked."""
        bindings = await self._placed.all()
        free = [name for name in MEMBERS if name not in bindings]
        picked = [name for name, one in bindings.items() if one.spec.state == "Bound" and not _leaves(one)]
        if free and picked:
            await self._placed.unpick(self._rng.choice(picked))
            await self._placed.pick(self._rng.choice(free))

    async def _pause(self) -> None:
        await self._placed.annotate(**{PAUSED: "true"})
        await asyncio.sleep(self._rng.uniform(0.1, 3))
        await self.settle()

    async def _roll_back(self) -> None:
        await self._placed.annotate(**{PINNED: str(self._rng.randint(0, self.index + 1))})

    async def settle(self) -> None:
        await self._placed.annotate(**{PAUSED: None, PINNED: None})


async def live(seed: int) -> None:
    rng = Random(seed)
    async with fleet_cluster(seed=seed) as cluster, client_of(cluster) as client:
        placed, judge = Rolling(client, CLUSTER), Judge(cluster)
        members, user = Members(placed, Random(rng.random())), User(placed, Random(rng.random()))
        await _begin(placed)
        answering = asyncio.create_task(members.run())
        for _ in range(4):
            async with managed(rng.randrange(1000)) as manager:
                hub = await manager.connect("hub", cluster.transport())
                manager.add_controller(Rollout(hub, CLUSTER, clock=LoopClock()).controller)
                for _ in range(4):
                    await asyncio.sleep(rng.uniform(0.0, 4.0))
                    await user.act()
        members.all_work = True
        async with managed(seed) as manager:
            hub = await manager.connect("hub", cluster.transport())
            manager.add_controller(Rollout(hub, CLUSTER, clock=LoopClock()).controller)
            await user.settle()
            await asyncio.sleep(300)
            answering.cancel()
            with suppress(asyncio.CancelledError):
                await answering
        assert judge.wrong == []
        assert judge.moved > PICKED
        found = await placed.given()
        assert list(found.values()) == [str(user.index)] * PICKED, {
            name: await placed.waits_for(name) for name in found
        }


async def _begin(placed: Rolling) -> None:
    await placed.members(*MEMBERS)
    rolling = {"maxUnavailable": UNAVAILABLE, "maxSurge": SURGE, "unavailablePeriodSeconds": int(PERIOD)}
    policy = {"placementType": "PickN", "numberOfClusters": PICKED}
    await placed.place(policy=policy, strategy={"rollingUpdate": rolling})
    await placed.snapshot(0)
    await placed.pick(*MEMBERS[:PICKED])


@pytest.mark.parametrize("seed", range(12))
def test_no_promise_is_broken_and_everything_gets_where_it_should_be(seed: int) -> None:
    run(live(seed), seed=seed)
