"""Revision bed: the batch bed, and what a user does with the revisions of a component and their Rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from controllers.batch.batch_bed import SHOP, Bed, bed
from kedge.api.apps import ControllerRevision, Deployment
from kedge.api.oam.keys import COMPONENT_OF_REVISION
from kedge.api.oam.rollouts import Rollout
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch

CLONE_SET = "apps.kruise.io/v1alpha1"


def workload(number: int, kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    """The workload of one revision, of the image `app:NUMBER`."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": f"app:{number}"}]}}
    more: dict[str, Any] = {"serviceName": "web", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    version = CLONE_SET if kind == "CloneSet" else "apps/v1"
    body = {"selector": {"matchLabels": labels}, "template": template, **more, **spec}
    return {"apiVersion": version, "kind": kind, "spec": body}


class RevisionBed:
    """A cluster with a component `web`, by its revisions `web-v1`, `web-v2`, …"""

    def __init__(self, here: Bed) -> None:
        self.here = here
        self.client = here.client

    async def revision(self, number: int, kind: str = "Deployment", *, component: str = "web", **data: Any) -> None:
        """Keep one state of a component. `data` replaces parts of it."""
        kept = {
            "apiVersion": "core.oam.dev/v1alpha2",
            "kind": "Component",
            "metadata": {"name": component, "namespace": SHOP},
            "spec": {"workload": workload(number, kind)},
            **data,
        }
        meta = {
            "name": f"{component}-v{number}",
            "namespace": SHOP,
            "labels": {COMPONENT_OF_REVISION: component},
        }
        await self.client.create(ControllerRevision, {"metadata": meta, "revision": number, "data": kept})

    async def rollout(self, target: str, *, source: str = "", component: str = "web", **plan: Any) -> None:
        spec = {"targetRevisionName": target, "componentName": component, "rolloutPlan": plan}
        named = {"sourceRevisionName": source} if source else {}
        await self.client.create(Rollout, {"metadata": {"name": "web", "namespace": SHOP}, "spec": {**spec, **named}})

    async def to(self, target: str | None = None, **plan: Any) -> None:
        """Ask for another revision, or change the plan."""
        asked = {"targetRevisionName": target} if target else {}
        await self.client.patch(Rollout, "web", MergePatch({"spec": {**asked, "rolloutPlan": plan}}), SHOP)

    async def get(self) -> Rollout:
        return await self.client.get(Rollout, "web", SHOP)

    async def until_state(self, rolling: str, batch: str = "", *, target: str = "") -> Rollout:
        async def reached() -> bool:
            status = (await self.get()).status
            is_there = status.rolling_state == rolling and batch in ("", status.batch_rolling_state)
            return is_there and target in ("", status.last_target_revision)

        await self.until(reached)
        return await self.get()

    async def until_succeeded(self, target: str, size: int) -> Rollout:
        """Until the rollout to this revision has succeeded, with so many pods."""

        async def reached() -> bool:
            status = (await self.get()).status
            found = (status.rolling_state, status.last_target_revision, status.rollout_target_size)
            return found == ("rolloutSucceed", target, size)

        await self.until(reached)
        return await self.get()

    async def until_message(self, part: str) -> Rollout:
        async def says() -> bool:
            return part in (await self.get()).status.message

        await self.until(says)
        return await self.get()

    async def until_gone(self) -> None:
        await self.until(lambda: self.is_missing(Rollout, "web"))

    async def until_gone_with_workloads(self, kind: Any = Deployment, *names: str) -> None:
        """Until the rollout is gone, and its workloads and their pods with it."""
        await self.until_gone()

        async def nothing() -> bool:
            are_gone = [await self.is_missing(kind, name) for name in names]
            return all(are_gone) and not await self.sizes() and not await self.here.images()

        await self.until(nothing)

    async def is_missing_workload(self, name: str) -> bool:
        return await self.is_missing(Deployment, name)

    async def is_missing(self, kind: Any, name: str) -> bool:
        try:
            await self.client.get(untyped(kind.resource), name, SHOP)
        except NotFound:
            return True
        return False

    async def delete(self) -> None:
        await self.client.delete(Rollout, "web", SHOP)

    async def sizes(self) -> dict[str, int]:
        return await self.here.sizes()

    async def until_sizes(self, **sizes: int) -> None:
        """Until there are these Deployments and no others, by the last part of their names: `v1=3, v2=2`."""
        wanted = {f"web-{name}": size for name, size in sizes.items()}

        async def are() -> bool:
            return await self.sizes() == wanted

        await self.until(are)

    async def until_images(self, **number: int) -> None:
        await self.here.until_images(**number)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(300):
                while not await holds():
                    await asyncio.sleep(1)
        except TimeoutError:
            found = None if await self.is_missing(Rollout, "web") else (await self.get()).status
            said = f"{found.rolling_state}/{found.batch_rolling_state}: {found.message}" if found else "no rollout"
            raise AssertionError(f"{said}; {await self.sizes()}; {await self.here.images()}") from None

    async def live(self, name: str, kind: Any = Deployment) -> Mapping[str, Any]:
        return await self.client.get(untyped(kind.resource), name, SHOP)


@asynccontextmanager
async def revisions(*numbers: int, kind: str = "Deployment") -> AsyncIterator[RevisionBed]:
    """A cluster in which these revisions are kept already."""
    async with bed() as here:
        found = RevisionBed(here)
        for number in numbers:
            await found.revision(number, kind)
        yield found


async def a_while() -> None:
    """Longer than anything here takes."""
    await asyncio.sleep(120)
