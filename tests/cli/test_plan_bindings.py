"""`kedge plan` for bindings: the order and the bounds, from a hub that is only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.align_hub import AlignHub, align_hub, binding, deployment
from cli.typing_user import saved, watched
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import ALIGN, POLICY_NAME, POLICY_NAMESPACE
from kedge.api.karmada.policies import PropagationPolicy
from kedge.kube.patches import MergePatch

pytestmark = pytest.mark.timeout(400)
NAME = "binding/demo-deployment"


async def deployed(hub: AlignHub) -> None:
    await hub.deploy()
    await hub.until_said("10 of 10 pods updated, available 10", "status", NAME)


async def test_a_release_is_foretold_in_order_and_with_its_bounds(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await deployed(hub)
        said = await hub.said("plan", NAME)
        assert "ResourceBinding shop/demo-deployment, Deployment shop/demo: nothing would be written" in said
        release = saved(tmp_path / "release.yaml", deployment("app:2"))
        asked = watched(hub.server)
        shown = (await hub.kedge("plan", "-f", release)).output
        assert "Deployment shop/demo: 10 pods would move, in " in shown
        lines = [line.split() for line in shown.splitlines()]
        order = [line[1] for line in lines if len(line) > 1 and line[1].startswith("cluster-")]
        assert order == ["cluster-2", "cluster-1"]
        assert (
            "never under 8 of 10 pods available; never over 11 pods; whatever clusters have not reported yet" in shown
        )
        assert "nothing was written to any cluster" in shown
        assert {request.method for request in asked} == {"GET"}


async def test_what_is_aligned_beside_a_karmada_is_not_previewed(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        other = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}]}
        policy = {"name": "mine", "namespace": "shop", "annotations": {ALIGN: "true"}}
        await hub.client.create(PropagationPolicy, {"metadata": policy, "spec": other})
        await deployed(hub)
        notes = {POLICY_NAME: "mine", POLICY_NAMESPACE: "shop"}
        body = MergePatch({"metadata": {"annotations": notes}})
        await hub.client.patch(ResourceBinding, "demo-deployment", body, "shop")
        said = await hub.said("plan", NAME, code=1)
        assert "ResourceBinding shop/demo-deployment is aligned beside a Karmada, which is not previewed" in said


async def test_a_cluster_that_fails_and_other_replicas_are_foretold(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await deployed(hub)
        release = saved(tmp_path / "release.yaml", deployment("app:2"))
        failed = await hub.said("plan", "-f", release, "--fail", "cluster-2", code=3)
        assert "not where they should be, in the end: cluster-2: " in failed
        assert "cluster-1: at most 2 of 10 pods may be unavailable, and 1 may be extra: cluster-2 holds that" in failed
        assert "new pods are taken never to be available, as told: cluster-2" in failed
        assert "--fail cluster-7: the binding has no such cluster; it has cluster-1 and cluster-2" in await hub.said(
            "plan", "-f", release, "--fail", "cluster-7", code=1
        )
        moved = saved(tmp_path / "moved.yaml", binding(cluster_1=6, cluster_2=4))
        data = await hub.data("plan", "-f", moved)
        (told,) = data["bindings"]
        assert {one["name"]: one["pods"] for one in told["clusters"]} == {"cluster-1": 6, "cluster-2": 4}
        assert told["done"]


async def test_a_binding_that_is_not_there_yet_is_foretold_and_a_bad_one_refused(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        new = saved(tmp_path / "new.yaml", deployment("app:1"), binding())
        said = await hub.said("plan", "-f", new)
        assert "10 pods would move, in 1 wave" in said
        assert "no pod is there yet that could be missed" in said
        bad = binding()
        bad["spec"] = {"clusters": []}
        wrong = await hub.said("plan", "-f", saved(tmp_path / "bad.yaml", bad), code=1)
        assert "the hub would refuse ResourceBinding shop/demo-deployment: " in wrong
        assert "there is no ResourceBinding shop/web" in await hub.said("plan", "binding/web", code=1)
