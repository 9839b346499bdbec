"""`kedge plan` for bindings: the order and the bounds, from a hub that is only read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.align_hub import AlignHub, align_hub, binding, deployment
from cli.typing_user import saved, watched
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.keys import ALIGN, POLICY_NAME, POLICY_NAMESPACE
from kedge.api.karmada.policies import PropagationPolicy
from kedge.api.karmada.proposed import ProposedBinding
from kedge.kube.codec import untyped
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


async def test_a_binding_that_nothing_is_done_about_is_previewed_with_the_reason(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await deployed(hub)
        elsewhere = MergePatch({"spec": {"resource": {"namespace": "bank"}}})
        await hub.client.patch(ResourceBinding, "demo-deployment", elsewhere, "shop")
        words = "spec.resource.namespace is bank, but the binding is in shop"
        said = await hub.said("plan", NAME, code=3)
        assert words in said
        assert "ResourceBinding shop/demo-deployment, Deployment bank/demo: nothing would be written" in said
        assert words in await hub.said("status", NAME, code=3)
        assert words in await hub.said("get", "bindings")


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


Edit = Callable[[dict[str, Any]], object]
REFUSED: dict[str, Edit] = {
    'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%"': lambda spec: rolling(
        spec, maxUnavailable="150%"
    ),
    'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "abc"': lambda spec: rolling(
        spec, maxUnavailable="abc"
    ),
    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1": lambda spec: rolling(spec, maxUnavailable=-1),
    "may not be 0 when `maxSurge` is 0": lambda spec: rolling(spec, maxUnavailable=0, maxSurge=0),
    "spec.replicas: Invalid value: -10": lambda spec: spec.update(replicas=-10),
    ".spec.strategy.rollingUpdate.maxUnavalable": lambda spec: rolling(spec, maxUnavalable=1),
    '.spec.template.spec.containers[name="app"].imag:': lambda spec: container(spec).update(imag="app:2"),
    '.spec.template.spec.containers[name="app"].image:': lambda spec: container(spec).update(image=["app:2"]),
    "spec.selector: Invalid value": lambda spec: spec["selector"].update(matchLabels={"app": "other"}),
}


def rolling(spec: dict[str, Any], **fields: Any) -> None:
    spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {**spec["strategy"]["rollingUpdate"], **fields}}


def container(spec: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = spec["template"]["spec"]["containers"][0]
    return found


async def test_what_the_hub_would_refuse_is_refused_with_its_path(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await deployed(hub)
        asked = watched(hub.server)
        for path, edit in REFUSED.items():
            wrong = copy.deepcopy(deployment("app:2"))
            edit(wrong["spec"])
            said = await hub.said("plan", "-f", saved(tmp_path / "wrong.yaml", wrong), code=1)
            assert "the hub would refuse Deployment shop/demo: " in said
            assert path in said, said
        later = saved(tmp_path / "later.yaml", {**deployment("app:2"), "apiVersion": "apps/v9"})
        assert "it serves no Deployment of apps/v9" in await hub.said("plan", "-f", later, code=1)
        fewer = saved(tmp_path / "fewer.yaml", binding(cluster_1=-7))
        assert "spec.clusters[0].replicas: Invalid value: -7" in await hub.said("plan", "-f", fewer, code=1)
        typo = binding()
        typo["spec"]["clusters"][1]["relicas"] = 3
        said = await hub.said("plan", "-f", saved(tmp_path / "typo.yaml", typo), code=1)
        assert 'unknown field "spec.clusters[1].relicas"' in said
        assert {request.method for request in asked} == {"GET"}


async def test_a_binding_of_a_resource_that_is_not_there_would_write_nothing(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        nothing = binding()
        nothing["spec"]["resource"]["name"] = "nope"
        said = await hub.said("plan", "-f", saved(tmp_path / "nope.yaml", nothing), code=3)
        assert "nothing would be written there is no Deployment shop/nope" in said


async def test_a_resource_in_the_file_is_checked_whatever_its_binding_is_called(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        custom = binding()
        custom["metadata"]["name"] = "custom"
        said = await hub.said("plan", "-f", saved(tmp_path / "custom.yaml", custom, deployment("app:1")))
        assert "ResourceBinding shop/custom, Deployment shop/demo: 10 pods would move" in said
        wrong = saved(tmp_path / "wrong.yaml", custom, deployment("app:1", replicas=-1))
        assert "spec.replicas: Invalid value: -1" in await hub.said("plan", "-f", wrong, code=1)


async def test_what_a_file_leaves_out_goes_if_kubectl_owned_it(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        paused = deployment("app:1")
        await hub.client.apply(untyped(Deployment.resource), paused, manager="kubectl")
        await hub.client.create(ResourceBinding, binding())
        await hub.until_said("10 of 10 pods updated, available 10", "status", NAME)
        paused["spec"]["paused"] = True
        await hub.client.apply(untyped(Deployment.resource), paused, manager="kubectl")
        release = saved(tmp_path / "release.yaml", deployment("app:2"))
        assert "10 pods would move" in await hub.said("plan", "-f", release)


def proposed(cluster_1: int, cluster_2: int, name: str = "demo-deployment") -> dict[str, Any]:
    clusters = [{"name": "cluster-1", "replicas": cluster_1}, {"name": "cluster-2", "replicas": cluster_2}]
    meta = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": meta,
        "spec": {"clusters": clusters},
    }


async def test_a_binding_in_the_proposals_form_is_foretold_as_what_is_made_of_it(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await hub.client.create(Deployment, deployment("app:1"))
        first = saved(tmp_path / "first.yaml", proposed(4, 6))
        assert "10 pods would move, in 1 wave" in await hub.said("plan", "-f", first)
        await hub.client.create(ProposedBinding, proposed(4, 6))
        await hub.until_said("10 of 10 pods updated, available 10", "status", NAME)
        for objects in ([proposed(7, 3)], [deployment("app:1"), proposed(7, 3)]):
            told = (await hub.data("plan", "-f", saved(tmp_path / "moved.yaml", *objects)))["bindings"][0]
            assert {one["name"]: one["pods"] for one in told["clusters"]} == {"cluster-1": 7, "cluster-2": 3}
            assert sum(one["moves"] for one in told["clusters"]) == 3
        odd = saved(tmp_path / "odd.yaml", proposed(4, 6, name="demo"))
        said = await hub.said("plan", "-f", odd, code=1)
        assert "ResourceBinding shop/demo of karmada.io is not followed: demo says of no workload" in said


async def test_a_binding_in_the_proposals_form_beside_another_is_not_followed(tmp_path: Path) -> None:
    async with align_hub(tmp_path) as hub:
        await hub.deploy()
        said = await hub.said("plan", "-f", saved(tmp_path / "other.yaml", proposed(7, 3)), code=1)
        assert "demo-deployment of work.karmada.io exists already, and is the one that counts" in said
