"""Whatever a controller deletes, it deletes in the very version that it looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kedge.api.core import Namespace
from kedge.api.meta import Object
from kedge.api.placement_kinds import CLUSTER
from kedge.api.staged import ClusterApprovalRequest
from kedge.api.work import AppliedWork, Work
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.run_writes import RunWrites
from kedge.controllers.hub.snapshot_writes import RevisionWrites
from kedge.controllers.hub.work_writes import WorkWrites
from kedge.controllers.member.applied_works import AppliedWorks
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.codec import untyped
from kedge.kube.errors import Conflict
from kedge.kube.patches import MergePatch
from support.fleets import client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run

Delete = Callable[[Cluster, Any], Awaitable[None]]
SPECS: dict[type[Object], dict[str, Any]] = {
    Work: {},
    AppliedWork: {"workName": "one", "workNamespace": "fleet-member-a"},
    ClusterApprovalRequest: {"parentStageRollout": "run", "targetStage": "canary"},
    CLUSTER.resource_snapshot: {"selectedResources": []},
}


async def delete_work(hub: Cluster, found: Work) -> None:
    await WorkWrites(hub.client).remove(found, None)


async def mark_and_delete_work(hub: Cluster, found: Work) -> None:
    await WorkWrites(hub.client).remove(found, True)


async def delete_applied_work(member: Cluster, found: AppliedWork) -> None:
    await AppliedWorks(member).delete(found, "Background")


async def delete_snapshot(hub: Cluster, found: Any) -> None:
    await RevisionWrites(hub.client, CLUSTER.resource_snapshot.resource).remove(found.metadata)


async def withdraw_request(hub: Cluster, found: Any) -> None:
    await RunWrites(hub.client, CLUSTER, LoopClock(), PointedBindings(hub.name)).withdraw(found)


ROWS = [
    pytest.param(Work, delete_work, id="a Work"),
    pytest.param(Work, mark_and_delete_work, id="a Work whose objects stay"),
    pytest.param(AppliedWork, delete_applied_work, id="an AppliedWork"),
    pytest.param(CLUSTER.resource_snapshot, delete_snapshot, id="a snapshot"),
    pytest.param(ClusterApprovalRequest, withdraw_request, id="a request for approval"),
]


def play(act: Callable[[Client, Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport())
            await client.create(Namespace, {"metadata": {"name": "fleet-member-a"}})
            await act(client, hub)

    run(main())


async def made(client: Client, kind: type[Any]) -> Any:
    place = "fleet-member-a" if kind.resource.namespaced else None
    await client.create(untyped(kind.resource), {"metadata": {"name": "one"}, "spec": SPECS[kind]}, place)
    return await client.get(kind, "one", place)


@pytest.mark.parametrize(("kind", "delete"), ROWS)
def test_what_was_looked_at_is_deleted(kind: type[Any], delete: Delete) -> None:
    async def act(client: Client, cluster: Cluster) -> None:
        await delete(cluster, await made(client, kind))
        await asyncio.sleep(1)
        assert not (await client.list(kind)).items

    play(act)


@pytest.mark.parametrize(("kind", "delete"), ROWS)
def test_what_has_changed_since_stays_and_is_looked_at_again(kind: type[Any], delete: Delete) -> None:
    async def act(client: Client, cluster: Cluster) -> None:
        seen = await made(client, kind)
        patch = MergePatch({"metadata": {"labels": {"now": "other"}}})
        await client.patch(kind, "one", patch, seen.metadata.namespace)
        with pytest.raises(Conflict):
            await delete(cluster, seen)
        assert [one.metadata.name for one in (await client.list(kind)).items] == ["one"]

    play(act)
