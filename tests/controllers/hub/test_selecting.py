"""What a placement selects at this moment, asked of the server: the same as the hub knows by its caches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.hub.test_resources import CRDS, PICKY, WIDGET, WIDGETS, Refusing, definition
from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.resource import Resource
from kedge.controllers.hub.selected_objects import selected_now
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.plan.selecting.kinds import KEPT_WHERE_WORKLOADS_RUN
from kedge.plan.selecting.selection import Selection
from support.fleets import client_of, fleet_cluster
from support.snapping import MAPS, QUIET, SHOP, Bench, play
from support.virtual import run

NAMESPACES = {"group": "", "version": "v1", "kind": "Namespace"}
ONLY = {"selectionScope": "NamespaceOnly"}
ROLES = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole"}
ROWS: list[tuple[str, PlacementKinds, list[dict[str, Any]]]] = [
    ("a namespace and what is in it", CLUSTER, [SHOP]),
    ("a namespace alone", CLUSTER, [{**SHOP, **ONLY}]),
    ("all namespaces", CLUSTER, [NAMESPACES]),
    ("namespaces by their labels", CLUSTER, [{**NAMESPACES, "labelSelector": {"matchLabels": {"app": "shop"}}}]),
    ("two namespaces", CLUSTER, [SHOP, {**SHOP, "name": "other", **ONLY}]),
    ("some of a namespace", CLUSTER, [PICKY, {**MAPS, "name": "b"}]),
    ("cluster-wide objects", CLUSTER, [{**SHOP, **ONLY}, ROLES]),
    ("what is not there", CLUSTER, [{**SHOP, "name": "nowhere"}]),
    ("a kind nobody serves", CLUSTER, [{**WIDGET, "kind": "Gadget"}]),
    ("objects of its own namespace", NAMESPACED, [MAPS]),
    ("some of them", NAMESPACED, [{**MAPS, "labelSelector": {"matchLabels": {"app": "a"}}}]),
    ("custom ones", NAMESPACED, [WIDGET]),
]


async def fill(client: Client) -> None:
    """Two namespaces with the same in each, and a kind of a user's."""
    await client.create(CRDS, definition())
    await asyncio.sleep(1.0)
    await client.create(Namespace, {"metadata": {"name": "other", "labels": {"app": "shop"}}})
    for namespace in ("shop", "other"):
        for name in ("a", "b"):
            meta = {"name": name, "namespace": namespace, "labels": {"app": name}}
            await client.create(ConfigMap, {"metadata": meta, "data": {"value": namespace}})
        await client.create(untyped(WIDGETS), {"metadata": {"name": "w", "namespace": namespace}, "spec": {}})


@pytest.mark.parametrize(("kinds", "selectors"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_server_and_the_caches_agree(kinds: PlacementKinds, selectors: list[dict[str, Any]]) -> None:
    async def act(hub: Bench) -> None:
        await fill(hub.client)
        placement = await hub.place(*selectors)
        await asyncio.sleep(QUIET)
        known, now = hub.resources.selected(placement), await selected_now(hub.client, placement)
        assert (now, now.digest) == (known, known.digest)

    play(act, kinds)


def test_kinds_that_stay_on_the_hub_are_left_out() -> None:
    async def act(hub: Bench) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claims = untyped(Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True))
        placement = await hub.place(SHOP)
        before = await selected_now(hub.client, placement)
        await hub.client.create(claims, {"metadata": {"name": "data", "namespace": "shop"}, "spec": spec})
        assert (await selected_now(hub.client, placement)).digest != before.digest
        assert (await selected_now(hub.client, placement, KEPT_WHERE_WORKLOADS_RUN)).digest == before.digest

    play(act, CLUSTER)


@pytest.mark.parametrize(("plural", "is_known"), [("configmaps", False), ("customresourcedefinitions", True)])
def test_what_may_not_be_read_is_a_problem_if_it_matters(plural: str, is_known: bool) -> None:
    async def main() -> Selection:
        async with fleet_cluster() as cluster, client_of(cluster) as admin:
            await admin.create(Namespace, {"metadata": {"name": "shop"}})
            await fill(admin)
            body = {"metadata": {"name": "crp"}, "spec": {"resourceSelectors": [SHOP]}}
            placement = await admin.create(CLUSTER.placement, body)
            user = Client(Refusing(cluster.transport(), plural))
            found = await selected_now(user, placement)
            await user.close()
            return found

    found = run(main())
    assert found.is_known == is_known
    if not is_known:
        assert found.problem.startswith(f"objects of kind {plural} cannot be read on the hub: ")
