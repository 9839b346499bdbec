"""Namespaced placements and what belongs to them, in namespaces of the system: nobody acts on them.

A member writes in its own namespace on the hub, `fleet-member-NAME`. What it forges there must not reach another
member, whoever let it write that: the embedded server, on which this runs, lets everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kedge.api.condition import find_condition
from kedge.api.core import ConfigMap
from kedge.api.dialect import Dialect
from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, PARENT_PLACEMENT, is_followed, member_namespace
from kedge.api.placement import ResourcePlacement
from kedge.api.placement_kinds import NAMESPACED, PLACEMENT_KINDS
from kedge.api.work import Work
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.roles import HubOptions, hub_controllers
from support.fleets import client_of, fleet_cluster
from support.forgery import NAME, OWNER, RUN, VICTIM, forge
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

LONG = 600.0
OURS = member_namespace("cluster-1")
Scene = Callable[[Client, Client], Awaitable[None]]


def play(scene: Scene, dialect: Dialect = Dialect.seed) -> None:
    """A fleet of two; `scene` is given the hub and the second member."""

    async def main() -> None:
        async with Fleet(members=2, clock=LoopClock(), rng=Random(1), nodes=1) as fleet:
            await fleet.run_workloads()
            await fleet.run_roles(HubOptions(dialect=dialect))
            async with client_of(fleet.hub) as hub, client_of(fleet.members[1]) as victim:
                await scene(hub, victim)

    run(main())


async def is_there(client: Client, kind: Any, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(kind, name, namespace)
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("namespace", [OURS, "fleet-system", "kube-public"])
def test_what_a_member_forges_in_its_own_namespace_reaches_no_other(dialect: Dialect, namespace: str) -> None:
    async def scene(hub: Client, victim: Client) -> None:
        await forge(hub, namespace)
        await asyncio.sleep(LONG)
        assert not await is_there(victim, ConfigMap, "owned", "default")
        assert not (await hub.list(Work, member_namespace(VICTIM))).items

    play(scene, dialect)


def test_the_same_in_a_namespace_of_a_user_is_carried_out() -> None:
    """Or the test above would prove nothing."""

    async def scene(hub: Client, victim: Client) -> None:
        await forge(hub, "default")
        await until_so(lambda: is_there(victim, ConfigMap, "owned", "default"), LONG)

    play(scene)


def test_nothing_is_written_to_what_is_forged_but_why_it_is_not_followed() -> None:
    async def scene(hub: Client, _: Client) -> None:
        made = await forge(hub, OURS)
        await asyncio.sleep(LONG)
        placement = await hub.get(ResourcePlacement, NAME, OURS)
        (said,) = placement.status.conditions
        assert (said.type, said.status, said.reason) == (
            "ResourcePlacementScheduled",
            "False",
            "InvalidResourceSelectors",
        )
        assert said.message.startswith(f"metadata.namespace is {OURS}, which is reserved")
        assert placement.metadata.finalizers == ()
        for kind, name, version in made:
            found = await hub.get(untyped(kind.resource), name, OURS)
            assert kind is ResourcePlacement or found["metadata"]["resourceVersion"] == version, kind

    play(scene)


def test_a_member_that_removes_what_is_said_of_its_placement_does_not_keep_the_hub_busy() -> None:
    async def scene(hub: Client, _: Client) -> None:
        await forge(hub, OURS)
        await until_so(lambda: _says_why(hub))
        patch = MergePatch({"status": {"conditions": []}})
        written = await hub.patch(ResourcePlacement, NAME, patch, OURS, subresource="status")
        await asyncio.sleep(LONG)
        assert (await hub.get(ResourcePlacement, NAME, OURS)).metadata.resource_version == (
            written.metadata.resource_version
        )

    async def _says_why(hub: Client) -> bool:
        found = await hub.get(ResourcePlacement, NAME, OURS)
        return find_condition(found.status.conditions, "ResourcePlacementScheduled") is not None

    play(scene)


def test_a_run_in_a_namespace_of_the_system_does_not_begin() -> None:
    async def scene(hub: Client, _: Client) -> None:
        await forge(hub, OURS)
        await asyncio.sleep(LONG)
        found = await hub.get(NAMESPACED.run, RUN, OURS)
        assert found.status.conditions == ()

    play(scene)


def test_a_work_that_says_it_is_of_a_binding_there_is_left_alone() -> None:
    async def scene(hub: Client, _: Client) -> None:
        labels = {PARENT_PLACEMENT: NAME, PARENT_BINDING: "nobody", PARENT_NAMESPACE: OURS}
        await hub.create(Work, {"metadata": {"name": "w", "labels": labels}, "spec": {}}, OURS)
        await asyncio.sleep(LONG)
        assert await is_there(hub, Work, "w", OURS)

    play(scene)


def test_a_work_of_one_member_does_not_hold_a_binding_to_another() -> None:
    async def scene(hub: Client, victim: Client) -> None:
        await forge(hub, "default")  # as a user would: on cluster-2
        await until_so(lambda: is_there(victim, ConfigMap, "owned", "default"), LONG)
        labels = {PARENT_PLACEMENT: NAME, PARENT_BINDING: OWNER, PARENT_NAMESPACE: "default"}
        held = {"name": "w", "labels": labels, "finalizers": ["hostile.example/held"]}
        await hub.create(Work, {"metadata": held, "spec": {}}, OURS)
        await hub.delete(ResourcePlacement, NAME, "default")
        await until_so(lambda: _is_gone(hub, victim), LONG)

    async def _is_gone(hub: Client, victim: Client) -> bool:
        placed = await is_there(victim, ConfigMap, "owned", "default")
        return not placed and not await is_there(hub, NAMESPACED.binding, OWNER, "default")

    play(scene)


def test_no_controller_of_a_hub_reads_such_objects_but_the_one_that_says_why() -> None:
    """Whoever adds a cache of a namespaced twin says which of them count."""

    async def main() -> None:
        async with fleet_cluster() as cluster, Manager(clock=LoopClock(), rng=Random(1)) as manager:
            hub = await manager.connect("hub", cluster.transport())
            hub_controllers(manager, hub, HubOptions())
            kinds = {
                getattr(placement_kinds, field).resource
                for placement_kinds in PLACEMENT_KINDS
                for field in placement_kinds.__struct_fields__
            }
            wrong = [
                cache
                for cache in hub._caches.values()
                if cache.codec.resource in kinds and not _passes_over_what_is_reserved(cache)
            ]
            assert [str(cache.codec.resource) for cache in wrong] == [str(ResourcePlacement.resource)]

    def _passes_over_what_is_reserved(cache: Any) -> bool:
        return bool(cache._only is is_followed)

    run(main())
