"""The verbs of rollouts in batches, against an embedded cluster over HTTPS, as a user has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.batch_cluster import SHOP, Shop, shop
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import StatefulSet
from kedge.api.crd import crd
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.api.placement import ClusterResourcePlacement
from kedge.kube.patches import MergePatch

pytestmark = pytest.mark.timeout(400)
PLACEMENTS = crd(ClusterResourcePlacement)
HALVES = [{"replicas": 2}, {"replicas": 2}]


async def released(found: Shop, image: str = "app:2", **plan: Any) -> None:
    """web-v1 with four pods, and a rollout of it to web-v2 in two batches."""
    await found.deployment("web-v1", 4, "app:1")
    await found.until_images(v1=4)
    await found.deployment("web-v2", 0, image)
    await found.trait("web-v2", "web-v1", **({"rolloutBatches": HALVES} | plan))


async def test_a_rollout_that_is_held_is_listed_shown_and_explained_batch_by_batch(tmp_path: Path) -> None:
    async with shop(tmp_path) as found:
        await released(found, batchPartition=0)
        await found.until_state("rollingInBatches", "batchReady")
        waits = "batch 0 is the last one that may roll, of 2: raise batchPartition to go on"
        head, line = (await found.kedge("get", "rollouts")).output.splitlines()
        assert head.split() == ["ROLLOUT", "KIND", "TARGET", "BATCH", "READY", "STATE", "WHY"]
        assert " ".join(line.split()) == f"shop/web RolloutTrait Deployment web-v2 1/2 2/4 waiting {waits}"
        for names in (["rollouttraits"], ["rollouttrait/web"], ["rollouts", "shop/web"], ["rollouts", "-n", SHOP]):
            assert "shop/web" in await found.said("get", *names)
        shown = (await found.kedge("status", "web", code=3)).output.splitlines()
        assert len(shown) == 3
        assert "RolloutTrait shop/web to Deployment web-v2 is rolling, batch 0 of 2, 2 of 4 pods ready" in " ".join(
            shown[0].split()
        )
        assert shown[1].endswith("batch 0  2 pods, goal 2 of 4, done")
        assert shown[2].endswith(f"batch 1  2 pods, goal 4 of 4, not begun: {waits.replace(', of 2', '')}")
        told = (await found.kedge("explain", "rollouttrait/web")).output.splitlines()
        assert told[1].startswith("it waits for that since 20")
        assert told[2:4] == [
            "batch 0: 2 pods, goal 2 of 4, done",
            f"batch 1: 2 pods, goal 4 of 4, not begun: {waits.replace(', of 2', '')}",
        ]
        assert (await found.kedge("explain", "web", "0")).output == f"{told[2]}\n"
        data = await found.data("status", "web", code=3)
        assert (data["state"], data["done"], data["size"], data["ready"]) == ("waiting", False, 4, 2)
        one = yaml.safe_load((await found.kedge("explain", "web", "1", "-o", "yaml")).stdout)
        assert (one["index"], one["goal"], one["state"]) == (1, 4, "waiting")
        assert "has no batch 7: they are 0 to 1" in await found.said("explain", "web", "7", code=1)


async def test_a_rollout_is_paused_resumed_and_followed_to_its_end(tmp_path: Path) -> None:
    async with shop(tmp_path) as found:
        await released(found, paused=True)
        await found.until_said("it is paused", "status", "web", code=3)
        assert "is paused already" in await found.said("pause", "web")
        late = await found.kedge("status", "web", "-w", "--timeout", "1", code=3)
        assert "RolloutTrait shop/web to Deployment web-v2: is paused, batch 0 of 2, 0 of 4 pods ready" in late.output
        assert "RolloutTrait shop/web goes on" in await found.said("resume", "shop/web")
        done = await found.kedge("status", "web", "-w", "--timeout", "100")
        assert done.output.splitlines()[-1] == (
            "RolloutTrait shop/web to Deployment web-v2: has succeeded, batch 1 of 2, 4 of 4 pods ready"
        )
        assert "has succeeded; nothing moves any more" in await found.said("pause", "web", code=1)
        assert await found.sizes() == {"web-v1": 0, "web-v2": 4}


async def test_a_bad_release_is_explained_by_its_pods_aborted_retried_and_rolled_back(tmp_path: Path) -> None:
    async with shop(tmp_path) as found:
        await released(found, "app:bad")
        waits = "0 of 2 pods of Deployment shop/web-v2 are available, 0 may be unavailable (for "
        await found.until_said(waits, "explain", "web")
        told = await found.until_said("ImagePullBackOff", "explain", "web")
        assert waits in told
        assert "pod web-v2-" in told
        assert "what has moved stays where it is" in await found.said("abort", "web")
        await found.until_state("rolloutFailed")
        failed = await found.said("explain", "web")
        assert "has failed, batch 0 of 2, 0 of 4 pods ready: it was aborted" in failed
        assert "`kedge retry rollouttrait/web -n shop` starts it again" in failed
        assert "has failed: it was aborted" in await found.said("abort", "web", code=1)
        assert "starts again from where it is" in await found.said("retry", "web")
        await found.until_state("rollingInBatches")
        assert "has not failed: is rolling" in await found.said("retry", "web", code=1)
        assert "goes back to Deployment web-v1, in its batches" in await found.said("rollback", "web")
        await found.until_state("rolloutSucceed")
        assert await found.sizes() == {"web-v1": 4, "web-v2": 0}
        again = await found.said("rollback", "web", code=1)
        assert "nothing but Deployment web-v1 ran before it" in again


async def test_a_release_after_a_release_can_be_rolled_back_midway(tmp_path: Path) -> None:
    async with shop(tmp_path) as found:
        await released(found)
        await found.until_state("rolloutSucceed")
        await found.deployment("web-v3", 0, "app:bad")
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v3"}
        await found.edit({"targetRef": target, "sourceRef": []})
        await found.until_said("ImagePullBackOff", "explain", "web")
        assert "goes back to Deployment web-v2" in await found.said("rollback", "web")
        story = await found.kedge("status", "web", "-w", "--timeout", "100")
        assert story.output.splitlines()[-1].endswith("has succeeded, batch 1 of 2, 4 of 4 pods ready")
        assert await found.sizes() == {"web-v1": 0, "web-v2": 4, "web-v3": 0}


async def test_a_rollout_whose_controller_does_not_run_says_so(tmp_path: Path) -> None:
    async with shop(tmp_path, operated=False) as found:
        await released(found)
        sentence = "its controller has not taken note of the last change yet: is `kedge operator --batches` running?"
        assert sentence in await found.said("status", "web", code=3)
        assert sentence in await found.said("get", "rollouts")
        assert "Until then it is not known what ran before" in await found.said("rollback", "web", code=1)
        assert "its batches are not known yet" in await found.said("explain", "web", "1", code=1)


async def test_a_name_that_several_things_have_is_refused_with_the_names_of_all(tmp_path: Path) -> None:
    async with shop(tmp_path, operated=False) as found:
        await released(found)
        spec = {"targetRevisionName": "web-v2", "componentName": "web", "rolloutPlan": {}}
        await found.client.create(Rollout, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})
        said = await found.said("pause", "web", code=1)
        assert said == "Error: web is RolloutTrait shop/web and Rollout shop/web: write rollouttrait/web or rollout/web"
        assert "Rollout shop/web is paused" in await found.said("pause", "rollout/web")
        assert not (await found.get()).spec.rollout_plan.paused
        await found.client.delete(Rollout, "web", SHOP)
        labels = {"app": "db"}
        sets = {
            "selector": {"matchLabels": labels},
            "serviceName": "db",
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "db:1"}]}},
        }
        meta = {"name": "db", "namespace": SHOP, "labels": {"rollout-group": "web"}}
        await found.client.create(StatefulSet, {"metadata": meta, "spec": sets})
        both = await found.said("status", "web", code=1)
        assert "RolloutTrait shop/web and rollout group shop/web: write rollouttrait/web or group/web" in both
        assert "rollout group shop/web" in await found.said("status", "group/web", code=3)
        await found.client.create(CustomResourceDefinition, PLACEMENTS)
        selector = {"group": "", "version": "v1", "kind": "Namespace", "name": SHOP}
        placed = {"metadata": {"name": "web"}, "spec": {"resourceSelectors": [selector]}}
        await found.until_served(ClusterResourcePlacement)
        await found.client.create(ClusterResourcePlacement, placed)
        all_three = await found.said("pause", "web", code=1)
        assert all_three.endswith("write rollouttrait/web or group/web or placement/web")
        assert "web is paused" in await found.said("pause", "placement/web")
        assert (await found.client.get(ClusterResourcePlacement, "web")).metadata.annotations


async def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    async with shop(tmp_path, operated=False) as found:
        table = {
            ("status", "rollouttrait/web"): "there is no RolloutTrait shop/web, nor any other there",
            ("abort", "web"): "there is no rollout in batches web in namespace shop",
            ("abort", "a/web", "-n", "b"): "a/web is in namespace a, and --namespace says b: leave one out",
            ("status", "web"): "this cluster serves no placements",
            ("get", "rollouts", "web"): "there is no rollout web: there is none",
        }
        for words, sentence in table.items():
            code = 2 if "-n" in words else 1
            assert sentence in await found.said(*words, code=code), words
        assert "there are no rollouts in batches in namespace shop" in await found.said("get", "rollouts", "-n", SHOP)
        await found.client.delete(CustomResourceDefinition, "rollouttraits.standard.oam.dev")
        await found.until_said("serves no rollouts in batches", "get", "rollouttraits", code=1)
        assert "this cluster serves no such kind" in await found.said("pause", "rollouttrait/web", code=1)


async def test_a_rollout_that_is_deleted_while_it_is_followed_ends_the_command(tmp_path: Path) -> None:
    async with shop(tmp_path, operated=False) as found:
        await released(found)
        await found.client.patch(RolloutTrait, "web", MergePatch({"metadata": {"labels": {"a": "b"}}}), SHOP)
        await found.client.delete(RolloutTrait, "web", SHOP)
        assert "there is no RolloutTrait shop/web" in await found.said("status", "rollouttrait/web", "-w", code=1)
