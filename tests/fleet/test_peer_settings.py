"""What KubeFleet does in its dialect, or if it is told to: each with the word it says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition
from kedge.api.core import ConfigMap, Namespace
from kedge.api.dialect import Dialect
from kedge.api.fleet import member_namespace
from kedge.api.placement import ClusterResourcePlacement, ResourcePlacement
from kedge.api.resource import Resource
from kedge.api.work import Work
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from kedge.roles import HubOptions, MemberOptions
from support.fleets import client_of
from support.stage import LoopClock
from support.virtual import run

SHOP = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}
CLAIMS = untyped(Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"))


class Here:
    """A fleet of two members, and the hub's user."""

    def __init__(self, fleet: Fleet, hub: Client) -> None:
        self.fleet, self.hub = fleet, hub

    async def place(self, *selectors: dict[str, Any], **spec: Any) -> None:
        body = {"resourceSelectors": list(selectors or (SHOP,)), **spec}
        await self.hub.create(ClusterResourcePlacement, {"metadata": {"name": "shop"}, "spec": body})
        await asyncio.sleep(10)

    async def scheduled(self) -> tuple[str, str, str]:
        status = (await self.hub.get(ClusterResourcePlacement, "shop")).status
        found = find_condition(status.conditions, "ClusterResourcePlacementScheduled")
        assert found is not None
        return found.status, found.reason, found.message


def play(scene: Callable[[Here], Awaitable[None]], *options: Any) -> None:
    async def main() -> None:
        async with Fleet(members=2, clock=LoopClock(), rng=Random(1), nodes=1) as fleet:
            await fleet.run_roles(*options)
            async with client_of(fleet.hub) as hub:
                await hub.create(Namespace, {"metadata": {"name": "shop"}})
                await scene(Here(fleet, hub))

    run(main())


@pytest.mark.parametrize(
    ("dialect", "wanted"),
    [
        (Dialect.seed, ("True", "SchedulingPolicyFulfilled")),
        (Dialect.kubefleet, ("Unknown", "SchedulePending")),
    ],
)
def test_where_pick_fixed_names_no_cluster_kubefleet_decides_nothing(dialect: Dialect, wanted: tuple[str, str]) -> None:
    async def scene(here: Here) -> None:
        await here.place(policy={"placementType": "PickFixed", "clusterNames": []})
        *said, message = await here.scheduled()
        assert tuple(said) == wanted
        if dialect is Dialect.kubefleet:
            assert message == "spec.policy.clusterNames is empty: name the clusters that PickFixed is to take"
            named = MergePatch({"spec": {"policy": {"clusterNames": ["cluster-1"]}}})
            await here.hub.patch(ClusterResourcePlacement, "shop", named)
            await asyncio.sleep(10)
            assert (await here.scheduled())[:2] == ("True", "SchedulingPolicyFulfilled")

    play(scene, HubOptions(dialect=dialect))


@pytest.mark.parametrize("dialect", Dialect)
def test_a_namespace_of_which_some_is_selected_must_be_there_for_kubefleet(dialect: Dialect) -> None:
    async def scene(here: Here) -> None:
        selector = {**SHOP, "name": "gone", "selectionScope": "NamespaceWithResourceSelectors"}
        await here.place(selector, policy={"placementType": "PickAll"})
        status, reason, message = await here.scheduled()
        if dialect is Dialect.seed:
            assert status == "True"
            return
        assert (status, reason) == ("False", "InvalidResourceSelectors")
        assert (
            "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected"
        ) in message
        await here.hub.create(Namespace, {"metadata": {"name": "gone"}})
        await asyncio.sleep(10)
        assert (await here.scheduled())[:2] == ("True", "SchedulingPolicyFulfilled")

    play(scene, HubOptions(dialect=dialect))


@pytest.mark.parametrize(
    ("enabled", "wanted"), [(False, ["Namespace", "PersistentVolumeClaim"]), (True, ["Namespace"])]
)
def test_claims_stay_on_a_hub_where_workloads_run(enabled: bool, wanted: list[str]) -> None:
    async def scene(here: Here) -> None:
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await here.hub.create(CLAIMS, {"metadata": {"name": "data", "namespace": "shop"}, "spec": asked})
        await here.place(policy={"placementType": "PickAll"})
        [work] = (await here.hub.list(Work, member_namespace("cluster-1"))).items
        assert [one["kind"] for one in work.spec.workload.manifests] == wanted

    play(scene, HubOptions(enable_workload=enabled))


# Namespaces of members


async def placed_on(here: Here) -> list[str]:
    found = await here.hub.get(ResourcePlacement, "maps", "shop")
    return [one.cluster_name for one in found.status.placement_statuses if one.cluster_name]


async def place_maps(here: Here) -> None:
    maps = {"group": "", "version": "v1", "kind": "ConfigMap", "name": "prices"}
    await here.hub.create(ConfigMap, {"metadata": {"name": "prices", "namespace": "shop"}})
    spec = {"resourceSelectors": [maps], "policy": {"placementType": "PickAll"}}
    await here.hub.create(ResourcePlacement, {"metadata": {"name": "maps"}, "spec": spec}, "shop")
    await asyncio.sleep(10)


def test_where_members_report_their_namespaces_a_placement_goes_where_its_own_is() -> None:
    async def scene(here: Here) -> None:
        await place_maps(here)
        assert await placed_on(here) == []
        async with client_of(here.fleet.members[1]) as second:
            await second.create(Namespace, {"metadata": {"name": "shop"}})
        await asyncio.sleep(10)  # sooner than the next heartbeat
        assert await placed_on(here) == ["cluster-2"]
        reported = (await here.hub.get(MemberCluster, "cluster-2")).status
        assert reported.namespaces["shop"] == ""
        assert reported.namespaces.keys() >= {"default", "kube-system", "shop"}
        said = find_condition(reported.conditions, "NamespaceCollectionSucceeded")
        assert said is not None
        assert (said.status, said.reason) == ("True", "Succeeded")

    play(scene, HubOptions(), MemberOptions(report_namespaces=True))


def test_a_namespace_that_was_placed_is_reported_with_the_work_that_placed_it() -> None:
    async def scene(here: Here) -> None:
        await here.place(policy={"placementType": "PickAll"})
        [work] = (await here.hub.list(Work, member_namespace("cluster-1"))).items
        namespaces = (await here.hub.get(MemberCluster, "cluster-1")).status.namespaces
        assert namespaces["shop"] == work.metadata.name

    play(scene, HubOptions(), MemberOptions(report_namespaces=True))


def test_unless_told_to_members_report_no_namespaces() -> None:
    async def scene(here: Here) -> None:
        await place_maps(here)
        assert await placed_on(here) == ["cluster-1", "cluster-2"]
        reported = (await here.hub.get(MemberCluster, "cluster-1")).status
        assert reported.namespaces == {}
        assert find_condition(reported.conditions, "NamespaceCollectionSucceeded") is None

    play(scene)
