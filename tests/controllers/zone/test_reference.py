"""References on an embedded server: read, mirrored, told how many there are, and what is wrong with them."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from controllers.zone.scaling_bed import CRD, DEPLOYMENTS, MIRRORS, NAMESPACE, POD, TEMPLATES, Bed, play
from kedge.api import zones
from kedge.kube.codec import untyped


@pytest.mark.parametrize(
    ("replicas", "wanted", "reported", "annotations", "step", "written"),
    [
        (2, 5, 2, {}, "a=5", 5),
        (2, 5, 2, {zones.MIRROR_WRITE_BACK: "false"}, "a=5", 2),
        (3, 2, 3, {}, "a=2", 2),
        (3, 3, 5, {}, "", 3),
        (3, 3, 3, {}, "", 3),
        (3, 0, 3, {}, "a=0", 0),
    ],
)
def test_a_replica_template_is_mirrored(
    replicas: int, wanted: int, reported: int, annotations: dict[str, str], step: str, written: int
) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(wanted, reported)
        await bed.zone("a", replicas, {**MIRRORS, **annotations})
        assert await bed.step() == step
        assert await bed.reported() == written
        writes = bed.api.writes()
        assert ("PATCH statefulsets/ingester-zone-a" in writes) == bool(step)
        assert ("PATCH replicatemplates/replicas/status" in writes) == (reported != written)

    play(scene())


def test_four_zones_three_of_which_mirror() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 2)
        await bed.zone("a", 4)
        await bed.zone("b", 5, MIRRORS)
        await bed.zone("c", 5, {**MIRRORS, zones.MIRROR_WRITE_BACK: "true"})
        await bed.zone("d", 2, MIRRORS)
        assert await bed.step() == "d=5"
        assert (await bed.reported(), await bed.replicas()) == (5, "a=4 b=5 c=5 d=5")
        assert await bed.step() == ""
        assert bed.api.writes() == ["PATCH statefulsets/ingester-zone-d", "PATCH replicatemplates/replicas/status"]

    play(scene())


def test_a_deployment_is_mirrored() -> None:
    async def scene() -> None:
        bed = Bed()
        meta = {"name": "web", "namespace": NAMESPACE}
        spec = {"replicas": 4, "selector": {"matchLabels": {"name": "x"}}, "template": POD}
        await bed.user.create(DEPLOYMENTS, {"metadata": meta, "spec": spec})
        kind = {zones.MIRROR_NAME: "web", zones.MIRROR_KIND: "Deployment", zones.MIRROR_API_VERSION: "apps/v1"}
        await bed.zone("a", 2, kind)
        assert await bed.step() == "a=4"
        found = await bed.user.get(DEPLOYMENTS, "web", NAMESPACE)
        assert found["status"]["replicas"] == 4

    play(scene())


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        (
            {zones.MIRROR_KIND: "Unknown"},
            (
                "not scaled: the scale of Unknown.rollout-operator.grafana.com/replicas is not known: "
                "kind Unknown of group "
                "rollout-operator.grafana.com is not served: install its definition, or correct the annotations"
            ),
        ),
        (
            {zones.MIRROR_API_VERSION: "v1", zones.MIRROR_KIND: "Deployment"},
            (
                "not scaled: the scale of Deployment/replicas is not known: "
                "kind Deployment of the core group is not served: "
                "install its definition, or correct the annotations"
            ),
        ),
        (
            {zones.MIRROR_API_VERSION: "v1", zones.MIRROR_KIND: "ConfigMap"},
            "not scaled: the scale of ConfigMap/replicas is not known: configmaps have no scale",
        ),
        (
            {zones.MIRROR_API_VERSION: "v1", zones.MIRROR_KIND: "Namespace"},
            (
                "not scaled: the scale of Namespace/replicas is not known: namespaces are not in a namespace: "
                "only objects beside the StatefulSet count"
            ),
        ),
        (
            {zones.MIRROR_NAME: "nothing"},
            (
                "not scaled: the scale of ReplicaTemplate.rollout-operator.grafana.com/nothing is not known: "
                "there is no replicatemplates.rollout-operator.grafana.com nothing"
            ),
        ),
    ],
)
def test_a_reference_that_has_no_scale_is_told_and_stops_nobody(annotations: dict[str, str], text: str) -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 5)
        await bed.zone("a", 3, {**MIRRORS, **annotations})
        assert await bed.texts() == [text]
        await bed.zone("b", 3, MIRRORS)
        assert await bed.step() == "b=5"
        assert await bed.replicas() == "a=3 b=5"

    play(scene())


def test_a_reference_that_may_not_be_read_is_told() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 5)
        await bed.zone("a", 3, MIRRORS)
        bed.api.refused["GET replicatemplates/replicas/scale"] = 403
        (text,) = await bed.texts()
        assert text.endswith("reading it is forbidden, allow get on replicatemplates/scale: denied")
        assert await bed.events() == {"a Warning ReferenceUnavailable": 1}
        bed.api.refused.clear()
        await asyncio.sleep(5)
        assert await bed.step() == "a=5"

    play(scene())


def test_a_kind_that_is_served_later_is_found() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.zone("a", 3, MIRRORS)
        assert len(await bed.texts()) == 1
        await bed.template(5, 5)
        await asyncio.sleep(30)
        assert await bed.step() == "a=5"

    play(scene())


def test_every_version_of_a_kind_is_tried() -> None:
    async def scene() -> None:
        bed = Bed()
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        plain = {"name": "v2", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        scaled = {**plain, "name": "v1", "storage": False, "subresources": {"status": {}, "scale": paths}}
        names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        spec = {"group": "my.group", "scope": "Namespaced", "names": names, "versions": [plain, scaled]}
        await bed.user.create(CRD, {"metadata": {"name": "things.my.group"}, "spec": spec})
        await asyncio.sleep(2)
        things = replace(TEMPLATES.resource, group="my.group", version="v2", kind="Thing", plural="things")
        body = {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": {"replicas": 4}}
        await bed.user.create(untyped(things), body)
        await bed.zone(
            "a", 2, {zones.MIRROR_NAME: "x", zones.MIRROR_KIND: "Thing", zones.MIRROR_API_VERSION: "my.group/v2"}
        )
        assert await bed.step() == "a=4"

    play(scene())


def test_a_write_back_that_is_refused_is_told_and_stops_nothing() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(5, 2)
        await bed.zone("a", 2, MIRRORS)
        bed.api.refused["PATCH replicatemplates/replicas/status"] = 403
        assert await bed.step() == "a=5"
        text = "the status of ReplicaTemplate.rollout-operator.grafana.com/replicas was not updated: denied"
        assert await bed.texts() == [text]
        assert (await bed.events())["a Warning WriteBackFailed"] == 1
        assert bed.api.writes().count("PATCH replicatemplates/replicas/status") == 1

    play(scene())


def test_a_status_that_somebody_else_resets_is_not_written_all_the_time() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 5)
        await bed.zone("a", 3, MIRRORS)
        for _ in range(20):
            await bed.adjust()
            await bed.template(3, 5)
            await asyncio.sleep(6)
        assert len(bed.api.writes()) <= 3

    play(scene())


def test_an_idle_group_that_mirrors_writes_nothing_and_reads_little() -> None:
    async def scene() -> None:
        bed = Bed()
        await bed.template(3, 3)
        for letter in "abc":
            await bed.zone(letter, 3, MIRRORS)
        await bed.adjust()
        await asyncio.sleep(5)
        bed.api.asked.clear()
        for _ in range(40):
            result = await bed.adjust()
            await asyncio.sleep(result.look_again or 0)
        assert bed.api.asked == ["GET replicatemplates/replicas/scale"] * 40
        bed.api.asked.clear()
        for _ in range(50):
            await bed.adjust()
        assert len(bed.api.asked) <= 1

    play(scene())
