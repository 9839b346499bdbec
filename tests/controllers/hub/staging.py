"""A hub on which staged runs run, and everybody else is played by a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from controllers.hub.rolling import Rolling, count_writes
from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition
from kedge.api.core import Namespace
from kedge.api.dialect import Dialect
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, Approval, PlacementKinds, Run
from kedge.api.reasons import APPROVED, PROGRESSING
from kedge.api.staged_status import RunStatus
from kedge.controllers.hub.orphaned_approvals import OrphanedApprovals
from kedge.controllers.hub.staged import StagedRuns
from kedge.controllers.metric_queries import Measures
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.kube.source import Signal, Source
from kedge.kube.transport import Transport
from kedge.plan.revisions import newest_resources, resource_index
from kedge.plan.staging.initializing import Newest
from plan.rolling.making import AVAILABLE
from support.fleets import client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

APPROVAL = {"type": "Approval"}


class Kept:
    """Snapshots that are always as the hub has things."""

    def __init__(self, client: Client, kinds: PlacementKinds) -> None:
        self._client = client
        self._kinds = kinds
        self._changes = Signal("hub")

    async def fresh(self, placement: ClusterResourcePlacement) -> Newest:
        found = (await self._client.list(self._kinds.resource_snapshot, placement.metadata.namespace)).items
        newest = newest_resources(one.metadata for one in found)
        return Newest(resource_index(newest)) if newest is not None else Newest(pending="there is nothing yet")

    @property
    def changes(self) -> Source:
        return self._changes


class Staging(Rolling):
    """One placement that runs move, with members to move it over."""

    # The user

    async def fleet(self, stages: dict[str, str], *wanted: dict[str, Any], **spec: Any) -> None:
        """Members with the label `stage`, a placement on them with resources 0 and 1, and a strategy."""
        await self.placed_on(stages)
        await self.stages(*wanted, **spec)

    async def placed_on(self, stages: dict[str, str]) -> None:
        """Members with the label `stage`, and a placement on them with resources 0 and 1."""
        for name, stage in stages.items():
            await self.member(name, stage)
        await self.place(strategy={"type": "External"})
        await self.snapshot(0)
        await self.snapshot(1)
        await self.decide(*stages)
        await self.pick(*stages, applyStrategy=None)

    async def stages(self, *wanted: dict[str, Any], **spec: Any) -> None:
        """A strategy."""
        body = {"metadata": self._meta("strategy"), "spec": {"stages": list(wanted), **spec}}
        await self.client.create(self.kinds.strategy, body, self.namespace)

    async def member(self, name: str, stage: str) -> None:
        await self.members(name)
        await self.client.patch(MemberCluster, name, MergePatch({"metadata": {"labels": {"stage": stage}}}))

    async def start(self, name: str = "run", **spec: Any) -> None:  # type: ignore[override]  # of a run, not of a binding
        given = {"placementName": self.name, "stagedRolloutStrategyName": "strategy", **spec}
        await self.client.create(self.kinds.run, {"metadata": self._meta(name), "spec": given}, self.namespace)

    async def set_state(self, state: str, name: str = "run") -> None:
        await self.client.patch(self.kinds.run, name, MergePatch({"spec": {"state": state}}), self.namespace)

    async def approve(
        self, name: str, status: str = "True", generation: int = 1, *, manager: str | None = None
    ) -> None:
        said = {"type": APPROVED, "status": status, "reason": "tested as OK", "message": "lgtm"}
        now = f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        body = {"status": {"conditions": [{**said, "lastTransitionTime": now, "observedGeneration": generation}]}}
        await self.client.patch(
            self.kinds.approval, name, MergePatch(body), self.namespace, subresource="status", manager=manager
        )

    async def drop(self, kind: Any, name: str) -> None:
        await self.client.delete(kind, name, self.namespace)

    # Looking

    async def run(self, name: str = "run") -> Run:
        return await self.client.get(self.kinds.run, name, self.namespace)

    async def status(self, name: str = "run") -> RunStatus:
        return (await self.run(name)).status

    async def says(self, kind: str = PROGRESSING, name: str = "run") -> str:
        found = find_condition((await self.status(name)).conditions, kind)
        return f"{found.status}/{found.reason}" if found is not None else ""

    async def message(self, kind: str = PROGRESSING, name: str = "run") -> str:
        found = find_condition((await self.status(name)).conditions, kind)
        return found.message if found is not None else ""

    async def until_says(self, what: str, kind: str = PROGRESSING, name: str = "run", within: float = 30.0) -> None:
        async def so() -> bool:
            return await self.says(kind, name) == what

        try:
            await until_so(so, within)
        except TimeoutError:
            raise AssertionError(f"{await self.says(kind, name)}: {await self.message(kind, name)}") from None

    async def requests(self) -> dict[str, Approval]:
        found = (await self.client.list(self.kinds.approval, self.namespace)).items
        return {one.metadata.name: one for one in found}

    async def until_asked(self, name: str) -> None:
        async def so() -> bool:
            return name in await self.requests()

        await until_so(so)

    async def is_gone(self, name: str = "run") -> bool:
        try:
            await self.run(name)
        except NotFound:
            return True
        return False

    # The members

    async def arrive(self, *clusters: str) -> None:
        """Members become available; wait until the run has taken note of it."""
        await self.say(AVAILABLE, *clusters)
        await self.rest(1.0)


def runs_of(
    hub: Cluster, client: Client, kinds: PlacementKinds, dialect: Dialect, measures: Measures | None = None
) -> StagedRuns:
    return StagedRuns(hub, kinds, Kept(client, kinds), clock=LoopClock(), dialect=dialect, measures=measures)


@asynccontextmanager
async def staging(
    kinds: PlacementKinds = CLUSTER,
    *,
    dialect: Dialect = Dialect.seed,
    link: Callable[[Transport], Transport] | None = None,
    measures: Measures | None = None,
) -> AsyncIterator[Staging]:
    """A hub with staged runs of both kinds, and a placement's surroundings. `link` is put between it and its server."""
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        transport: Transport = cluster.transport()
        hub = await manager.connect("hub", link(transport) if link else transport)
        for each in (CLUSTER, NAMESPACED):
            manager.add_controller(runs_of(hub, client, each, dialect, measures).controller)
            manager.add_controller(OrphanedApprovals(hub, each).controller)
        namespace = "shop" if kinds is NAMESPACED else None
        if namespace:
            await client.create(Namespace, {"metadata": {"name": namespace}})
        placed = Staging(client, kinds, namespace)
        count_writes(cluster, placed.writes)
        yield placed


def play(act: Callable[[Staging], Awaitable[None]], kinds: PlacementKinds = CLUSTER, **how: Any) -> None:
    async def main() -> None:
        async with staging(kinds, **how) as placed:
            await act(placed)

    run(main())


def stage(name: str, **how: Any) -> dict[str, Any]:
    return {"name": name, "labelSelector": {"matchLabels": {"stage": name}}, **how}
