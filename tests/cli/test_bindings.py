"""The verbs of bindings, against an embedded hub over HTTPS, as a user has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.align_hub import AlignHub, align_hub, binding, deployment
from cli.batch_cluster import shop
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster

pytestmark = pytest.mark.timeout(400)
NAME = "binding/demo-deployment"
LOST = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "Lost",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}


async def stuck(hub: AlignHub) -> None:
    """The second release never becomes available, so that cluster-1 waits for cluster-2."""
    await hub.deploy()
    await hub.until_said("10 of 10 pods updated", "status", NAME)
    await hub.edit("app:bad")
    await hub.until_said("3 of 10 pods updated, available 8 (>= 8), pods 11 (<= 11)", "status", NAME, code=3)


async def test_a_release_that_is_stuck_is_listed_shown_and_explained_cluster_by_cluster(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await stuck(hub)
        waits = (
            "at most 2 of 10 pods may be unavailable, and 1 may be extra: cluster-2 holds that until new pods there are"
            " available"
        )
        head, line = (await hub.kedge("get", "bindings")).output.splitlines()
        assert head.split() == [
            "BINDING",
            "RESOURCE",
            "CLUSTERS",
            "UPDATED",
            "AVAILABLE",
            "PODS",
            "IN",
            "FLIGHT",
            "STATE",
            "WHY",
        ]
        shown = " ".join(line.split())
        assert shown.startswith(
            "shop/demo-deployment Deployment shop/demo 2 3/10 8 (>= 8) 11 (<= 11) 2+1 of 2+1 moving"
        )
        for names in (["rb"], [NAME], ["bindings", "shop/demo-deployment"], ["bindings", "-n", "shop"]):
            assert "shop/demo-deployment" in await hub.said("get", *names)
        _, first, second = (await hub.kedge("status", NAME, code=3)).output.splitlines()
        assert first.endswith(
            f"cluster-1  0 of 4 pods updated, 4 available; granted 0+1, in flight 0+0, proven 0: {waits}"
        )
        assert "cluster-2  3 of 6 pods updated, 4 available; granted 2+1, in flight 2+1, proven 0: " in second
        told = await hub.said("explain", NAME)
        assert "all clusters together keep at least 8 of 10 pods available, and have at most 11" in told
        assert (await hub.said("explain", NAME, "cluster-1")).startswith("cluster-1: 0 of 4 pods updated")
        data = await hub.data("status", NAME, code=3)
        assert (data["state"], data["done"], data["in_flight"]) == ("moving", False, {"unavailable": 2, "surge": 1})
        assert (await hub.data("explain", NAME, "cluster-1"))["why"] == waits
        wrong = await hub.said("explain", NAME, "cluster-7", code=1)
        assert "cluster-7 is no cluster of ResourceBinding shop/demo-deployment: its clusters are cluster-1" in wrong


async def test_a_release_is_followed_until_it_is_done(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await hub.deploy()
        await hub.until_said("10 of 10 pods updated", "status", NAME)
        await hub.edit("app:2")
        lines = (await hub.kedge("status", NAME, "-w", "--timeout", "100")).output.splitlines()
        whole = [
            line for line in lines if line.startswith("ResourceBinding shop/demo-deployment: Deployment shop/demo in 2")
        ]
        assert len(whole) > 1
        assert "10 of 10 pods updated, available 10 (>= 8), pods 10 (<= 11); in flight 0+0 of 2+1" in whole[-1]
        assert any(line.startswith("  cluster-1: ") for line in lines)


async def test_a_cluster_that_is_not_heard_from_and_a_resource_that_is_gone_are_said(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await hub.client.create(Cluster, {"metadata": {"name": "cluster-3"}, "spec": {}})  # it has no agent
        await hub.client.create(Deployment, deployment("app:1"))
        await hub.client.create(ResourceBinding, binding(cluster_3=2))
        said = await hub.until_said("available 10 (>= ", "status", NAME, code=3)
        assert "cluster-3  0 of 2 pods updated, 0 available; granted nothing" in said
        assert "it is not heard from: it keeps what it holds of the budget, and gets no more" in said
        await hub.client.delete(Deployment, "demo", "shop")
        assert "there is no Deployment shop/demo" in await hub.said("status", NAME, code=3)


async def test_a_name_that_is_no_binding_is_refused_and_so_is_a_cluster_without_them(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        missing = await hub.said("status", "binding/web", code=1)
        assert "there is no ResourceBinding shop/web, nor any other there" in missing
        await hub.client.create(Deployment, deployment("app:1"))
        await hub.kedge("get", "bindings")
        assert "binding/NAMESPACE/NAME" in await hub.said("status", "binding/a/b/c", code=2)
        assert "leave one out" in await hub.said("status", "binding/a/b", "-n", "c", code=2)
        assert "did you mean binding/" not in await hub.said("status", "nothing", code=1)
        assert "this cluster serves no placements, but bindings (`kedge get bindings`" in await hub.said("get", code=1)
    other = tmp_path / "other"
    other.mkdir()
    async with shop(other, operated=False) as found:
        assert "this cluster serves no bindings" in await found.said("get", "bindings", code=1)
        assert "this cluster serves no bindings" in await found.said("explain", "rb/web", code=1)


async def test_verbs_that_are_not_for_bindings_say_what_is(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await hub.deploy()
        assert "did you mean binding/demo-deployment -n shop?" in await hub.said("status", "demo", code=1)
        for verb in ("pause", "resume", "stop"):
            assert "set spec.paused of its resource" in await hub.said(verb, NAME, "-n", "shop", code=1)
        assert "apply its resource as it was before" in await hub.said("rollback", NAME, code=1)
        for verb in ("history", "unpin", "approve", "retry", "abort"):
            said = await hub.said(verb, NAME, code=1)
            assert f"{NAME} is a binding, and `kedge {verb}` is for " in said
            assert f"`kedge status {NAME}` says where it stands" in said
