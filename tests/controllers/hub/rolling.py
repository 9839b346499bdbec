"""A hub on which rollouts run, and everybody else is played by a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import to_builtins

from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, Condition, find_condition
from kedge.api.core import Namespace
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, Binding, PlacementKinds
from kedge.api.reasons import AVAILABLE as IS_AVAILABLE
from kedge.api.reasons import HEALTHY, MANIFEST_NOT_AVAILABLE, MEMBER_UNREACHABLE, ROLLOUT_STARTED
from kedge.controllers.hub.rollout import Rollout
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.kube.client import Client
from kedge.kube.patches import MergePatch
from plan.rolling.making import AVAILABLE, BAD, NOT_AVAILABLE, Said
from support.fleets import Book, client_of, fleet_cluster, managed
from support.placed import Placed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so


class Rolling(Placed):
    """One placement, with members to place it on."""

    def __init__(self, client: Client, kinds: PlacementKinds, namespace: str | None = None) -> None:
        super().__init__(client, kinds, namespace=namespace)
        self.writes: list[str] = []  # of bindings, by whoever

    # The user and the scheduler

    async def members(self, *names: str) -> None:
        for name in names:
            await Book(self.client).add(name)

    async def pick(self, *clusters: str, **spec: Any) -> None:
        for cluster in clusters:
            await self.bind(cluster, **spec)

    async def edit(self, **spec: Any) -> None:
        await self.client.patch(self.kinds.placement, self.name, MergePatch({"spec": spec}), self.namespace)

    async def annotate(self, **annotations: str | None) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch(self.kinds.placement, self.name, MergePatch(body), self.namespace)

    async def unpick(self, *clusters: str) -> None:
        for cluster in clusters:
            await self.change(cluster, {"spec": {"state": "Unscheduled"}})

    async def change(self, cluster: str, body: dict[str, Any], suffix: str = "0") -> None:
        name = f"{self.name}-{cluster}-{suffix}"
        await self.client.patch(self.kinds.binding, name, MergePatch(body), self.namespace)

    async def let_binding_go(self, cluster: str) -> None:
        await self.change(cluster, {"metadata": {"finalizers": None}})

    # The members

    async def say(self, said: Said, *clusters: str) -> None:
        """Have the status of these clusters say this, of their bindings as they are now."""
        failed = [_failed(BAD)] if said is NOT_AVAILABLE else []
        for cluster in clusters:
            found = [(kind, status, reason, "") for kind, (status, reason) in said.items()]
            await self.tell(f"{self.name}-{cluster}-0", *found, failed=failed)

    async def silence(self, cluster: str, message: str | None) -> None:
        """A member is not heard of; or again, without a message."""
        said = self._condition(HEALTHY, FALSE, MEMBER_UNREACHABLE, message or "", 1)
        body = {"status": {"conditions": to_builtins([said] if message else [])}}
        await self.client.patch(MemberCluster, cluster, MergePatch(body), subresource="status")

    # Looking

    async def all(self) -> dict[str, Binding]:
        found = (await self.client.list(self.kinds.binding, self.namespace)).items
        return {one.spec.target_cluster: one for one in sorted(found, key=lambda one: one.metadata.name)}

    async def given(self) -> dict[str, str]:
        """What each cluster was given: the index of its resources, or nothing; `-` if it is on its way out."""
        return {name: _given(one) for name, one in (await self.all()).items()}

    async def started(self, cluster: str) -> Condition | None:
        return find_condition((await self.all())[cluster].status.conditions, ROLLOUT_STARTED)

    async def until_given(self, wanted: Mapping[str, str], within: float = 30.0) -> None:
        """Wait until these clusters have these resources, then see that it stays so, of these clusters alone."""
        try:
            await until_so(lambda: self._is_given(wanted), within)
        except TimeoutError:
            raise AssertionError(f"{await self.given()} is not {wanted}") from None
        await self.rest()
        assert await self.given() == wanted

    async def _is_given(self, wanted: Mapping[str, str]) -> bool:
        return await self.given() == wanted

    async def rest(self, seconds: float = 3.0) -> None:
        """Let everything happen that would happen by itself."""
        await asyncio.sleep(seconds)

    async def waits_for(self, cluster: str) -> str:
        """What a cluster says it waits for; nothing if it does not."""
        said = await self.started(cluster)
        return said.message if said is not None and said.status == FALSE else ""


def _given(binding: Binding) -> str:
    if binding.metadata.deletion_timestamp is not None:
        return "-"
    return binding.spec.resource_snapshot_name.removeprefix("crp-").removesuffix("-snapshot")


def _failed(message: str) -> dict[str, Any]:
    condition = {
        "type": IS_AVAILABLE,
        "status": FALSE,
        "reason": MANIFEST_NOT_AVAILABLE,
        "message": message,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    which = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "test-ns", "name": "web"}
    return {**which, "condition": condition}


@asynccontextmanager
async def rolling(kinds: PlacementKinds = CLUSTER, *, dialect: Dialect = Dialect.seed) -> AsyncIterator[Rolling]:
    """A hub with rollouts of both kinds, and a placement's surroundings."""
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        hub = await manager.connect("hub", cluster.transport())
        for each in (CLUSTER, NAMESPACED):
            manager.add_controller(Rollout(hub, each, clock=LoopClock(), dialect=dialect).controller)
        namespace = "shop" if kinds is NAMESPACED else None
        if namespace:
            await client.create(Namespace, {"metadata": {"name": namespace}})
        placed = Rolling(client, kinds, namespace)
        count_writes(cluster, placed.writes)
        yield placed


def count_writes(cluster: EmbeddedCluster, writes: list[str]) -> None:
    def note(kind: Kind, change: Change) -> None:
        if kind.resource.plural in (CLUSTER.binding.resource.plural, NAMESPACED.binding.resource.plural):
            writes.append(f"{change.type} {change.version.name}")

    cluster.server.store.subscribe(note)


def play(act: Callable[[Rolling], Awaitable[None]], kinds: PlacementKinds = CLUSTER, **how: Any) -> None:
    async def main() -> None:
        async with rolling(kinds, **how) as placed:
            await act(placed)

    run(main())


async def placed_on(placed: Rolling, *clusters: str, **spec: Any) -> None:
    """Resources 0 placed on these clusters, and available there."""
    await placed.members(*clusters)
    await placed.place(**spec)
    await placed.snapshot(0)
    await placed.pick(*clusters)
    await placed.until_given(dict.fromkeys(clusters, "0"))
    await placed.say(AVAILABLE, *clusters)
