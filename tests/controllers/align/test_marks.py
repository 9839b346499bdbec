"""The labels and annotations by which those who know Karmada find what belongs together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.keys import BINDING_ID, CLUSTER_BINDING_ID, MANAGED, TEMPLATE_UID, WORK_ID
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work
from kedge.kube.patches import MergePatch
from support.virtual import run

DEMO = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo", "namespace": SHOP}


async def bound(here: AlignBed, kind: Any) -> None:
    """A Deployment with two pods in one cluster, by a binding of a kind that was written by hand."""
    await here.deploy(Deployment, {"cluster-1": 2})
    if kind is not ResourceBinding:
        await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
        place = {"namespace": SHOP} if kind.resource.namespaced else {}
        spec = {"resource": DEMO, "clusters": [{"name": "cluster-1", "replicas": 2}]}
        await here.hub.create(kind, {"metadata": {"name": "own", **place}, "spec": spec})
    await here.until_images("app:1", "app:1")
    await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("kind", "stored", "label"),
    [
        (ResourceBinding, ResourceBinding, BINDING_ID),
        (ProposedBinding, ResourceBinding, BINDING_ID),
        (ClusterResourceBinding, ClusterResourceBinding, CLUSTER_BINDING_ID),
    ],
)
def test_works_are_found_by_the_id_of_a_binding_that_was_written_by_hand(kind: Any, stored: Any, label: str) -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await bound(here, kind)
            (binding,) = (await here.hub.list(stored)).items
            (work,) = (await here.hub.list(Work)).items
            assert work.metadata.labels[label] == binding.metadata.labels[label] != ""
            assert work.metadata.labels[WORK_ID]

    run(body())


def test_what_is_propagated_is_marked_in_the_member() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await bound(here, ResourceBinding)
            template = await here.hub.get(Deployment, "demo", SHOP)
            found = (await here.members["cluster-1"].get(Deployment, "demo", SHOP)).metadata
            assert found.labels[MANAGED] == "true"
            assert found.annotations[TEMPLATE_UID] == template.metadata.uid

    run(body())


def test_a_work_without_marks_gets_them_with_its_next_write_and_not_before() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await bound(here, ResourceBinding)
            (work,) = (await here.hub.list(Work)).items
            bare = dict(work.spec.workload.manifests[0])
            notes = {name: note for name, note in bare["metadata"]["annotations"].items() if "managed" not in name}
            bare["metadata"] = {**bare["metadata"], "labels": {}, "annotations": {**notes, TEMPLATE_UID: ""}}
            change = {"metadata": {"labels": None}, "spec": {"workload": {"manifests": [bare]}}}
            before = await here.hub.patch(Work, work.metadata.name, MergePatch(change), work.metadata.namespace)
            await asyncio.sleep(30)
            (kept,) = (await here.hub.list(Work)).items
            assert kept.metadata.generation == before.metadata.generation
            await here.edit(Deployment, {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}})
            await here.until_images("app:2", "app:2")
            (after,) = (await here.hub.list(Work)).items
            assert {BINDING_ID, WORK_ID} <= after.metadata.labels.keys()
            assert after.spec.workload.manifests[0]["metadata"]["labels"] == {MANAGED: "true"}

    run(body())
