"""Where keys come from, and when they may be looked at."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import pytest

from kedge.api.apps import Deployment, ReplicaSet
from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import LOW, NORMAL, Key
from kedge.kube.source import Signal, Watch, WatchedObject, generation_changed, owner_of
from kedge.kube.store import Change
from support.tiny import Tiny, map_path
from support.virtual import run

SEEN_A = Key("hub", "shop", "a")


def connect(server: Tiny, name: str = "hub") -> Cluster:
    return Cluster(name, Client(server), clock=SystemClock(), rng=random.Random(1))


class World:
    """Runs clusters and a controller for a while, and keeps the keys that were reconciled."""

    def __init__(self, *clusters: Cluster) -> None:
        self.keys: list[Key] = []
        self._clusters = clusters
        self._tasks: list[asyncio.Task[None]] = []

    async def reconcile(self, key: Key) -> Outcome:
        self.keys.append(key)
        return Outcome.done

    def start(self, controller: Controller) -> None:
        self._tasks += [asyncio.create_task(cluster.run()) for cluster in self._clusters]
        self._tasks.append(asyncio.create_task(controller.run(rng=random.Random(1))))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


def test_what_was_there_comes_at_low_priority_and_what_changes_goes_first() -> None:
    async def main() -> None:
        server = Tiny()
        for name in "abc":
            server.put(map_path(name))
        cluster = connect(server)
        maps = cluster.cache(ConfigMap)
        woken: list[tuple[str, int]] = []
        following = asyncio.create_task(cluster.run())
        source = cluster.watch(maps)
        await source.ready()
        source.subscribe(lambda key, priority: woken.append((key.name, priority)))
        server.put(map_path("b"))
        server.remove(map_path("c"))
        await asyncio.sleep(1)
        assert woken == [("a", LOW), ("b", LOW), ("c", LOW), ("b", NORMAL), ("c", NORMAL)]
        following.cancel()
        await asyncio.wait([following])

    run(main())


def test_every_object_wakes_itself() -> None:
    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"))
        cluster = connect(server)
        world = World(cluster)
        world.start(Controller("test", world.reconcile, [cluster.watch(cluster.cache(ConfigMap))]))
        await asyncio.sleep(1)
        server.put(map_path("b"))
        await asyncio.sleep(1)
        assert world.keys == [SEEN_A, Key("hub", "shop", "b")]
        await world.end()

    run(main())


def test_untyped_objects_wake_keys_too() -> None:
    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"))
        cluster = connect(server)
        world = World(cluster)
        cache = cluster.cache(untyped(ConfigMap.resource))
        world.start(Controller("test", world.reconcile, [cluster.watch(cache)]))
        await asyncio.sleep(1)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_an_object_that_moves_wakes_both_its_old_and_its_new_place() -> None:
    def by_label(seen: WatchedObject[ConfigMap]) -> list[Key]:
        return [Key("hub", None, seen.meta.labels["of"])]

    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"), metadata={"labels": {"of": "x"}})
        cluster = connect(server)
        world = World(cluster)
        source = cluster.watch(cluster.cache(ConfigMap), to=by_label)
        world.start(Controller("test", world.reconcile, [source]))
        await asyncio.sleep(1)
        server.put(map_path("a"), metadata={"labels": {"of": "y"}})
        await asyncio.sleep(1)
        assert world.keys == [Key("hub", None, "x"), Key("hub", None, "x"), Key("hub", None, "y")]
        await world.end()

    run(main())


def test_a_mapping_that_fails_on_one_object_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def by_label(seen: WatchedObject[ConfigMap]) -> list[Key]:
        return [Key("hub", None, seen.meta.labels["of"])]

    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"))
        server.put(map_path("b"), metadata={"labels": {"of": "x"}})
        cluster = connect(server)
        world = World(cluster)
        source = cluster.watch(cluster.cache(ConfigMap), to=by_label)
        world.start(Controller("test", world.reconcile, [source]))
        await asyncio.sleep(1)
        server.put(map_path("a"), more="changed")
        await asyncio.sleep(1)
        assert world.keys == [Key("hub", None, "x")]
        await world.end()

    with caplog.at_level(logging.ERROR):
        run(main())
    assert caplog.messages == ["a change of ConfigMap hub/shop/a wakes nobody"] * 2


def owned(**reference: Any) -> WatchedObject[Any]:
    owner = OwnerReference(**{"api_version": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", **reference})
    return WatchedObject(None, ObjectMeta(name="web-5d", namespace="shop", owner_references=(owner,)), "hub")


@pytest.mark.parametrize(
    ("seen", "woken"),
    [
        pytest.param(owned(controller=True), [Key("hub", "shop", "web")], id="its controller"),
        pytest.param(owned(controller=True, api_version="apps/v1beta1"), [Key("hub", "shop", "web")], id="any version"),
        pytest.param(owned(controller=False), [], id="an owner that does not control it"),
        pytest.param(owned(), [], id="an owner that does not say"),
        pytest.param(owned(controller=True, kind="StatefulSet"), [], id="another kind"),
        pytest.param(owned(controller=True, api_version="example.com/v1"), [], id="another group"),
    ],
)
def test_an_object_wakes_the_owner_that_controls_it(seen: WatchedObject[Any], woken: list[Key]) -> None:
    assert list(owner_of(Deployment)(seen)) == woken


def replica_set(generation: int, **more: Any) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name="web", generation=generation, **more))


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param(Change(None, replica_set(1)), True, id="new"),
        pytest.param(Change(replica_set(1), None), True, id="gone"),
        pytest.param(Change(replica_set(1), replica_set(2)), True, id="spec changed"),
        pytest.param(Change(replica_set(1), replica_set(1, labels={"a": "b"})), False, id="labels alone"),
        pytest.param(
            Change(replica_set(1), replica_set(1, deletion_timestamp=SystemClock().now())), True, id="on its way out"
        ),
    ],
)
def test_only_a_new_generation_counts(change: Change[ReplicaSet], counts: bool) -> None:
    assert generation_changed(change) is counts


def test_changes_that_do_not_count_wake_nobody() -> None:
    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"), metadata={"generation": 1})
        cluster = connect(server)
        world = World(cluster)
        source = cluster.watch(cluster.cache(ConfigMap), when=generation_changed)
        world.start(Controller("test", world.reconcile, [source]))
        await asyncio.sleep(1)
        server.put(map_path("a"), metadata={"generation": 1, "labels": {"x": "y"}})
        await asyncio.sleep(1)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_after_another_list_every_difference_counts() -> None:
    """A generation may have been given a second time, to something else: the server may have been restored."""

    async def main() -> None:
        server = Tiny()
        for name in "abc":
            server.put(map_path(name), metadata={"generation": 1})
        cluster = connect(server)
        world = World(cluster)
        source = cluster.watch(cluster.cache(ConfigMap), when=lambda change: change.initial)
        world.start(Controller("test", world.reconcile, [source]))
        await asyncio.sleep(1)
        world.keys.clear()
        server.expire_watches()
        server.put(map_path("a"), metadata={"generation": 1}, data={"x": "y"})
        server.remove(map_path("b"))
        await asyncio.sleep(60)
        assert sorted(key.name for key in world.keys) == ["a", "b"]
        await world.end()

    run(main())


def test_a_key_waits_until_every_source_of_its_cluster_is_ready() -> None:
    async def main() -> None:
        early, late = Signal("hub"), Late("hub")
        world = World()
        controller = Controller("test", world.reconcile, [early, late])
        world.start(controller)
        await asyncio.sleep(0.1)
        early.wake(SEEN_A)
        await asyncio.sleep(10)
        assert (world.keys, controller.waits_for()) == ([], ["hub"])
        late.come()
        await asyncio.sleep(1)
        assert (world.keys, controller.waits_for()) == ([SEEN_A], [])
        await world.end()

    run(main())


def test_a_signal_may_wake_keys_at_the_start() -> None:
    async def main() -> None:
        world = World()
        world.start(Controller("test", world.reconcile, [Signal("hub", at_start=[SEEN_A])]))
        await asyncio.sleep(10)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_a_cluster_that_is_not_ready_holds_up_no_other() -> None:
    async def main() -> None:
        ready, unreachable = Signal("hub"), Late("member")
        world = World()
        world.start(Controller("test", world.reconcile, [ready, unreachable]))
        await asyncio.sleep(0.1)
        ready.wake(SEEN_A)
        ready.wake(Key("member", "shop", "a"))
        await asyncio.sleep(10)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_an_unreachable_cluster_holds_up_no_other() -> None:
    async def main() -> None:
        up, down = Tiny(), Tiny()
        down.down = True
        for server in (up, down):
            server.put(map_path("a"))
        hub, member = connect(up), connect(down, "member")
        world = World(hub, member)
        sources = [cluster.watch(cluster.cache(ConfigMap)) for cluster in (hub, member)]
        controller = Controller("test", world.reconcile, sources)
        world.start(controller)
        await asyncio.sleep(60)
        assert (world.keys, controller.waits_for()) == ([SEEN_A], ["member"])
        down.down = False
        await asyncio.sleep(60)
        assert world.keys == [SEEN_A, Key("member", "shop", "a")]
        await world.end()

    run(main())


def test_a_source_can_be_added_while_running() -> None:
    async def main() -> None:
        server = Tiny()
        server.put(map_path("a"))
        cluster = connect(server)
        world = World(cluster)
        controller = Controller("test", world.reconcile)
        world.start(controller)
        await asyncio.sleep(1)
        controller.add_source(cluster.watch(cluster.cache(ConfigMap)))
        await asyncio.sleep(1)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_keys_in_line_wait_for_a_source_that_was_added() -> None:
    async def main() -> None:
        early, late = Signal("hub"), Late("hub")
        world = World()
        controller = Controller("test", world.reconcile, [early])
        world.start(controller)
        await asyncio.sleep(0.1)
        early.wake(SEEN_A)
        controller.add_source(late)
        await asyncio.sleep(10)
        assert world.keys == []
        late.come()
        await asyncio.sleep(1)
        assert world.keys == [SEEN_A]
        await world.end()

    run(main())


def test_a_cluster_that_was_forgotten_is_no_longer_waited_for() -> None:
    async def main() -> None:
        ready, gone = Signal("hub"), Late("member")
        world = World()
        controller = Controller("test", world.reconcile, [ready, gone])
        world.start(controller)
        await asyncio.sleep(0.1)
        ready.wake(Key("member", "shop", "a"))
        controller.forget_cluster("member")
        await asyncio.sleep(1)
        assert (world.keys, controller.waits_for()) == ([], [])
        await world.end()

    run(main())


def test_a_watch_says_what_it_watches() -> None:
    async def main() -> None:
        cluster = connect(Tiny())
        assert str(Watch("hub", cluster.cache(ConfigMap))) == "configmaps of hub"

    run(main())


class Late(Signal):
    """A source that is not ready until it is told to be."""

    def __init__(self, cluster: str) -> None:
        super().__init__(cluster)
        self._come = asyncio.Event()

    def come(self) -> None:
        self._come.set()

    async def ready(self) -> None:
        await self._come.wait()
