"""The agent of a member: it writes what is new or was changed there, and nothing when only a status has changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.align.align_bed import SHOP, AlignBed, align_bed
from kedge.api.apps import Deployment
from kedge.api.karmada.works import Work
from kedge.controllers.align.execution import MANAGER
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from support.virtual import run

SIZES = {"cluster-1": 2, "cluster-2": 3}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What agents apply from now on."""
    found: list[str] = []
    apply = Client.apply

    async def counting(self: Client, kind: Any, body: Any, **given: Any) -> Any:
        if given.get("manager") == MANAGER and kind.resource == Deployment.resource:
            found.append(body["metadata"]["name"])
        return await apply(self, kind, body, **given)

    monkeypatch.setattr(Client, "apply", counting)
    return found


async def deployed(here: AlignBed, image: str) -> None:
    await here.until_images(*[image] * sum(SIZES.values()))
    await asyncio.sleep(30)


def test_a_cluster_is_written_to_as_often_as_its_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = counted(monkeypatch)

    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES)
            await deployed(here, "app:1")
            template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
            await here.edit(Deployment, {"template": template})
            await deployed(here, "app:2")
            works = (await here.hub.list(Work)).items
            assert len(applied) == sum(work.metadata.generation for work in works)

    run(body())


def test_what_somebody_changes_in_a_member_is_written_again() -> None:
    async def body() -> None:
        async with align_bed(*SIZES) as here:
            await here.deploy(Deployment, SIZES)
            await deployed(here, "app:1")
            member = here.members["cluster-1"]
            await member.patch(Deployment, "demo", MergePatch({"spec": {"replicas": 1}}), SHOP)
            await deployed(here, "app:1")
            assert (await member.get(Deployment, "demo", SHOP)).spec.replicas == SIZES["cluster-1"]

    run(body())
