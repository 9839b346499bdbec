"""Somebody approves what is asked for, so long after it was asked."""

from __future__ import annotations

import asyncio

from kedge.api.staged import ClusterApprovalRequest
from kedge.kube.limits import Limiter
from kedge.simulate.loop import run
from kedge.simulate.preview.approver import Approver
from support.fleets import client_of, fleet_cluster, managed
from support.stage import LoopClock


def test_a_request_is_approved_after_its_time_and_at_its_generation() -> None:
    async def approving() -> tuple[bool, bool]:
        async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
            hub = await manager.connect("hub", cluster.transport(), limiter=Limiter(rate=0))
            manager.add_controller(Approver(hub, ClusterApprovalRequest, clock=LoopClock(), after=3600.0).controller)
            spec = {"parentStageRollout": "run", "targetStage": "canary"}
            await client.create(ClusterApprovalRequest, {"metadata": {"name": "run-canary"}, "spec": spec})
            await asyncio.sleep(3500)
            early = await client.get(ClusterApprovalRequest, "run-canary")
            await asyncio.sleep(200)
            late = await client.get(ClusterApprovalRequest, "run-canary")
            (said,) = late.status.conditions
            return bool(early.status.conditions), said.observed_generation == late.metadata.generation

    assert run(approving()) == (False, True)
