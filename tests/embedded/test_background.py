"""Background controllers, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from random import Random
from typing import Any

from embedded.world import World, virtually
from kedge.api.resource import Resource
from kedge.embedded.background.delayed_set import DelayedSet
from kedge.embedded.cluster import BackgroundControllers
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch

EVENTS = untyped(Resource("", "v1", "Event", "events"))
MAPS = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
WIDGETS = untyped(Resource("example.com", "v1", "Widget", "widgets"))
DEFINITIONS = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about, "reason": "R", "message": "m"}


async def names(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in (await world.client.list(EVENTS)).items]


async def map_names(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in (await world.client.list(MAPS, "default")).items]


def widget_definition() -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def reference(api_version: str, kind: str, owner: dict[str, Any]) -> dict[str, Any]:
    meta = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}


@virtually
async def test_an_event_is_gone_an_hour_after_it_was_last_written() -> None:
    world = World()
    controllers = BackgroundControllers(world.server, rng=Random(1))
    controllers.start()
    for name in ("once", "twice"):
        await world.client.create(EVENTS, event(name))
    await asyncio.sleep(1800)
    await world.client.patch(EVENTS, "twice", MergePatch({"count": 2}), "default")
    await asyncio.sleep(1799)
    assert await names(world) == ["once", "twice"]
    await asyncio.sleep(2)
    assert await names(world) == ["twice"]
    await asyncio.sleep(1800)
    assert await names(world) == []
    controllers.stop()


@virtually
async def test_a_key_is_handled_once_however_often_it_is_added() -> None:
    done: list[str] = []
    pending = DelayedSet[str](done.append, running=lambda: True, delay=lambda: 0.01)
    pending.add("before the start")
    await asyncio.sleep(1)
    assert done == []
    pending.start()
    for key in ("a", "b", "a"):
        pending.add(key)
    await asyncio.sleep(1)
    assert done == ["before the start", "a", "b"]
    pending.stop()
    pending.add("after the end")
    await asyncio.sleep(1)
    assert len(done) == 3


@virtually
async def test_a_key_that_asks_for_it_is_handled_again() -> None:
    done: list[float] = []

    def do(key: str) -> float | None:
        done.append(asyncio.get_running_loop().time())
        return 60.0 if len(done) < 3 else None

    pending = DelayedSet[str](do, running=lambda: True, delay=lambda: 0.0)
    pending.start()
    pending.add("a")
    await asyncio.sleep(600)
    assert [round(after - before) for before, after in itertools.pairwise(done)] == [60, 60]


@virtually
async def test_keys_wait_while_the_server_is_down() -> None:
    done: list[str] = []
    up = [False]
    pending = DelayedSet[str](done.append, running=lambda: up[0], delay=lambda: 0.0)
    pending.start()
    pending.add("a")
    await asyncio.sleep(10)
    assert done == []
    up[0] = True
    await asyncio.sleep(1)
    assert done == ["a"]


@virtually
async def test_a_namespace_that_comes_back_under_its_name_goes_again() -> None:
    world = World()
    controllers = BackgroundControllers(world.server, rng=Random(1))
    controllers.start()
    for _ in range(2):
        await world.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await asyncio.sleep(1)
        held = {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}
        await world.client.create(MAPS, {"metadata": held})
        await world.client.delete(NAMESPACES, "shop")
        await asyncio.sleep(1)
        await world.client.patch(MAPS, "held", MergePatch({"metadata": {"finalizers": None}}), "shop")
        await asyncio.sleep(1)
        assert "shop" not in [one["metadata"]["name"] for one in (await world.client.list(NAMESPACES)).items]
    controllers.stop()


@virtually
async def test_that_an_owner_went_with_its_kind_is_known_as_long_as_somebody_names_it() -> None:
    world = World()
    controllers = BackgroundControllers(world.server, rng=Random(1))
    controllers.start()
    await world.client.create(DEFINITIONS, widget_definition())
    owner = await world.client.create(WIDGETS, {"metadata": {"name": "owner"}}, "default")
    nobody = {"metadata": {"name": "nobody", "uid": "nobody"}}
    owners = [reference("example.com/v1", "Widget", owner), reference("example.com/v1", "Gadget", nobody)]
    await world.config_map("child", ownerReferences=owners)
    await world.client.delete(DEFINITIONS, "widgets.example.com")
    await asyncio.sleep(1)
    assert "child" in await map_names(world)
    await world.client.patch(MAPS, "child", MergePatch({"metadata": {"ownerReferences": owners[:1]}}), "default")
    await asyncio.sleep(1)
    assert "child" not in await map_names(world)
    controllers.stop()


@virtually
async def test_an_object_may_name_an_owner_twice() -> None:
    world = World()
    controllers = BackgroundControllers(world.server, rng=Random(1))
    controllers.start()
    own = reference("v1", "ConfigMap", await world.config_map("owner"))
    await world.config_map("child", ownerReferences=[own, own])
    await world.client.delete(MAPS, "child", "default")
    assert "child" not in await map_names(world)
    controllers.stop()
