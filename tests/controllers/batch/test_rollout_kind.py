"""Rollouts of a component from revision to revision, on an embedded server, in virtual time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.batch.batch_bed import SHOP
from controllers.batch.revision_bed import RevisionBed, a_while, revisions, workload
from kedge.api.apps import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import Rollout
from kedge.api.rbac import RoleBinding
from kedge.kube.patches import MergePatch
from support.virtual import run

HALVES = [{"replicas": "50%"}, {"replicas": "50%"}]
IN_PLACE: dict[str, Any] = {"CloneSet": CloneSet, "StatefulSet": StatefulSet}


def test_the_life_of_a_component() -> None:
    """First scale, v2, v3, back to v2, resize, v4, v5 held at a partition and released, and the end."""

    async def body() -> None:
        async with revisions(1, 2, 3, 4, 5) as here:
            await here.rollout("web-v1", targetSize=2)
            await here.until_succeeded("web-v1", 2)
            await here.until_sizes(v1=2)
            for target in ("web-v2", "web-v3", "web-v2"):
                await here.to(target)
                await here.until_succeeded(target, 2)
                await here.until_sizes(**{target.removeprefix("web-"): 2})
            await here.to(targetSize=4)
            await here.until_succeeded("web-v2", 4)
            await here.until_sizes(v2=4)
            await here.to("web-v4")
            await here.until_succeeded("web-v4", 4)
            await here.to("web-v5", rolloutBatches=HALVES, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady", target="web-v5")
            await a_while()
            assert await here.sizes() == {"web-v4": 2, "web-v5": 2}
            assert (await here.get()).status.last_source_revision == "web-v4"
            await here.to(batchPartition=1)
            await here.until_succeeded("web-v5", 4)
            await here.until_images(v5=4)
            await here.delete()
            await here.until_gone_with_workloads()

    run(body())


def test_a_target_has_the_labels_and_annotations_of_its_revision_and_belongs_to_the_rollout() -> None:
    async def body() -> None:
        async with revisions(1) as here:
            await here.rollout("web-v1", targetSize=1)
            found = await here.until_succeeded("web-v1", 1)
            meta = (await here.live("web-v1"))["metadata"]
            assert meta["labels"] == {"app.oam.dev/component": "web", "app.oam.dev/revision": "web-v1"}
            assert meta["annotations"]["app.oam.dev/skipGC"] == "true"
            assert "kedge.dev/rolled-by" not in meta["annotations"]
            (owner,) = meta["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("Rollout", "web", False)
            assert found.metadata.annotations["trait.oam.dev/workload-name"] == "web-v1"
            kind = msgspec.json.decode(found.metadata.annotations["trait.oam.dev/workload-gvk"])
            assert kind == {"apiVersion": "apps/v1", "kind": "Deployment"}

    run(body())


def test_scaling_needs_no_batches() -> None:
    async def body() -> None:
        async with revisions(1) as here:
            await here.rollout("web-v1", targetSize=2)
            await here.until_succeeded("web-v1", 2)
            for size in (5, 1, 0, 3):
                await here.to(targetSize=size)
                await here.until_succeeded("web-v1", size)
                await here.until_images(v1=size)
            assert (await here.get()).spec.rollout_plan.rollout_batches is None

    run(body())


def test_the_revisions_of_an_unfinished_rollout_are_one_pool() -> None:
    async def body() -> None:
        async with revisions(1, 2, 3) as here:
            await _half_way(here)
            await here.to("web-v3", batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady", target="web-v3")
            sizes = await here.sizes()
            assert (sizes["web-v3"], sum(sizes.values())) == (2, 4)
            assert (await here.get()).status.last_source_revision == "web-v2"
            await here.to(batchPartition=1)
            await here.until_succeeded("web-v3", 4)
            await here.until_sizes(v3=4)

    run(body())


def test_back_to_the_first_revision_midway() -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _half_way(here)
            await here.to("web-v1", batchPartition=1)
            await here.until_succeeded("web-v1", 4)
            await here.until_sizes(v1=4)

    run(body())


async def _half_way(here: RevisionBed) -> None:
    """From v1 to v2, at 2 of 4 pods. The size is not in the plan any more."""
    await here.rollout("web-v1", targetSize=4)
    await here.until_succeeded("web-v1", 4)
    await here.to("web-v2", targetSize=None, rolloutBatches=HALVES, batchPartition=0)
    await here.until_state("rollingInBatches", "batchReady", target="web-v2")
    await here.until_sizes(v1=2, v2=2)


def test_a_rollout_that_is_deleted_midway_leaves_all_pods() -> None:
    async def body() -> None:
        async with revisions(1, 2, 3) as here:
            await _half_way(here)
            await here.delete()
            await here.until_gone()
            await a_while()
            assert await here.sizes() == {"web-v1": 2, "web-v2": 2}
            for name in ("web-v1", "web-v2"):
                meta = (await here.live(name))["metadata"]
                assert "ownerReferences" not in meta
                assert "kedge.dev/rolled-by" not in meta.get("annotations", {})
            await here.rollout("web-v3", rolloutBatches=HALVES)
            await here.until_succeeded("web-v3", 4)
            await here.until_sizes(v3=4)

    run(body())


def test_a_new_rollout_finishes_what_another_one_left() -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _half_way(here)
            await here.delete()
            await here.until_gone()
            await here.rollout("web-v2")
            await here.until_succeeded("web-v2", 4)
            await here.until_sizes(v2=4)

    run(body())


def test_a_failed_rollout_leaves_both_revisions_also_when_it_is_deleted() -> None:
    async def body() -> None:
        async with revisions(1) as here:
            await here.revision(9, spec={"workload": _broken()})
            await here.rollout("web-v1", targetSize=4)
            await here.until_succeeded("web-v1", 4)
            await here.to("web-v9", rolloutBatches=HALVES, progressDeadlineSeconds=30, onDeadline="Fail")
            await here.until_state("rolloutFailed")
            assert await here.sizes() == {"web-v1": 4, "web-v9": 2}
            await here.delete()
            await here.until_gone()
            await a_while()
            assert await here.sizes() == {"web-v1": 4, "web-v9": 2}

    run(body())


def _broken() -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(workload(9)).replace(b"app:9", b"app:bad"), type=dict[str, Any])


def test_a_failed_rollout_goes_on_to_a_fix() -> None:
    async def body() -> None:
        async with revisions(1, 3) as here:
            await here.revision(2, spec={"workload": _broken()})
            await here.rollout("web-v1", targetSize=4)
            await here.until_succeeded("web-v1", 4)
            await here.to("web-v2", rolloutBatches=HALVES, progressDeadlineSeconds=30, onDeadline="Fail")
            await here.until_state("rolloutFailed")
            await here.to("web-v3")
            await here.until_succeeded("web-v3", 4)
            await here.until_sizes(v3=4)

    run(body())


def test_a_rollout_that_is_taken_back_leaves_nothing_of_the_target() -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _half_way(here)
            await here.to(revertOnDelete=True)
            await here.delete()
            await here.until_gone()
            await here.until_images(v1=4)
            await here.until(lambda: here.is_missing_workload("web-v2"))

    run(body())


# What it moves from the first time


def test_a_first_rollout_moves_from_whatever_runs() -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _plain(here, "web", "web-v1", 3)
            await here.rollout("web-v2", rolloutBatches=[{"replicas": 1}, {"replicas": 2}])
            found = await here.until_succeeded("web-v2", 3)
            assert found.status.last_source_revision == "web-v1"
            await here.until_sizes(v2=3)

    run(body())


def test_a_first_rollout_moves_from_what_it_is_told_to() -> None:
    async def body() -> None:
        async with revisions(1, 2, 3) as here:
            await _plain(here, "web-v1", "web-v1", 2)
            await _plain(here, "web-v2", "web-v2", 2)
            await here.rollout("web-v3", source="web-v2", targetSize=2)
            await here.until_succeeded("web-v3", 2)
            await here.until_sizes(v1=2, v3=2)

    run(body())


@pytest.mark.parametrize("source", ["", "web-v1"])
def test_a_first_rollout_moves_from_what_runs_of_the_application_that_its_revision_names(source: str) -> None:
    async def body() -> None:
        async with revisions() as here:
            for number in (1, 2):
                made = workload(number) | {"metadata": {"labels": {"app.oam.dev/name": "shop"}}}
                await here.revision(number, spec={"workload": made})
            await _plain(here, "web", "web-v1", 3, **{"app.oam.dev/name": "shop"})
            await here.rollout("web-v2", source=source, rolloutBatches=[{"replicas": 1}, {"replicas": 2}])
            await here.until_succeeded("web-v2", 3)
            await here.until_sizes(v2=3)

    run(body())


async def _plain(here: RevisionBed, name: str, revision: str, replicas: int, **more: str) -> None:
    """A Deployment that was there before any Rollout."""
    labels = {"app.oam.dev/component": "web", "app.oam.dev/revision": revision, **more}
    made = workload(int(revision[-1]), replicas=replicas)
    own = {"app": "web", "of": name}
    made["spec"] |= {"selector": {"matchLabels": own}}
    made["spec"]["template"]["metadata"] = {"labels": own}
    await here.client.create(Deployment, {**made, "metadata": {"name": name, "namespace": SHOP, "labels": labels}})


# What cannot be found


def test_it_waits_for_a_revision_that_does_not_exist_yet() -> None:
    async def body() -> None:
        async with revisions() as here:
            await here.rollout("web-v1", targetSize=1)
            await here.until_message("ControllerRevision shop/web-v1 does not exist")
            await here.revision(1)
            await here.until_succeeded("web-v1", 1)

    run(body())


def test_a_rollout_that_waits_for_its_revision_can_be_deleted() -> None:
    async def body() -> None:
        async with revisions() as here:
            await here.rollout("web-v1", targetSize=1)
            await here.until_message("does not exist")
            await here.delete()
            await here.until_gone()

    run(body())


@pytest.mark.parametrize("gone", ["web-v1", "web-v2", "revisions"])
def test_a_rollout_can_be_deleted_when_what_it_refers_to_is_gone(gone: str) -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _half_way(here)
            if gone == "revisions":
                await here.client.delete(ControllerRevision, "web-v1", SHOP)
                await here.client.delete(ControllerRevision, "web-v2", SHOP)
            else:
                await here.client.delete(Deployment, gone, SHOP)
            await here.delete()
            await here.until_gone()
            await a_while()
            left = {"web-v1", "web-v2"} - {gone}
            assert set(await here.sizes()) == left
            for name in left:
                assert "kedge.dev/rolled-by" not in (await here.live(name))["metadata"].get("annotations", {})

    run(body())


def test_a_rollout_goes_on_without_its_revisions() -> None:
    async def body() -> None:
        async with revisions(1, 2) as here:
            await _half_way(here)
            await here.client.delete(ControllerRevision, "web-v1", SHOP)
            await here.client.delete(ControllerRevision, "web-v2", SHOP)
            await here.to(batchPartition=1)
            await here.until_succeeded("web-v2", 4)
            await here.until_sizes(v2=4)

    run(body())


# What is refused


def _of(kind: str, **meta: Any) -> dict[str, Any]:
    made = {**workload(1), "kind": kind}
    return {"workload": {**made, "metadata": meta} if meta else made}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"metadata": {"name": "db"}}, "is a revision of the component db, not of web"),
        ({"spec": None}, "keeps no Component"),
        ({"spec": {"workload": {}}}, "the workload kind `` of the ControllerRevision web-v1 is not supported"),
        ({"spec": _of("Pod")}, "the workload kind `Pod` of the ControllerRevision web-v1 is not supported"),
        ({"spec": {"workload": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}}}, "RoleBinding"),
        ({"spec": _of("Deployment", namespace="kube-system")}, "another namespace than shop"),
        ({"metadata": {"name": "web", "namespace": "kube-system"}}, "of another namespace than shop"),
        ({"spec": {"workload": {**workload(1), "spec": [1]}}}, "spec of its workload must be a map"),
        ({"spec": {"workload": {**workload(1), "metadata": "x"}}}, "metadata of its workload must be a map"),
    ],
)
def test_a_revision_that_cannot_be_rolled_out_is_refused_in_words(data: dict[str, Any], problem: str) -> None:
    async def body() -> None:
        async with revisions() as here:
            await here.revision(1, **data)
            await here.rollout("web-v1", targetSize=1)
            found = await here.until_state("rolloutFailed")
            assert problem in found.status.failure
            assert await here.sizes() == {}
            assert (await here.client.list(RoleBinding, SHOP)).items == ()
            await here.delete()
            await here.until_gone()

    run(body())


def test_what_the_server_does_not_take_is_said_and_tried_again() -> None:
    async def body() -> None:
        async with revisions() as here:
            spec = workload(1)
            spec["spec"]["template"]["spec"]["containers"] = []
            await here.revision(1, spec={"workload": spec})
            await here.rollout("web-v1", targetSize=1)
            found = await here.until_message("Deployment shop/web-v1")
            assert "containers" in found.status.message
            await here.delete()
            await here.until_gone()

    run(body())


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({}, "Deployment shop/web-v1 exists already and was made by somebody else"),
        ({"app.oam.dev/component": "web", "app.oam.dev/name": "other"}, "belongs to the Application other"),
        ({"app.oam.dev/component": "web", "app.oam.dev/revision": "web-v7"}, "is of web-v7, not of web-v1"),
    ],
)
def test_a_workload_of_somebody_else_is_not_touched(labels: dict[str, str], problem: str) -> None:
    async def body() -> None:
        async with revisions(1) as here:
            meta = {"name": "web-v1", "namespace": SHOP, "labels": labels}
            await here.client.create(Deployment, {**workload(5, replicas=1), "metadata": meta})
            await here.rollout("web-v1", targetSize=3)
            found = await here.until_state("rolloutFailed")
            assert problem in found.status.failure
            assert await here.sizes() == {"web-v1": 1}

    run(body())


def test_a_revision_of_another_kind_is_refused() -> None:
    async def body() -> None:
        async with revisions(1) as here:
            await here.revision(2, "CloneSet")
            await here.rollout("web-v1", targetSize=1)
            await here.until_succeeded("web-v1", 1)
            await here.to("web-v2")
            found = await here.until_state("rolloutFailed")
            assert "are not of the same kind" in found.status.failure
            await here.until_images(v1=1)

    run(body())


def test_claims_and_owners_in_a_revision_count_for_nothing() -> None:
    async def body() -> None:
        async with revisions() as here:
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1234"}
            notes = {"kedge.dev/rolled-by": "Rollout/other/1", "kedge.dev/strategy-before": "{", "mine": "yes"}
            meta = {"ownerReferences": [owner], "finalizers": ["example.com/x"], "annotations": notes}
            await here.revision(1, spec={"workload": {**workload(1), "metadata": meta}})
            await here.rollout("web-v1", targetSize=1)
            await here.until_succeeded("web-v1", 1)
            found = (await here.live("web-v1"))["metadata"]
            assert "finalizers" not in found
            assert [one["kind"] for one in found["ownerReferences"]] == ["Rollout"]
            assert found["annotations"]["mine"] == "yes"
            assert "kedge.dev/strategy-before" not in found["annotations"]

    run(body())


# Kinds that change in place


async def _in_place(here: RevisionBed, size: int = 5) -> None:
    await here.rollout("web-v1", targetSize=size)
    await here.until_succeeded("web-v1", size)
    await here.until_images(v1=size)


TWO = [{"replicas": 2}, {"replicas": 3}]


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_goes_forward_holds_and_goes_on(kind: str) -> None:
    async def body() -> None:
        async with revisions(1, 2, 3, kind=kind) as here:
            await _in_place(here)
            await here.to("web-v2", rolloutBatches=TWO, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady", target="web-v2")
            await a_while()
            await here.until_images(v1=3, v2=2)
            live = await here.live("web", IN_PLACE[kind])
            assert live["metadata"]["labels"]["app.oam.dev/revision"] == "web-v2"
            await here.to(batchPartition=1)
            found = await here.until_succeeded("web-v2", 5)
            assert found.status.last_source_revision == "web-v1"
            await here.until_images(v2=5)
            await here.to("web-v3")
            await here.until_succeeded("web-v3", 5)
            await here.until_images(v3=5)
            await here.to(targetSize=7, rolloutBatches=None, batchPartition=None)
            await here.until_succeeded("web-v3", 7)
            await here.until_images(v3=7)
            await here.delete()
            await here.until_gone_with_workloads(IN_PLACE[kind], "web")

    run(body())


@pytest.mark.parametrize("kind", ["Deployment", *IN_PLACE])
def test_one_that_failed_before_it_began_goes_back_to_what_runs(kind: str) -> None:
    async def body() -> None:
        async with revisions(1, 2, kind=kind) as here:
            await _in_place(here)
            await here.to("web-v2", rolloutBatches=[{"replicas": 9}, {"replicas": 3}])
            await here.until_state("rolloutFailed", target="web-v2")
            await here.to("web-v1", rolloutBatches=TWO)
            await here.until_succeeded("web-v1", 5)
            await here.until_images(v1=5)
            await here.to("web-v2", rolloutBatches=TWO)
            await here.until_succeeded("web-v2", 5)
            await here.until_images(v2=5)

    run(body())


async def _half_way_in_place(here: RevisionBed) -> None:
    await _in_place(here)
    await here.to("web-v2", rolloutBatches=TWO, batchPartition=0)
    await here.until_state("rollingInBatches", "batchReady", target="web-v2")
    await here.until_images(v1=3, v2=2)


@pytest.mark.parametrize("target", ["web-v1", "web-v3"])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_goes_elsewhere_midway(kind: str, target: str) -> None:
    async def body() -> None:
        async with revisions(1, 2, 3, kind=kind) as here:
            await _half_way_in_place(here)
            await here.to(target, batchPartition=1)
            await here.until_succeeded(target, 5)
            await here.until_images(**{target.removeprefix("web-"): 5})

    run(body())


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_keeps_its_pods_when_its_rollout_is_deleted_midway(kind: str) -> None:
    async def body() -> None:
        async with revisions(1, 2, kind=kind) as here:
            await _half_way_in_place(here)
            await here.delete()
            await here.until_gone()
            await a_while()
            await here.until_images(v1=3, v2=2)
            await here.rollout("web-v2", rolloutBatches=TWO)
            await here.until_succeeded("web-v2", 5)
            await here.until_images(v2=5)

    run(body())


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_is_taken_back_to_what_was_before_the_first_of_several_rollouts(kind: str, replaced: bool) -> None:
    async def body() -> None:
        async with revisions(1, 2, 3, kind=kind) as here:
            await _half_way_in_place(here)
            if replaced:
                await here.to("web-v3")
                await here.until_state("rollingInBatches", "batchReady", target="web-v3")
            await here.to(revertOnDelete=True)
            await here.delete()
            await here.until_gone()
            await here.until_images(v1=5)
            live = await here.live("web", IN_PLACE[kind])
            assert live["metadata"]["labels"]["app.oam.dev/revision"] == "web-v1"

    run(body())


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_that_somebody_froze_with_the_new_template_is_moved(kind: str) -> None:
    """As the controller of ApplicationConfigurations does."""

    async def body() -> None:
        from kedge.plan.oam.workloads import frozen, workload_of

        async with revisions(1, 2, kind=kind) as here:
            data = {"metadata": {"name": "web", "namespace": SHOP}, "spec": {"workload": workload(1, kind)}}
            made = workload_of(data, revision="web-v1")
            await here.client.create(IN_PLACE[kind], {**made, "spec": {**made["spec"], "replicas": 5}})
            await here.until_images(v1=5)
            newer = {**data, "spec": {"workload": workload(2, kind)}}
            live = await here.live("web", IN_PLACE[kind])
            await here.client.patch(
                IN_PLACE[kind], "web", MergePatch(dict(frozen(workload_of(newer, revision="web-v2"), live))), SHOP
            )
            await here.rollout("web-v2", rolloutBatches=TWO, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.until_images(v1=3, v2=2)
            await here.to(batchPartition=1)
            await here.until_succeeded("web-v2", 5)
            await here.until_images(v2=5)

    run(body())


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_set_that_was_to_be_scaled_keeps_its_template_when_that_failed_and_is_deleted(kind: str) -> None:
    async def body() -> None:
        from kedge.plan.oam.workloads import frozen, workload_of

        async with revisions(1, kind=kind) as here:
            data = {"metadata": {"name": "web", "namespace": SHOP}, "spec": {"workload": workload(1, kind)}}
            made = workload_of(data, revision="web-v1")
            held = dict(frozen(made, {**made, "spec": {**made["spec"], "replicas": 2}}))
            await here.client.create(IN_PLACE[kind], held)
            await here.until_images(v1=2)
            await here.rollout("web-v1", targetSize=4, numBatches=2, batchPartition=0, revertOnDelete=True)
            await here.until_state("rollingInBatches", "batchReady")
            await here.client.patch(
                Rollout, "web", MergePatch({"metadata": {"annotations": {"kedge.dev/abort": "true"}}}), SHOP
            )
            await here.until_state("rolloutFailed")
            newer = {"containers": [{"name": "app", "image": "app:9"}]}
            await here.client.patch(IN_PLACE[kind], "web", MergePatch({"spec": {"template": {"spec": newer}}}), SHOP)
            await here.delete()
            await here.until_gone()
            await a_while()
            live = await here.live("web", IN_PLACE[kind])
            assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "app:9"

    run(body())


def test_a_daemon_set_goes_to_another_revision() -> None:
    async def body() -> None:
        async with revisions(2, kind="DaemonSet") as here:
            labels = {"app.oam.dev/component": "web", "app.oam.dev/revision": "web-v1"}
            meta = {"name": "web", "namespace": SHOP, "labels": labels}
            await here.client.create(DaemonSet, {**workload(1, "DaemonSet"), "metadata": meta})
            await here.until_images(v1=3)
            await here.rollout("web-v2", rolloutBatches=[{"replicas": 1}, {"replicas": 2}], batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.until_images(v1=2, v2=1)
            await here.to(batchPartition=1)
            await here.until_state("rolloutSucceed")
            await here.until_images(v2=3)

    run(body())


def test_a_daemon_set_that_does_not_exist_is_created() -> None:
    async def body() -> None:
        async with revisions(1, 2, kind="DaemonSet") as here:
            await here.rollout("web-v1", numBatches=2, paused=True)
            await here.until_state("verifyingSpec")
            await a_while()
            assert await here.is_missing(DaemonSet, "web")
            await here.to(paused=False)
            await here.until_state("rolloutSucceed")
            await here.until_images(v1=3)
            live = await here.live("web", DaemonSet)
            assert live["spec"]["updateStrategy"]["type"] == "RollingUpdate"
            assert [one["kind"] for one in live["metadata"]["ownerReferences"]] == ["Rollout"]
            await here.to("web-v2")
            await here.until_succeeded("web-v2", 3)
            await here.until_images(v2=3)

    run(body())


def test_a_daemon_set_that_was_created_goes_when_its_rollout_is_taken_back() -> None:
    async def body() -> None:
        async with revisions(1, kind="DaemonSet") as here:
            await here.rollout("web-v1", numBatches=2, batchPartition=0, revertOnDelete=True)
            await here.until_state("rollingInBatches", "batchReady")
            await here.delete()
            await here.until_gone_with_workloads(DaemonSet, "web")

    run(body())


def test_edits_of_a_plan_that_has_ended_are_refused_unless_something_moves() -> None:
    async def body() -> None:
        async with revisions(1) as here:
            await here.rollout("web-v1", targetSize=1)
            await here.until_succeeded("web-v1", 1)
            before = (await here.get()).status
            await here.client.patch(Rollout, "web", MergePatch({"metadata": {"labels": {"x": "y"}}}), SHOP)
            await a_while()
            assert (await here.get()).status.runs == before.runs

    run(body())
