"""`kedge plan` of a rollout in batches, against an embedded cluster over HTTPS; and what it asks of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.batch_cluster import SHOP, shop
from cli.typing_user import saved, watched

pytestmark = pytest.mark.timeout(400)


def ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def trait(target: str = "web-v2", **plan: Any) -> dict[str, Any]:
    spec = {"targetRef": ref(target), "sourceRef": [ref("web-v1")], "rolloutPlan": plan}
    return {
        "apiVersion": "standard.oam.dev/v1alpha1",
        "kind": "RolloutTrait",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def deployment(name: str, image: str) -> dict[str, Any]:
    labels = {"app": "web", "version": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def test_a_rollout_of_a_file_is_told_batch_by_batch_and_nothing_is_written(tmp_path: Path) -> None:
    async with shop(tmp_path, operated=False) as found:
        await found.deployment("web-v1", 4, "app:1")
        await found.until_images(v1=4)
        asked = watched(found.cluster)
        plan: dict[str, Any] = {"rolloutBatches": [{"replicas": 1}, {"replicas": 3}]}
        file = saved(tmp_path / "rollout.yaml", deployment("web-v2", "app:2"), trait(**plan))
        result = await found.kedge("plan", "-f", file)
        assert [" ".join(line.split()) for line in result.output.splitlines()] == [
            "RolloutTrait shop/web to Deployment web-v2: 4 pods in 2 batches",
            "from Deployment shop/web-v1 to Deployment shop/web-v2: pods of the target come first, then old ones go",
            "BATCH PODS GOAL AVAILABLE EXISTING NEEDS",
            "0 1 1/4 >= 4 <= 5 all its pods available",
            "1 3 4/4 >= 4 <= 7 all its pods available",
            "",
            "This is a preview: nothing was written to any cluster.",
        ]
        alone = saved(tmp_path / "alone.yaml", trait(**plan))
        assert "would wait: Deployment shop/web-v2 does not exist" in await found.said("plan", "-f", alone, code=3)
        held = saved(tmp_path / "held.yaml", deployment("web-v2", "app:2"), trait(batchPartition=0, **plan))
        data = await found.data("plan", "-f", held, code=3)
        assert (data["done"], [one["is_reached"] for one in data["rollouts"][0]["batches"]]) == (False, [True, False])
        bad = saved(tmp_path / "bad.yaml", trait(numBatches=3, **plan))
        said = await found.said("plan", "-f", bad, code=3)
        assert "would be refused: spec.rolloutPlan.numBatches: the num batches does not match" in said
        wrong = saved(tmp_path / "wrong.yaml", {**trait(), "spec": {"rolloutPlan": {}}})
        assert "the cluster would refuse RolloutTrait shop/web: " in await found.said("plan", "-f", wrong, code=1)
        unknown: tuple[dict[str, Any], ...] = ({"x": 1}, {"rolloutPlan": {"rolloutBatchs": []}})
        for part in unknown:
            given = saved(tmp_path / "unknown.yaml", {**trait(), "spec": {**trait()["spec"], **part}})
            said = await found.said("plan", "-f", given, code=1)
            assert "the cluster would refuse RolloutTrait shop/web: " in said
            assert (".spec.x" if "x" in part else ".spec.rolloutPlan.rolloutBatchs") in said
        assert asked
        assert {request.method for request in asked} == {"GET"}


async def test_a_rollout_that_is_under_way_is_told_and_so_is_a_change_of_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as found:
        await found.deployment("web-v1", 4, "app:1")
        await found.until_images(v1=4)
        await found.deployment("web-v2", 0, "app:2")
        plan: dict[str, Any] = {"rolloutBatches": [{"replicas": 1}, {"replicas": 3}]}
        await found.trait("web-v2", "web-v1", batchPartition=0, **plan)
        await found.until_state("rollingInBatches", "batchReady")
        for name in ("web", "rollouttrait/web", f"{SHOP}/web"):
            said = await found.said("plan", name, code=3)
            assert "0 1 1/4 >= 4 <= 5 done already 1 3 4/4 >= 4 <= 7 may not roll yet" in said
        lower = saved(tmp_path / "other.yaml", trait(rolloutBatches=[{"replicas": 2}, {"replicas": 2}]))
        refused = await found.said("plan", "-f", lower, code=3)
        assert "RolloutBatches can only change the part after the BatchPartition field" in refused
        await found.deployment("web-v3", 0, "app:3")
        other = saved(tmp_path / "third.yaml", trait("web-v3", **plan))
        anew = await found.data("plan", "-f", other)
        (told,) = anew["rollouts"]
        assert (told["size"], [one["is_done"] for one in told["batches"]]) == (4, [False, False])
        assert "web-v1" in told["moves"]
        assert "web-v2" in told["moves"]
