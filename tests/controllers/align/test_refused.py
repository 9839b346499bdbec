"""Bindings that nothing is done about: they say why, copy nothing, take nothing away, and stop no others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from kedge.api.apps import Deployment
from kedge.api.condition import find_condition
from kedge.api.core import Event, Namespace
from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work
from kedge.api.resource import Resource
from kedge.cli.binding_target import BindingReader
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from support.virtual import run
from support.waiting import until_so

SECRETS = untyped(Resource("", "v1", "Secret", "secrets"))
KEY = {"apiVersion": "v1", "kind": "Secret", "name": "key"}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "admin"}
DEMO = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo"}
BANK = "bank"
TWICE = [{"name": "cluster-1", "replicas": 1}, {"name": "cluster-1", "replicas": 2}]
UNREADABLE = {"replicaScheduling": {"replicaSchedulingType": "Foo"}}


async def bind(here: AlignBed, kind: Any, name: str, resource: dict[str, str], **spec: Any) -> None:
    place = {"namespace": SHOP} if kind.resource.namespaced else {}
    given = {"resource": resource, "clusters": [{"name": "cluster-1", "replicas": 1}], **spec}
    await here.hub.create(kind, {"metadata": {"name": name, **place}, "spec": given})


async def says(here: AlignBed, kind: Any, name: str, condition: str, words: str) -> None:
    """It says these words in a condition and in an event."""

    async def is_said() -> bool:
        found = await here.hub.get(kind, name, SHOP if kind.resource.namespaced else None)
        said = find_condition(found.status.conditions, condition)
        events = (await here.hub.list(Event)).items
        told = [
            one for one in events if (one.involved_object.kind, one.involved_object.name) == (kind.resource.kind, name)
        ]
        return said is not None and words in said.message and any(words in one.message for one in told)

    await until_so(is_said)


async def works_of(here: AlignBed) -> list[str]:
    return [one.spec.workload.manifests[0]["kind"] for one in (await here.hub.list(Work)).items]


@pytest.mark.parametrize(("kind", "condition"), [(ResourceBinding, "Aligned"), (ProposedBinding, "Scheduled")])
def test_a_binding_copies_nothing_of_another_namespace(kind: Any, condition: str) -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await here.hub.create(Namespace, {"metadata": {"name": BANK}})
            await here.hub.create(SECRETS, {"metadata": {"name": "key", "namespace": BANK}, "data": {"a": "MQ=="}})
            await bind(here, kind, "key-secret", {**KEY, "namespace": BANK})
            await says(here, kind, "key-secret", condition, f"is {BANK}, but the binding is in {SHOP}")
            await asyncio.sleep(30)
            assert await works_of(here) == []

    run(body())


def test_what_runs_stays_when_a_binding_begins_to_name_another_namespace_and_goes_with_it() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await here.deploy(Deployment, {"cluster-1": 2})
            await here.until_images("app:1", "app:1")
            elsewhere = MergePatch({"spec": {"resource": {"namespace": BANK}}})
            await here.hub.patch(ResourceBinding, "demo-deployment", elsewhere, SHOP)
            await says(here, ResourceBinding, "demo-deployment", "Aligned", f"is {BANK}")
            await asyncio.sleep(30)
            assert await here.images() == ["app:1", "app:1"]
            await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
            await here.until_images()

    run(body())


@pytest.mark.parametrize(
    ("kind", "resource", "spec", "words"),
    [
        (ResourceBinding, ROLE, {}, "ClusterRole admin is of the whole cluster"),
        (ClusterResourceBinding, KEY, {}, "spec.resource.namespace is empty"),
        (ResourceBinding, DEMO, {"placement": UNREADABLE}, "spec.placement cannot be read"),
        (ResourceBinding, DEMO, {"clusters": TWICE}, "names cluster-1 2 times, with 1 and 2 replicas"),
        (ResourceBinding, {**DEMO, "name": ""}, {}, "spec.resource.name is empty"),
        (ResourceBinding, {**DEMO, "apiVersion": "apps/v7"}, {}, "the hub serves no Deployment of apps/v7"),
    ],
)
def test_a_binding_that_cannot_be_followed_says_why_and_stops_no_others(
    kind: Any, resource: dict[str, str], spec: dict[str, Any], words: str
) -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await bind(here, kind, "wrong", resource, **spec)
            await here.deploy(Deployment, {"cluster-1": 1})
            await says(here, kind, "wrong", "Aligned", words)
            await here.until_images("app:1")
            await asyncio.sleep(10)
            reader = BindingReader(here.hub)
            stories = [
                one for each in (ResourceBinding, ClusterResourceBinding) for one in await reader.stories(each, None)
            ]
            told = {one.name: one.why for one in stories}
            assert words in told["wrong"]
            assert told["demo-deployment"] == ""
            assert await works_of(here) == ["Deployment"]

    run(body())


def test_a_resource_without_a_namespace_is_in_that_of_its_binding() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            await here.deploy(Deployment, {"cluster-1": 2})
            await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
            await bind(here, ResourceBinding, "demo-deployment-2", DEMO)
            await here.until_images("app:1")
            await here.edit(Deployment, {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}})
            await here.until_images("app:2")

    run(body())


def test_of_two_bindings_of_one_resource_the_second_waits_in_words_until_the_first_is_gone() -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await here.deploy(Deployment, {"cluster-1": 2})
            await here.until_images("app:1", "app:1")
            await bind(here, ResourceBinding, "other", DEMO, clusters=[{"name": "cluster-2", "replicas": 1}])
            words = "Deployment shop/demo is propagated by ResourceBinding shop/demo-deployment already: delete one"
            await says(here, ResourceBinding, "other", "Aligned", words)
            assert await here.images() == ["app:1", "app:1"]
            told = {one.name: one.why for one in await BindingReader(here.hub).stories(ResourceBinding, None)}
            assert told["other"] == words
            assert words not in told["demo-deployment"]
            await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
            await here.until_images("app:1")

    run(body())
