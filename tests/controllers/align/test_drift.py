"""What somebody changes or deletes in a member, of whatever kind, is put back as its Work says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.condition import find_condition
from kedge.api.core import ConfigMap, Service
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.works import Work
from kedge.api.resource import Resource
from kedge.controllers.followed_kinds import FollowedKinds
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.applying.outcomes import DELETED_AGAIN, DISPUTED
from kedge.plan.fields import covers
from support.virtual import run
from support.waiting import until_so

HERE = "cluster-1"
MAPS = untyped(ConfigMap.resource)
SERVICES = untyped(Service.resource)
GAMES = untyped(Resource("example.com", "v1", "Game", "games"))
_ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
DEFINITION: Mapping[str, Any] = {
    "metadata": {"name": "games.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Game", "plural": "games"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": _ANYTHING}],
    },
}
KINDS: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "ConfigMap": (MAPS, {"data": {"tea": "1"}}),
    "Service": (SERVICES, {"spec": {"selector": {"app": "shop"}, "ports": [{"name": "web", "port": 80}]}}),
    "Game": (GAMES, {"spec": {"players": 2}}),
}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "ConfigMap": {"data": {"tea": "9"}},
    "Service": {"spec": {"selector": {"app": "other"}}},
    "Game": {"spec": {"players": 9}},
}


async def define(client: Client) -> None:
    await client.create(CustomResourceDefinition, DEFINITION)


async def place(here: AlignBed, kind: Any, body: Mapping[str, Any], name: str = "demo") -> None:
    """Bring an object to the member."""
    named = {"name": name, "namespace": SHOP}
    await here.hub.create(kind, {**body, "metadata": named})
    resource = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **named}
    meta = {"name": f"{name}-{kind.resource.kind.lower()}", "namespace": SHOP}
    spec = {"resource": resource, "clusters": [{"name": HERE}]}
    await here.hub.create(ResourceBinding, {"metadata": meta, "spec": spec})
    await until_placed(here, kind, body)
    await asyncio.sleep(30)


async def found(here: AlignBed, kind: Any) -> Untyped | None:
    try:
        return await here.members[HERE].get(kind, "demo", SHOP)
    except NotFound:
        return None


async def until_placed(here: AlignBed, kind: Any, body: Mapping[str, Any]) -> None:
    async def is_placed() -> bool:
        return covers(await found(here, kind), body)

    await until_so(is_placed)


async def change(here: AlignBed, kind: Any, patch: Mapping[str, Any]) -> None:
    await here.members[HERE].patch(kind, "demo", MergePatch(patch), SHOP, manager="somebody")


async def said(here: AlignBed) -> str:
    """What the Work says of its object."""
    (work,) = (await here.hub.list(Work)).items
    applied = find_condition(work.status.conditions, "Applied")
    return "" if applied is None else f"{applied.status}: {applied.message}"


@pytest.mark.parametrize("name", KINDS)
def test_what_is_changed_or_deleted_is_put_back_whatever_its_kind(name: str) -> None:
    kind, wanted = KINDS[name]

    async def body() -> None:
        async with align_bed(HERE) as here:
            await define(here.hub)
            await define(here.members[HERE])
            await place(here, kind, wanted)
            await change(here, kind, CHANGES[name])
            await until_placed(here, kind, wanted)
            await here.members[HERE].delete(kind, "demo", SHOP)
            await until_placed(here, kind, wanted)

    run(body())


def test_what_the_hub_does_not_set_stays_as_the_member_has_it() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            own: dict[str, Any] = {"metadata": {"labels": {"team": "tea"}}, "data": {"milk": "3"}}
            await change(here, MAPS, {**own, "data": {**own["data"], "tea": "9"}})
            await until_placed(here, MAPS, {**own, "data": {"tea": "1", "milk": "3"}})

    run(body())


def test_what_is_taken_for_somebody_elses_is_put_back_too() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            made = await found(here, MAPS)
            assert made is not None
            notes = made["metadata"]["annotations"]
            gone = {"metadata": {"annotations": dict.fromkeys(notes)}, "data": {"tea": "9"}}
            await change(here, MAPS, gone)
            await until_placed(here, MAPS, {"metadata": {"annotations": notes}, "data": {"tea": "1"}})

    run(body())


def test_nothing_is_put_back_while_it_is_suspended() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            held = {"suspension": {"dispatching": True}}
            await here.hub.patch(ResourceBinding, "demo-configmap", MergePatch({"spec": held}), SHOP)
            await asyncio.sleep(10)
            await change(here, MAPS, {"data": {"tea": "9"}})
            await asyncio.sleep(300)
            assert covers(await found(here, MAPS), {"data": {"tea": "9"}})
            free = {"suspension": None}
            await here.hub.patch(ResourceBinding, "demo-configmap", MergePatch({"spec": free}), SHOP)
            await until_placed(here, MAPS, {"data": {"tea": "1"}})

    run(body())


def test_what_somebody_keeps_changing_is_put_back_less_and_less_often_and_the_work_says_so() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            back = 0
            for _ in range(600):  # seconds
                if covers(await found(here, MAPS), {"data": {"tea": "1"}}):
                    back += 1
                    await change(here, MAPS, {"data": {"tea": "9"}})
                await asyncio.sleep(1)
            assert 5 <= back <= 15
            assert await said(here) == f"True: {DISPUTED}"
            await asyncio.sleep(520)
            assert covers(await found(here, MAPS), {"data": {"tea": "1"}})
            assert "successfully applied" in await said(here)

    run(body())


def test_what_others_add_to_a_list_stays_and_is_no_dispute() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["Service"])
            both = {"ports": [{"name": "web", "port": 80}, {"name": "more", "port": 81}]}
            await change(here, SERVICES, {"spec": both})
            for number in range(6):
                await change(here, SERVICES, {"metadata": {"labels": {"seen": str(number)}}})
                await asyncio.sleep(1)
            assert covers(await found(here, SERVICES), {"spec": both})
            assert "successfully applied" in await said(here)

    run(body())


def test_what_somebody_keeps_deleting_is_reported_until_it_is_there_again() -> None:
    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            for _ in range(6):
                await until_placed(here, MAPS, {"data": {"tea": "1"}})
                await here.members[HERE].delete(MAPS, "demo", SHOP)
            await asyncio.sleep(1)
            assert await said(here) == f"False: {DELETED_AGAIN}"
            await until_placed(here, MAPS, {"data": {"tea": "1"}})
            await asyncio.sleep(400)
            assert "successfully applied" in await said(here)

    run(body())


def test_what_may_not_be_watched_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FollowedKinds, "look", lambda *_: None)

    async def body() -> None:
        async with align_bed(HERE) as here:
            await place(here, *KINDS["ConfigMap"])
            await change(here, MAPS, {"data": {"tea": "9"}})
            await until_placed(here, MAPS, {"data": {"tea": "1"}})

    run(body())


def test_a_kind_is_watched_until_the_last_object_of_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[Resource] = []
    drop = Cluster.drop

    def dropping(self: Cluster, cache: Cache[Any]) -> None:
        dropped.append(cache.codec.resource)
        drop(self, cache)

    monkeypatch.setattr(Cluster, "drop", dropping)

    async def body() -> None:
        async with align_bed(HERE) as here:
            for name in ("demo", "other"):
                await place(here, *KINDS["ConfigMap"], name)
            for name in ("demo", "other"):
                assert dropped == []
                await here.hub.delete(MAPS, name, SHOP)
                await here.hub.delete(ResourceBinding, f"{name}-configmap", SHOP)
                await asyncio.sleep(30)
            assert dropped == [ConfigMap.resource]

    run(body())
