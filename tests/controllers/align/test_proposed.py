"""Bindings in the short form of the proposal that cannot be taken, and nothing written when nothing changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from kedge.api.apps import Deployment
from kedge.api.condition import find_condition
from kedge.api.core import Event
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.karmada.works import Work
from kedge.kube.patches import MergePatch
from support.virtual import run
from support.waiting import until_so


async def refusal(here: AlignBed, name: str) -> str:
    found = await here.hub.get(ProposedBinding, name, SHOP)
    condition = find_condition(found.status.conditions, "Scheduled")
    return condition.message if condition is not None and condition.reason == "NotBound" else ""


async def propose(here: AlignBed, name: str) -> None:
    body = {"metadata": {"name": name, "namespace": SHOP}, "spec": {"clusters": [{"name": "cluster-1", "replicas": 1}]}}
    await here.hub.create(ProposedBinding, body)


@pytest.mark.parametrize(("name", "words"), [("demo", "set spec.resource"), ("web-deployment", "exists already")])
def test_a_binding_that_cannot_be_taken_says_why_once(name: str, words: str) -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": SHOP}
            meta = {"name": "web-deployment", "namespace": SHOP}
            await here.hub.create(ResourceBinding, {"metadata": meta, "spec": {"resource": resource}})
            await propose(here, name)

            async def is_refused() -> bool:
                return words in await refusal(here, name)

            await until_so(is_refused)
            labelled = MergePatch({"metadata": {"labels": {"a": "b"}}})
            await here.hub.patch(ProposedBinding, name, labelled, SHOP)
            await asyncio.sleep(5)
            told = [one for one in (await here.hub.list(Event, SHOP)).items if one.reason == "NotBound"]
            assert [one.count or 1 for one in told] == [1]
            there = await here.hub.get(ResourceBinding, "web-deployment", SHOP)
            assert there.spec.clusters == ()

    run(body())


def test_at_rest_nothing_is_written_but_heartbeats() -> None:
    async def body() -> None:
        async with align_bed("cluster-1") as here:
            labels = {"app": "demo"}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
            spec: dict[str, Any] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
            await here.hub.create(Deployment, {"metadata": {"name": "demo", "namespace": SHOP}, "spec": spec})
            await propose(here, "demo-deployment")
            await here.until_images("app:1")
            await asyncio.sleep(30)
            before = await versions(here)
            await asyncio.sleep(300)
            assert await versions(here) == before

    run(body())


async def versions(here: AlignBed) -> list[str | None]:
    """What changes with every write, of all that is written to."""
    kinds: tuple[Any, ...] = (ResourceBinding, ProposedBinding, Work, Cluster, Event)
    return [one.metadata.resource_version for kind in kinds for one in (await here.hub.list(kind)).items]
