"""Whatever is written, a watch from any version tells exactly what leads from the list of then to the list of now."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from embedded.world import CONFIG_MAPS, World, meta
from kedge.kube.codec import Bookmark, Untyped
from kedge.kube.errors import AlreadyExists, Conflict, Gone, Invalid, KubeError, NotFound
from kedge.kube.patches import JsonPatch, MergePatch
from support.virtual import VirtualLoop

Objects = dict[str, Untyped]

NAMES = st.sampled_from("abcd")
PLACES = st.sampled_from(["default", "kube-system"])
SELECTORS = st.sampled_from([None, "s", "s=1", "s!=1", "!s"])
LABELS = st.sampled_from([{}, {"s": "1"}, {"s": "2"}])
REFUSED = (AlreadyExists, Conflict, Invalid, NotFound)
HISTORY = 12


class Follower:
    """One who lists, and then watches from there on."""

    def __init__(self, world: World, place: str | None, selector: str | None) -> None:
        self.objects: Objects = {}
        self.version = ""
        self.events: Counter[str] = Counter()
        self._world = world
        self._of: dict[str, Any] = {"namespace": place, "labels": selector}

    async def listed(self) -> tuple[str, Objects]:
        """What there is for it to see now, and the version of that."""
        page = await self._world.client.list(CONFIG_MAPS, **self._of, page_size=2)
        return page.resource_version, {key(one): one for one in page.items}

    async def follow(self) -> None:
        self.version, self.objects = await self.listed()
        while True:
            async with self._world.client.watch(CONFIG_MAPS, **self._of, resource_version=self.version) as events:
                async for event in events:
                    self.take(event)

    async def replay(self, since: str, until: str) -> None:
        """Take in every event from one version up to another."""
        async with self._world.client.watch(CONFIG_MAPS, **self._of, resource_version=since, seconds=3) as events:
            async for event in events:
                self.take(event)
        assert int(self.version) >= int(until)

    def take(self, event: Any) -> None:
        if isinstance(event, Bookmark):
            self.version = event.resource_version
            return
        name, version = key(event.object), meta(event.object)["resourceVersion"]
        assert int(version) > int(self.version or 0), "events come in order, and once"
        self.version = version
        self.events[event.type] += 1
        if event.type == "DELETED":
            gone = self.objects.pop(name)
            assert meta(gone)["uid"] == meta(event.object)["uid"]
        else:
            assert (name in self.objects) == (event.type == "MODIFIED")
            self.objects[name] = event.object


def key(obj: Untyped) -> str:
    return f"{meta(obj)['namespace']}/{meta(obj)['name']}"


class Replay(RuleBasedStateMachine):
    """Random writes, and watchers of every kind beside them."""

    moments: Bundle[tuple[str, str | None, str | None, Objects]] = Bundle("moments")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.followers: list[tuple[Follower, asyncio.Task[None]]] = []
        self.writes = 0

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.world = World(seed=seed, history=HISTORY, delay=(0.0, Random(seed).choice([0.0, 0.5])))

    # Writing

    @rule(place=PLACES, name=NAMES, labels=LABELS, held=st.booleans())
    def create(self, place: str, name: str, labels: dict[str, str], held: bool) -> None:
        finalizers = ["x.io/hold"] if held else []
        metadata = {"name": name, "labels": labels, "finalizers": finalizers}
        self.try_to(self.world.client.create(CONFIG_MAPS, {"metadata": metadata}, place))

    @rule(place=PLACES, name=NAMES, labels=LABELS, data=st.integers(0, 2))
    def put(self, place: str, name: str, labels: dict[str, str], data: int) -> None:
        metadata = {"name": name, "namespace": place, "labels": labels}
        self.try_to(self.world.client.replace(CONFIG_MAPS, {"metadata": metadata, "data": {"k": str(data)}}))

    @rule(place=PLACES, name=NAMES, labels=LABELS)
    def apply(self, place: str, name: str, labels: dict[str, str]) -> None:
        metadata = {"name": name, "namespace": place, "labels": labels}
        self.try_to(self.world.client.apply(CONFIG_MAPS, {"metadata": metadata}, manager="me"))

    @rule(place=PLACES, name=NAMES, value=st.sampled_from([None, "1", "2"]))
    def relabel(self, place: str, name: str, value: str | None) -> None:
        patch = MergePatch({"metadata": {"labels": {"s": value}}})
        self.try_to(self.world.client.patch(CONFIG_MAPS, name, patch, place))

    @rule(place=PLACES, name=NAMES, value=st.sampled_from(["1", "2"]))
    def relabel_if_labelled(self, place: str, name: str, value: str) -> None:
        operations = [
            {"op": "test", "path": "/metadata/labels/s", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/s", "value": value},
        ]
        self.try_to(self.world.client.patch(CONFIG_MAPS, name, JsonPatch(operations), place))

    @rule(place=PLACES, name=NAMES)
    def release(self, place: str, name: str) -> None:
        patch = MergePatch({"metadata": {"finalizers": None}})
        self.try_to(self.world.client.patch(CONFIG_MAPS, name, patch, place))

    @rule(place=PLACES, name=NAMES)
    def delete(self, place: str, name: str) -> None:
        self.try_to(self.world.client.delete(CONFIG_MAPS, name, place))

    def try_to(self, write: Any) -> None:
        before = self.world.server.store.number

        async def tried() -> bool:
            try:
                await write
            except REFUSED:
                return False
            return True

        done = self.runner.run(tried())
        grown = self.world.server.store.number - before
        assert grown <= 1 if done else grown == 0, "one write takes one version, a refused one none"
        self.writes += grown

    # Watching

    @rule(place=st.none() | PLACES, selector=SELECTORS)
    def someone_follows(self, place: str | None, selector: str | None) -> None:
        follower = Follower(self.world, place, selector)
        task = self.runner.get_loop().create_task(follower.follow())
        self.followers.append((follower, task))

    @rule(seconds=st.sampled_from([0.0, 0.1, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))

    @rule()
    def the_network_hiccups(self) -> None:
        """Every follower is cut off, and comes back from where it got to, or with a new list."""
        self.world.transport.disconnect()
        self.world.transport.connect()
        self.runner.run(asyncio.sleep(0.1))
        for index, (follower, task) in enumerate(self.followers):
            assert task.done()
            assert isinstance(task.exception(), KubeError)
            self.followers[index] = follower, self.runner.get_loop().create_task(follower.follow())

    @rule(target=moments, place=st.none() | PLACES, selector=SELECTORS)
    def remember_a_list(self, place: str | None, selector: str | None) -> Any:
        version, objects = self.runner.run(Follower(self.world, place, selector).listed())
        return multiple((version, place, selector, objects))

    @rule(moment=moments)
    def a_watch_from_then_leads_to_now(self, moment: tuple[str, str | None, str | None, Objects]) -> None:
        since, place, selector, objects = moment
        follower = Follower(self.world, place, selector)
        until, now = self.runner.run(follower.listed())
        follower.version, follower.objects = since, dict(objects)
        if self.is_forgotten(int(since)):
            with pytest.raises(Gone):
                self.runner.run(follower.replay(since, until))
        else:
            self.runner.run(follower.replay(since, until))
            assert follower.objects == now

    def is_forgotten(self, number: int) -> bool:
        return number < self.world.server.store.number - HISTORY

    # What always holds

    @invariant()
    def followers_catch_up(self) -> None:
        if not self.followers:
            return
        self.runner.run(asyncio.sleep(1.0))
        for follower, task in self.followers:
            assert not task.done(), task.exception()
            assert follower.objects == self.runner.run(follower.listed())[1]

    def teardown(self) -> None:
        for _, task in self.followers:
            task.cancel()
        self.runner.run(asyncio.sleep(0))
        self.runner.close()


TestReplay = Replay.TestCase
TestReplay.settings = settings(stateful_step_count=40)
